//! Operators on the CPU, in memory that is reused by all launches.

use super::layer::stored;
use crate::{Matrix, Operand, OperatorProblem, Output, Slot, Workload, ZooError};
use calorimeter_kernels::host::Numbers;

/// Reads the inputs and writes every element of the outputs.
type Run = dyn Fn(&[Numbers], &mut [Numbers]) + Send;

/// Kernel of an operator.
pub struct HostKernel {
    /// Name in records.
    pub name: String,
    pub run: Box<Run>,
}

/// Inputs and outputs of one launch.
struct Arrays {
    inputs: Vec<Numbers>,
    outputs: Vec<Numbers>,
    /// True after a launch on this set.
    ran: bool,
}

struct HostOperator {
    kernel: HostKernel,
    slots: Vec<Slot>,
    sets: Vec<Arrays>,
    next: usize,
}

/// Copies the inputs of each buffer set. Launches rotate through the sets.
pub fn open(problem: &OperatorProblem, inputs: &[Matrix], sets: u32, kernel: HostKernel) -> Box<dyn Workload> {
    let OperatorProblem { operator, spec, .. } = problem;
    let (moves, operands, slots) = (operator.moves(spec), operator.inputs(spec), operator.outputs(spec));
    let store = |(matrix, operand): (&Matrix, &Operand)| stored(&matrix.values, operand.element);
    let arrays = |set: u32| Arrays {
        inputs: moves.inputs_of_set(inputs, set).iter().zip(&operands).map(store).collect(),
        // Writing the outputs here maps their pages before the first launch.
        outputs: slots
            .iter()
            .map(|slot| stored(&vec![f32::NAN; (slot.rows * slot.cols) as usize], slot.element))
            .collect(),
        ran: false,
    };
    let sets = (0..sets.max(1)).map(arrays).collect();
    Box::new(HostOperator { kernel, slots, sets, next: 0 })
}

impl HostOperator {
    fn read(&self, set: usize) -> Vec<Output> {
        let of_slot = |(slot, numbers): (&Slot, &Numbers)| Output {
            rows: slot.rows as usize,
            cols: slot.cols as usize,
            values: numbers.widened(),
        };
        self.slots.iter().zip(&self.sets[set].outputs).map(of_slot).collect()
    }
}

impl Workload for HostOperator {
    fn launch(&mut self) -> Result<(), ZooError> {
        let set = self.next;
        self.next = (set + 1) % self.sets.len();
        let Arrays { inputs, outputs, ran } = &mut self.sets[set];
        *ran = true;
        (self.kernel.run)(inputs, outputs);
        Ok(())
    }

    fn settle(&mut self) -> Result<(), ZooError> {
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let set = self.next;
        self.sets[set].outputs.iter_mut().for_each(Numbers::poison);
        self.launch()?;
        Ok(self.read(set))
    }

    fn kept(&mut self, set: u32) -> Result<Option<Vec<Output>>, ZooError> {
        let ran = self.sets.get(set as usize).is_some_and(|set| set.ran);
        Ok(ran.then(|| self.read(set as usize)))
    }

    fn next_set(&self) -> u32 {
        self.next as u32
    }

    fn weight_bytes(&self) -> u64 {
        0
    }

    fn kernel(&self) -> Option<String> {
        Some(self.kernel.name.clone())
    }
}
