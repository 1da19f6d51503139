//! By plain Rust on the processor, in memory that is kept: what burn allocates for each output costs more than moving it.

use super::{FACTOR, Stream};
use crate::{HostOpen, Matrix, Operation, Output, Spec, Workload, ZooError};
use rayon::prelude::*;

/// The arrays of one launch.
struct Arrays {
    inputs: Vec<Vec<f32>>,
    output: Vec<f32>,
}

struct HostStream {
    kernel: Stream,
    sets: Vec<Arrays>,
    next: usize,
}

impl HostOpen for Stream {
    fn open(&self, _: &Spec, inputs: &[Matrix], sets: u32) -> Result<Box<dyn Workload>, ZooError> {
        let arrays = || Arrays {
            inputs: inputs.iter().map(|matrix| matrix.values.to_vec()).collect(),
            // Written here, so that its pages are there before a launch needs them.
            output: vec![f32::NAN; inputs[0].values.len()],
        };
        Ok(Box::new(HostStream { kernel: *self, sets: (0..sets.max(1)).map(|_| arrays()).collect(), next: 0 }))
    }
}

/// Numbers for each thread, in one piece, because libraries copy large pieces past the caches; no page belongs to two.
fn share(numbers: usize) -> usize {
    const NUMBERS_IN_A_PAGE: usize = 1024;
    numbers.div_ceil(rayon::current_num_threads()).next_multiple_of(NUMBERS_IN_A_PAGE)
}

impl Workload for HostStream {
    fn launch(&mut self) -> Result<(), ZooError> {
        let kernel = self.kernel;
        let set = self.next;
        self.next = (set + 1) % self.sets.len();
        let Arrays { inputs, output } = &mut self.sets[set];
        let share = share(output.len());
        let first = &inputs[0];
        let second = inputs.get(1).unwrap_or(first);
        let pieces = output.par_chunks_mut(share).zip(first.par_chunks(share).zip(second.par_chunks(share)));
        pieces.for_each(|(to, (a, b))| match kernel {
            Stream::Copy => to.copy_from_slice(a),
            Stream::Scale => to.iter_mut().zip(a).for_each(|(to, a)| *to = FACTOR * a),
            Stream::Add => to.iter_mut().zip(a).zip(b).for_each(|((to, a), b)| *to = a + b),
            Stream::Triad => to.iter_mut().zip(a).zip(b).for_each(|((to, a), b)| *to = a + FACTOR * b),
        });
        Ok(())
    }

    fn settle(&mut self) -> Result<(), ZooError> {
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let set = self.next;
        self.sets[set].output.fill(f32::NAN);
        self.launch()?;
        let values = self.sets[set].output.clone();
        Ok(vec![Output { rows: 1, cols: values.len(), values }])
    }

    fn weight_bytes(&self) -> u64 {
        0
    }

    fn kernel(&self) -> Option<String> {
        Some(format!("{} on {} threads", self.kernel.name(), rayon::current_num_threads()))
    }
}
