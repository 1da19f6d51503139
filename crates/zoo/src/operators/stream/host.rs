//! By plain Rust on the processor, in memory that is kept: what burn allocates for each output costs more than moving it.

use super::{FACTOR, Stream};
use crate::{HostOpen, Matrix, Operation, Output, Signature, Spec, Workload, ZooError};
use rayon::prelude::*;

/// The arrays of one launch.
struct Arrays {
    inputs: Vec<Vec<f32>>,
    output: Vec<f32>,
    /// Whether a launch has used them.
    ran: bool,
}

impl Arrays {
    fn read(&self) -> Output {
        Output { rows: 1, cols: self.output.len(), values: self.output.clone() }
    }
}

struct HostStream {
    kernel: Stream,
    sets: Vec<Arrays>,
    next: usize,
}

impl HostOpen for Stream {
    fn open(&self, spec: &Spec, inputs: &[Matrix], sets: u32) -> Result<Box<dyn Workload>, ZooError> {
        let moves = self.moves(spec);
        let arrays = |set: u32| Arrays {
            inputs: moves.inputs_of_set(inputs, set).iter().map(|matrix| matrix.values.to_vec()).collect(),
            // Written here, so that its pages are there before a launch needs them.
            output: vec![f32::NAN; inputs[0].values.len()],
            ran: false,
        };
        Ok(Box::new(HostStream { kernel: *self, sets: (0..sets.max(1)).map(arrays).collect(), next: 0 }))
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
        let Arrays { inputs, output, ran } = &mut self.sets[set];
        *ran = true;
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
        Ok(vec![self.sets[set].read()])
    }

    fn kept(&mut self, set: u32) -> Result<Option<Vec<Output>>, ZooError> {
        let ran = self.sets.get(set as usize).filter(|set| set.ran);
        Ok(ran.map(|set| vec![set.read()]))
    }

    fn next_set(&self) -> u32 {
        self.next as u32
    }

    fn weight_bytes(&self) -> u64 {
        0
    }

    fn kernel(&self) -> Option<String> {
        Some(format!("{} on {} threads", self.kernel.name(), rayon::current_num_threads()))
    }
}
