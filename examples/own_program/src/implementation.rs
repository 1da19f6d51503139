//! Softmax over rows in plain Rust.

use calorimeter_recipes::{Dtype, Element, QuantConfig};
use calorimeter_zoo::{OpenRequest, Output, Task, Workload, WorkloadFactory, ZooError};

/// Opens `softmax` on the CPU.
#[derive(Debug, Clone, Copy)]
pub struct ByHand;

impl WorkloadFactory for ByHand {
    fn accepts(&self, task: &Task, _: &QuantConfig) -> Result<(), String> {
        match task.element() {
            Element::Float(Dtype::F32) => Ok(()),
            other => Err(format!("softmax by hand supports f32, not {other}")),
        }
    }

    fn open(&self, opening: OpenRequest<'_>) -> Result<Box<dyn Workload>, ZooError> {
        let (_, inputs) = opening.operator()?;
        let set = |set: u32| -> Result<BufferSet, ZooError> {
            let logits = opening.inputs_of_set(set)?[0].values.to_vec();
            Ok(BufferSet { probabilities: vec![f32::NAN; logits.len()], logits })
        };
        let sets = (0..opening.setup.sets.max(1)).map(set).collect::<Result<_, _>>()?;
        Ok(Box::new(Softmax { cols: inputs[0].cols, sets, next: 0 }))
    }
}

/// Inputs and outputs of one launch.
struct BufferSet {
    logits: Vec<f32>,
    probabilities: Vec<f32>,
}

/// Workload that rotates through its buffer sets.
struct Softmax {
    cols: usize,
    sets: Vec<BufferSet>,
    next: usize,
}

impl Workload for Softmax {
    fn launch(&mut self) -> Result<(), ZooError> {
        let set = self.next;
        self.next = (set + 1) % self.sets.len();
        let BufferSet { logits, probabilities } = &mut self.sets[set];
        for (logits, probabilities) in logits.chunks(self.cols).zip(probabilities.chunks_mut(self.cols)) {
            let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            probabilities.iter_mut().zip(logits).for_each(|(probability, x)| *probability = (x - max).exp());
            let sum: f32 = probabilities.iter().sum();
            probabilities.iter_mut().for_each(|probability| *probability /= sum);
        }
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), ZooError> {
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let set = self.next;
        self.sets[set].probabilities.fill(f32::NAN);
        self.launch()?;
        let values = self.sets[set].probabilities.clone();
        Ok(vec![Output { rows: values.len() / self.cols, cols: self.cols, values }])
    }

    fn next_set(&self) -> u32 {
        self.next as u32
    }
}
