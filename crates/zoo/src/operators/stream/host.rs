//! By plain Rust on the processor, in memory that is kept: what burn allocates for each output costs more than moving it.

use super::{FACTOR, Stream};
use crate::host::arrays::{self, HostKernel};
use crate::{Opener, Opening, Task, Workload, ZooError};
use calorimeter_kernels::host::{Numbers, share_out};
use calorimeter_recipes::{Dtype, Element, Treatment};

/// One of the four.
#[derive(Debug, Clone, Copy)]
pub struct OnTheHost(Stream);

impl Opener for OnTheHost {
    fn accepts(&self, task: &Task, _: &Treatment) -> Result<(), String> {
        match task {
            Task::Operator(problem) if problem.spec.element != Element::Float(Dtype::F32) => {
                Err(format!("{} has a `native` kernel on the CPU in f32 alone", problem.operator.info().name))
            }
            _ => Ok(()),
        }
    }

    fn open(&self, opening: Opening<'_>) -> Result<Box<dyn Workload>, ZooError> {
        let (problem, inputs) = opening.operator()?;
        let (stream, name) = (self.0, problem.operator.info().name);
        let name = format!("{name} on {} threads", rayon::current_num_threads());
        let run = Box::new(move |inputs: &[_], outputs: &mut [_]| stream.run(inputs, outputs));
        Ok(arrays::open(problem, inputs, opening.setup.sets, HostKernel { name, run }))
    }
}

/// Numbers for each thread, in one piece, because libraries copy large pieces past the caches; no page belongs to two, and
/// fewer are moved sooner than a thread wakes.
fn share(numbers: usize) -> usize {
    const NUMBERS_IN_A_PAGE: usize = 1024;
    const LEAST: usize = 1 << 16;
    numbers.div_ceil(rayon::current_num_threads()).next_multiple_of(NUMBERS_IN_A_PAGE).max(LEAST)
}

fn floats(numbers: &Numbers) -> &[f32] {
    match numbers {
        Numbers::F32(numbers) => numbers,
        Numbers::Bf16(_) => unreachable!("nothing but f32 is accepted"),
    }
}

impl Stream {
    /// What opens it on the processor.
    pub fn on_the_host(self) -> OnTheHost {
        OnTheHost(self)
    }

    fn run(self, inputs: &[Numbers], outputs: &mut [Numbers]) {
        let (first, second) = (floats(&inputs[0]), floats(inputs.get(1).unwrap_or(&inputs[0])));
        let Numbers::F32(output) = &mut outputs[0] else { unreachable!("nothing but f32 is accepted") };
        let share = share(output.len());
        let pieces = output.chunks_mut(share).zip(first.chunks(share).zip(second.chunks(share)));
        share_out(pieces.collect(), |(to, (a, b))| match self {
            Self::Copy => to.copy_from_slice(a),
            Self::Scale => to.iter_mut().zip(a).for_each(|(to, a)| *to = FACTOR * a),
            Self::Add => to.iter_mut().zip(a).zip(b).for_each(|((to, a), b)| *to = a + b),
            Self::Triad => to.iter_mut().zip(a).zip(b).for_each(|((to, a), b)| *to = a + FACTOR * b),
        });
    }
}
