//! Operators on the CPU, in memory that is reused by all launches.

use super::layer::to_dtype;
use crate::{Matrix, Operand, OperatorProblem, Output, OutputSlot, Workload, ZooError};
use calorimeter_kernels::host::FloatVec;

/// Reads the inputs and writes every element of the outputs.
type HostRun = dyn Fn(&[FloatVec], &mut [FloatVec]) + Send;

/// Kernel of an operator.
pub struct HostKernel {
    /// Name in records.
    pub name: String,
    pub run: Box<HostRun>,
}

/// Inputs and outputs of one launch.
struct HostBuffers {
    inputs: Vec<FloatVec>,
    outputs: Vec<FloatVec>,
    /// True after a launch on this set.
    ran: bool,
}

struct HostOperator {
    kernel: HostKernel,
    slots: Vec<OutputSlot>,
    sets: Vec<HostBuffers>,
    next: usize,
}

/// Copies the inputs of each buffer set. Launches rotate through the sets.
pub fn open(problem: &OperatorProblem, inputs: &[Matrix], sets: u32, kernel: HostKernel) -> Box<dyn Workload> {
    let OperatorProblem { operator, spec, .. } = problem;
    let (moves, operands, slots) = (operator.set_rotation(spec), operator.inputs(spec), operator.outputs(spec));
    let store = |(matrix, operand): (&Matrix, &Operand)| to_dtype(&matrix.values, operand.element);
    let arrays = |set: u32| HostBuffers {
        inputs: moves.inputs_of_set(inputs, set).iter().zip(&operands).map(store).collect(),
        // Writing the outputs here maps their pages before the first launch.
        outputs: slots
            .iter()
            .map(|slot| to_dtype(&vec![f32::NAN; (slot.rows * slot.cols) as usize], slot.element))
            .collect(),
        ran: false,
    };
    let sets = (0..sets.max(1)).map(arrays).collect();
    Box::new(HostOperator { kernel, slots, sets, next: 0 })
}

impl HostOperator {
    fn read(&self, set: usize) -> Vec<Output> {
        let of_slot = |(slot, numbers): (&OutputSlot, &FloatVec)| Output {
            rows: slot.rows as usize,
            cols: slot.cols as usize,
            values: numbers.to_f32(),
        };
        self.slots.iter().zip(&self.sets[set].outputs).map(of_slot).collect()
    }
}

impl Workload for HostOperator {
    fn launch(&mut self) -> Result<(), ZooError> {
        let set = self.next;
        self.next = (set + 1) % self.sets.len();
        let HostBuffers { inputs, outputs, ran } = &mut self.sets[set];
        *ran = true;
        (self.kernel.run)(inputs, outputs);
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), ZooError> {
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let set = self.next;
        self.sets[set].outputs.iter_mut().for_each(FloatVec::poison);
        self.launch()?;
        Ok(self.read(set))
    }

    fn last_outputs(&mut self, set: u32) -> Result<Option<Vec<Output>>, ZooError> {
        let ran = self.sets.get(set as usize).is_some_and(|set| set.ran);
        Ok(ran.then(|| self.read(set as usize)))
    }

    fn next_set(&self) -> u32 {
        self.next as u32
    }

    fn kernel(&self) -> Option<String> {
        Some(self.kernel.name.clone())
    }
}
