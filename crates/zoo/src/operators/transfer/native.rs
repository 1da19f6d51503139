//! Copies by the CUDA driver.

use super::{Transfer, TransferDirection};
use crate::element_bytes::{decode, encode};
use crate::{Matrix, NativeOpen, Operation, Output, Spec, Workload, ZooError};
use calorimeter_kernels::native::{CudaDevice, DeviceBuffer, HostMemory, HostMemoryKind, NativeError, Transfers};
use calorimeter_recipes::Element;
use std::sync::Arc;

struct TransferWorkload {
    direction: TransferDirection,
    kind: HostMemoryKind,
    element: Element,
    transfers: Transfers,
    machine: Arc<CudaDevice>,
    sets: Vec<TransferBuffers>,
    next: usize,
}

/// Source and destination buffers of one set.
#[derive(Default)]
struct TransferBuffers {
    up: Option<(HostMemory, DeviceBuffer)>,
    down: Option<(DeviceBuffer, HostMemory)>,
}

impl NativeOpen for Transfer {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let (Self { direction: way, pinned }, element) = (*self, spec.element);
        let transfers = Transfers::new(&machine)?;
        let kind = if pinned { HostMemoryKind::Pinned } else { HostMemoryKind::Pageable };
        let moves = self.set_rotation(spec);
        let set = |set: u32| -> Result<TransferBuffers, NativeError> {
            let of_set = moves.inputs_of_set(inputs, set);
            let contents: Vec<Vec<u8>> = of_set.iter().map(|matrix| encode(&matrix.values, element)).collect();
            let (first, last) = (&contents[0], &contents[contents.len() - 1]);
            let mut set = TransferBuffers::default();
            if way != TransferDirection::ToHost {
                set.up = Some((transfers.allocate_host(kind, first)?, machine.allocate(first.len())?));
            }
            if way != TransferDirection::ToDevice {
                set.down = Some((machine.upload(last)?, transfers.allocate_host(kind, &vec![0; last.len()])?));
            }
            Ok(set)
        };
        let sets = (0..sets.max(1)).map(set).collect::<Result<_, _>>()?;
        Ok(Box::new(TransferWorkload { direction: way, kind, element, transfers, machine, sets, next: 0 }))
    }
}

impl Workload for TransferWorkload {
    fn launch(&mut self) -> Result<(), ZooError> {
        let set = self.next;
        self.next = (set + 1) % self.sets.len();
        let TransferBuffers { up, down } = &mut self.sets[set];
        if let (TransferDirection::Bidirectional, Some((from, to)), Some((from_device, to_host))) =
            (self.direction, &mut *up, &mut *down)
        {
            return Ok(self.transfers.copy_both_directions(from, to, from_device, to_host)?);
        }
        if let Some((from, to)) = up {
            self.transfers.to_device(from, to)?;
        }
        if let Some((from, to)) = down {
            self.transfers.to_host(from, to)?;
        }
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), ZooError> {
        Ok(self.machine.synchronize()?)
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let set = self.next;
        let TransferBuffers { up, down } = &mut self.sets[set];
        if let Some((_, to)) = up {
            to.fill(0xFF)?;
        }
        if let Some((_, to)) = down {
            to.fill(0xFF)?;
        }
        self.launch()?;
        let TransferBuffers { up, down } = &self.sets[set];
        let mut outputs = Vec::new();
        if let Some((_, to)) = up {
            outputs.push(to.download()?);
        }
        if let Some((_, to)) = down {
            outputs.push(to.content()?.to_vec());
        }
        let output = |bytes: Vec<u8>| {
            let values = decode(&bytes, self.element);
            Output { rows: 1, cols: values.len(), values }
        };
        Ok(outputs.into_iter().map(output).collect())
    }

    fn next_set(&self) -> u32 {
        self.next as u32
    }

    fn kernel(&self) -> Option<String> {
        let memory = match self.kind {
            HostMemoryKind::Pinned => "pinned",
            HostMemoryKind::Pageable => "pageable",
        };
        Some(format!("driver copy, {memory} memory"))
    }
}
