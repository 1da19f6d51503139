//! STREAM kernels on the CPU in plain Rust, into preallocated memory: burn allocates each output, which costs more than
//! the copy.

use super::{FACTOR, Stream};
use crate::host::arrays::{self, HostKernel};
use crate::{Opener, Opening, Task, Workload, ZooError};
use calorimeter_kernels::host::{Numbers, share_out};
use calorimeter_recipes::{Dtype, Element, Treatment};

/// Opens a STREAM kernel on the CPU.
#[derive(Debug, Clone, Copy)]
pub struct OnTheHost(Stream);

impl Opener for OnTheHost {
    fn accepts(&self, task: &Task, _: &Treatment) -> Result<(), String> {
        match task {
            Task::Operator(problem) if problem.spec.element != Element::Float(Dtype::F32) => {
                Err(format!("{} has a `native` kernel on the CPU in f32 only", problem.operator.info().name))
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

/// Elements per thread, in one chunk, because memcpy writes large chunks with non-temporal stores. Chunks are whole
/// pages, so that no two threads share one. Below the minimum, copying is faster than waking a thread.
fn share(elements: usize) -> usize {
    const NUMBERS_IN_A_PAGE: usize = 1024;
    const LEAST: usize = 1 << 16;
    elements.div_ceil(rayon::current_num_threads()).next_multiple_of(NUMBERS_IN_A_PAGE).max(LEAST)
}

fn floats(array: &Numbers) -> &[f32] {
    match array {
        Numbers::F32(values) => values,
        Numbers::Bf16(_) => unreachable!("only f32 is accepted"),
    }
}

impl Stream {
    /// Opener of the CPU implementation.
    pub fn on_the_host(self) -> OnTheHost {
        OnTheHost(self)
    }

    fn run(self, inputs: &[Numbers], outputs: &mut [Numbers]) {
        let (first, second) = (floats(&inputs[0]), floats(inputs.get(1).unwrap_or(&inputs[0])));
        let Numbers::F32(output) = &mut outputs[0] else { unreachable!("only f32 is accepted") };
        let chunk = share(output.len());
        let chunks = output.chunks_mut(chunk).zip(first.chunks(chunk).zip(second.chunks(chunk)));
        share_out(chunks.collect(), |(to, (a, b))| match self {
            Self::Copy => to.copy_from_slice(a),
            Self::Scale => to.iter_mut().zip(a).for_each(|(to, a)| *to = FACTOR * a),
            Self::Add => to.iter_mut().zip(a).zip(b).for_each(|((to, a), b)| *to = a + b),
            Self::Triad => to.iter_mut().zip(a).zip(b).for_each(|((to, a), b)| *to = a + FACTOR * b),
        });
    }
}
