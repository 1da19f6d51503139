//! Operators on the CPU, in memory that is reused by all launches.

use crate::rotating_workload::{self, SetPass, WorkloadProperties};
use crate::{Matrix, Operand, OperatorProblem, Output, OutputSlot, Workload, ZooError};
use calorimeter_kernels::host::FloatVec;

/// Reads the inputs and writes every element of the outputs.
type HostRun = dyn Fn(&[FloatVec], &mut [FloatVec]) + Send;

/// Kernel of an operator.
pub(crate) struct HostKernel {
    /// Name in records.
    pub name: String,
    pub run: Box<HostRun>,
}

/// Inputs and outputs of one launch.
struct HostBuffers {
    inputs: Vec<FloatVec>,
    outputs: Vec<FloatVec>,
}

struct HostOperator {
    run: Box<HostRun>,
    slots: Vec<OutputSlot>,
}

/// Copies the inputs of each buffer set. Launches rotate through the sets.
pub(crate) fn open(problem: &OperatorProblem, inputs: &[Matrix], sets: u32, kernel: HostKernel) -> Box<dyn Workload> {
    let OperatorProblem { operator, spec, .. } = problem;
    let (moves, operands, slots) = (operator.set_rotation(spec), operator.inputs(spec), operator.outputs(spec));
    let store = |(matrix, operand): (&Matrix, &Operand)| FloatVec::new(&matrix.values, operand.element);
    let arrays = |set: u32| HostBuffers {
        inputs: moves.inputs_of_set(inputs, set).iter().zip(&operands).map(store).collect(),
        // Writing the outputs here maps their pages before the first launch.
        outputs: slots
            .iter()
            .map(|slot| FloatVec::new(&vec![f32::NAN; (slot.rows * slot.cols) as usize], slot.element))
            .collect(),
    };
    let sets = (0..sets.max(1)).map(arrays).collect();
    let properties = WorkloadProperties { kernel: Some(kernel.name), ..Default::default() };
    rotating_workload::open(HostOperator { run: kernel.run, slots }, sets, properties)
}

impl HostOperator {
    fn read(&self, set: &HostBuffers) -> Vec<Output> {
        let of_slot = |(slot, numbers): (&OutputSlot, &FloatVec)| Output {
            rows: slot.rows as usize,
            cols: slot.cols as usize,
            values: numbers.to_f32(),
        };
        self.slots.iter().zip(&set.outputs).map(of_slot).collect()
    }
}

impl SetPass for HostOperator {
    type Set = HostBuffers;

    fn launch(&mut self, HostBuffers { inputs, outputs }: &mut HostBuffers) -> Result<(), ZooError> {
        (self.run)(inputs, outputs);
        Ok(())
    }

    fn outputs(&mut self, set: &mut HostBuffers) -> Result<Vec<Output>, ZooError> {
        set.outputs.iter_mut().for_each(FloatVec::poison);
        self.launch(set)?;
        Ok(self.read(set))
    }

    fn last_outputs(&mut self, set: &mut HostBuffers) -> Result<Option<Vec<Output>>, ZooError> {
        Ok(Some(self.read(set)))
    }
}
