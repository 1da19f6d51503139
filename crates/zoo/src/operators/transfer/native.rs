//! Copies by the CUDA driver.

use super::{Transfer, TransferDirection};
use crate::element_bytes::{decode, encode};
use crate::rotating_workload::{self, SetPass, WorkloadProperties};
use crate::{Matrix, NativeOpen, Operation, Output, Spec, Workload, ZooError};
use calorimeter_kernels::native::{CudaDevice, DeviceBuffer, HostMemory, HostMemoryKind, NativeError, Transfers};
use calorimeter_recipes::Element;
use std::sync::Arc;

struct TransferPass {
    direction: TransferDirection,
    element: Element,
    transfers: Transfers,
    machine: Arc<CudaDevice>,
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
        let (kind, memory) =
            if pinned { (HostMemoryKind::Pinned, "pinned") } else { (HostMemoryKind::Pageable, "pageable") };
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
        let kernel = Some(format!("driver copy, {memory} memory"));
        let pass = TransferPass { direction: way, element, transfers, machine };
        Ok(rotating_workload::open(pass, sets, WorkloadProperties { kernel, ..Default::default() }))
    }
}

impl SetPass for TransferPass {
    type Set = TransferBuffers;

    fn launch(&mut self, TransferBuffers { up, down }: &mut TransferBuffers) -> Result<(), ZooError> {
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

    fn outputs(&mut self, set: &mut TransferBuffers) -> Result<Vec<Output>, ZooError> {
        if let Some((_, to)) = &mut set.up {
            to.fill(0xFF)?;
        }
        if let Some((_, to)) = &mut set.down {
            to.fill(0xFF)?;
        }
        self.launch(set)?;
        let mut outputs = Vec::new();
        if let Some((_, to)) = &set.up {
            outputs.push(to.download()?);
        }
        if let Some((_, to)) = &set.down {
            outputs.push(to.content()?.to_vec());
        }
        let output = |bytes: Vec<u8>| {
            let values = decode(&bytes, self.element);
            Output { rows: 1, cols: values.len(), values }
        };
        Ok(outputs.into_iter().map(output).collect())
    }
}
