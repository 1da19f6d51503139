//! Collectives by NCCL; one host thread drives all devices.

use super::Collective;
use crate::numbers::{bytes, numbers};
use crate::{Matrix, NativeOpen, Operation, Output, Spec, Workload, ZooError};
use calorimeter_kernels::Dtype;
use calorimeter_kernels::native::{Buffer, Collective as Call, Machine, NativeError, Team, probe};
use calorimeter_recipes::Element;
use std::sync::Arc;

struct Exchange {
    team: Team,
    collective: Call,
    kind: Dtype,
    element: Element,
    /// Input elements per device.
    count: usize,
    sets: Vec<Set>,
    next: usize,
}

/// Buffers of one set: one input and one output per device.
struct Set {
    inputs: Vec<Buffer>,
    outputs: Vec<Buffer>,
}

impl NativeOpen for Collective {
    // Row i of the input is uploaded to the i-th GPU, starting at the GPU of `machine`.
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
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
        let (devices, found) = (input.rows, probe()?.len());
        if found < devices {
            let name = collective.name();
            return Err(ZooError::Unsupported(format!("{name} needs {devices} GPUs; this machine has {found}")));
        }
        let first = machine.info().ordinal;
        let mut machines = vec![machine];
        for next in 1..devices {
            machines.push(Machine::open((first + next) % found)?);
        }
        let team = Team::new(machines)?;
        let (kind, count) = (spec.dtype(), input.cols);
        let moves = self.moves(spec);
        let received = collective.received(devices, count) * kind.width();
        let set = |set: u32| -> Result<Set, NativeError> {
            let machines = || team.machines().iter();
            let set_inputs = moves.inputs_of_set(inputs, set);
            Ok(Set {
                inputs: machines()
                    .enumerate()
                    .map(|(row, device)| device.upload(&bytes(set_inputs[0].row(row), spec.element)))
                    .collect::<Result<_, _>>()?,
                outputs: machines().map(|device| device.allocate(received)).collect::<Result<_, _>>()?,
            })
        };
        let sets = (0..sets.max(1)).map(set).collect::<Result<_, _>>()?;
        Ok(Box::new(Exchange { team, collective, kind, element: spec.element, count, sets, next: 0 }))
    }
}

impl Workload for Exchange {
    fn launch(&mut self) -> Result<(), ZooError> {
        let set = self.next;
        self.next = (set + 1) % self.sets.len();
        let Set { inputs, outputs } = &mut self.sets[set];
        Ok(self.team.enqueue(self.collective, self.kind, self.count, inputs, outputs)?)
    }

    fn settle(&mut self) -> Result<(), ZooError> {
        Ok(self.team.synchronize()?)
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let set = self.next;
        // 0xFF bytes are a NaN in every float dtype.
        self.sets[set].outputs.iter_mut().try_for_each(|output| output.fill(0xFF))?;
        self.launch()?;
        let mut values = Vec::new();
        for output in &self.sets[set].outputs {
            values.extend(numbers(&output.download()?, self.element));
        }
        let rows = self.team.machines().len();
        Ok(vec![Output { rows, cols: values.len() / rows, values }])
    }

    fn next_set(&self) -> u32 {
        self.next as u32
    }

    fn weight_bytes(&self) -> u64 {
        0
    }

    fn kernel(&self) -> Option<String> {
        Some(self.team.algorithm())
    }
}
