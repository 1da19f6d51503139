//! Collectives by NCCL; one host thread drives all devices.

use super::Collective;
use crate::element_bytes::{decode, encode};
use crate::{Matrix, NativeOpen, Operation, Output, Spec, Workload, ZooError};
use calorimeter_kernels::Dtype;
use calorimeter_kernels::native::{
    CudaDevice, DeviceBuffer, NativeError, NcclCollective as Call, NcclGroup, list_gpus,
};
use calorimeter_recipes::Element;
use std::sync::Arc;

struct CollectiveWorkload {
    team: NcclGroup,
    collective: Call,
    kind: Dtype,
    element: Element,
    /// Input elements per device.
    count: usize,
    sets: Vec<CollectiveBuffers>,
    next: usize,
}

/// Buffers of one set: one input and one output per device.
struct CollectiveBuffers {
    inputs: Vec<DeviceBuffer>,
    outputs: Vec<DeviceBuffer>,
}

impl NativeOpen for Collective {
    // Row i of the input is uploaded to the i-th GPU, starting at the GPU of `machine`.
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let collective = match self {
            Self::AllReduce | Self::Psum => Call::AllReduce,
            Self::AllGather => Call::AllGather,
            Self::ReduceScatter | Self::PsumScatter => Call::ReduceScatter,
            Self::AllToAll => Call::AllToAll,
            Self::SendRecv => Call::SendReceive,
        };
        let input = &inputs[0];
        let (devices, found) = (input.rows, list_gpus()?.len());
        if found < devices {
            let name = collective.name();
            return Err(ZooError::Unsupported(format!("{name} needs {devices} GPUs; this machine has {found}")));
        }
        let first = machine.info().ordinal;
        let mut machines = vec![machine];
        for next in 1..devices {
            machines.push(CudaDevice::open((first + next) % found)?);
        }
        let team = NcclGroup::new(machines)?;
        let (kind, count) = (spec.dtype(), input.cols);
        let moves = self.set_rotation(spec);
        let received = collective.received_elements(devices, count) * kind.width();
        let set = |set: u32| -> Result<CollectiveBuffers, NativeError> {
            let machines = || team.devices().iter();
            let set_inputs = moves.inputs_of_set(inputs, set);
            Ok(CollectiveBuffers {
                inputs: machines()
                    .enumerate()
                    .map(|(row, device)| device.upload(&encode(set_inputs[0].row(row), spec.element)))
                    .collect::<Result<_, _>>()?,
                outputs: machines().map(|device| device.allocate(received)).collect::<Result<_, _>>()?,
            })
        };
        let sets = (0..sets.max(1)).map(set).collect::<Result<_, _>>()?;
        Ok(Box::new(CollectiveWorkload { team, collective, kind, element: spec.element, count, sets, next: 0 }))
    }
}

impl Workload for CollectiveWorkload {
    fn launch(&mut self) -> Result<(), ZooError> {
        let set = self.next;
        self.next = (set + 1) % self.sets.len();
        let CollectiveBuffers { inputs, outputs } = &mut self.sets[set];
        Ok(self.team.enqueue(self.collective, self.kind, self.count, inputs, outputs)?)
    }

    fn synchronize(&mut self) -> Result<(), ZooError> {
        Ok(self.team.synchronize()?)
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let set = self.next;
        // 0xFF bytes are a NaN in every float dtype.
        self.sets[set].outputs.iter_mut().try_for_each(|output| output.fill(0xFF))?;
        self.launch()?;
        let mut values = Vec::new();
        for output in &self.sets[set].outputs {
            values.extend(decode(&output.download()?, self.element));
        }
        let rows = self.team.devices().len();
        Ok(vec![Output { rows, cols: values.len() / rows, values }])
    }

    fn next_set(&self) -> u32 {
        self.next as u32
    }

    fn kernel(&self) -> Option<String> {
        Some(self.team.algorithm())
    }
}
