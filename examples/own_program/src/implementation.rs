//! Softmax over rows, written out in plain Rust.

use calorimeter_recipes::{Dtype, Element, Treatment};
use calorimeter_zoo::{Opener, Opening, Output, Task, Workload, ZooError};

/// Opens `softmax` on the processor.
#[derive(Debug, Clone, Copy)]
pub struct ByHand;

impl Opener for ByHand {
    fn accepts(&self, task: &Task, _: &Treatment) -> Result<(), String> {
        match task.element() {
            Element::Float(Dtype::F32) => Ok(()),
            other => Err(format!("softmax by hand is written for f32, not {other}")),
        }
    }

    fn open(&self, opening: Opening<'_>) -> Result<Box<dyn Workload>, ZooError> {
        let (_, inputs) = opening.operator()?;
        let set = |set: u32| -> Result<Set, ZooError> {
            let logits = opening.inputs_of_set(set)?[0].values.to_vec();
            Ok(Set { shares: vec![f32::NAN; logits.len()], logits })
        };
        let sets = (0..opening.setup.sets.max(1)).map(set).collect::<Result<_, _>>()?;
        Ok(Box::new(Softmax { cols: inputs[0].cols, sets, next: 0 }))
    }
}

/// What one pass reads and writes.
struct Set {
    logits: Vec<f32>,
    shares: Vec<f32>,
}

/// Passes go through the sets in turn.
struct Softmax {
    cols: usize,
    sets: Vec<Set>,
    next: usize,
}

impl Workload for Softmax {
    fn launch(&mut self) -> Result<(), ZooError> {
        let set = self.next;
        self.next = (set + 1) % self.sets.len();
        let Set { logits, shares } = &mut self.sets[set];
        for (logits, shares) in logits.chunks(self.cols).zip(shares.chunks_mut(self.cols)) {
            let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            shares.iter_mut().zip(logits).for_each(|(share, x)| *share = (x - largest).exp());
            let sum: f32 = shares.iter().sum();
            shares.iter_mut().for_each(|share| *share /= sum);
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), ZooError> {
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let set = self.next;
        self.sets[set].shares.fill(f32::NAN);
        self.launch()?;
        let values = self.sets[set].shares.clone();
        Ok(vec![Output { rows: values.len() / self.cols, cols: self.cols, values }])
    }

    fn next_set(&self) -> u32 {
        self.next as u32
    }

    fn weight_bytes(&self) -> u64 {
        0
    }
}
