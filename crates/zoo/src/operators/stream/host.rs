//! STREAM kernels on the CPU in plain Rust, into preallocated memory: burn allocates each output, which costs more than
//! the copy.

use super::{FACTOR, Stream};
use crate::host::operator::{self, HostKernel};
use crate::{OpenRequest, Task, Workload, WorkloadFactory, ZooError};
use calorimeter_kernels::host::{FloatVec, run_parallel};
use calorimeter_recipes::{Dtype, Element, QuantConfig};

/// Opens a STREAM kernel on the CPU.
#[derive(Debug, Clone, Copy)]
pub struct HostStream(Stream);

impl WorkloadFactory for HostStream {
    fn accepts(&self, task: &Task, _: &QuantConfig) -> Result<(), String> {
        match task {
            Task::Operator(problem) if problem.spec.element != Element::Float(Dtype::F32) => {
                Err(format!("{} has a `native` kernel on the CPU in f32 only", problem.operator.info().name))
            }
            _ => Ok(()),
        }
    }

    fn open(&self, opening: OpenRequest<'_>) -> Result<Box<dyn Workload>, ZooError> {
        let (problem, inputs) = opening.operator()?;
        let (stream, name) = (self.0, problem.operator.info().name);
        let name = format!("{name} on {} threads", rayon::current_num_threads());
        let run = Box::new(move |inputs: &[_], outputs: &mut [_]| stream.run(inputs, outputs));
        Ok(operator::open(problem, inputs, opening.setup.sets, HostKernel { name, run }))
    }
}

/// Elements per thread, in one chunk, because memcpy writes large chunks with non-temporal stores. Chunks are whole
/// pages, so that no two threads share one. Below the minimum, copying is faster than waking a thread.
fn chunk_len(elements: usize) -> usize {
    const ELEMENTS_PER_PAGE: usize = 1024;
    const MIN_CHUNK: usize = 1 << 16;
    elements.div_ceil(rayon::current_num_threads()).next_multiple_of(ELEMENTS_PER_PAGE).max(MIN_CHUNK)
}

fn f32_values(array: &FloatVec) -> &[f32] {
    match array {
        FloatVec::F32(values) => values,
        FloatVec::Bf16(_) => unreachable!("only f32 is accepted"),
    }
}

impl Stream {
    /// Opener of the CPU implementation.
    pub fn host_opener(self) -> HostStream {
        HostStream(self)
    }

    fn run(self, inputs: &[FloatVec], outputs: &mut [FloatVec]) {
        let (first, second) = (f32_values(&inputs[0]), f32_values(inputs.get(1).unwrap_or(&inputs[0])));
        let FloatVec::F32(output) = &mut outputs[0] else { unreachable!("only f32 is accepted") };
        let chunk = chunk_len(output.len());
        let chunks = output.chunks_mut(chunk).zip(first.chunks(chunk).zip(second.chunks(chunk)));
        run_parallel(chunks.collect(), |(to, (a, b))| match self {
            Self::Copy => to.copy_from_slice(a),
            Self::Scale => to.iter_mut().zip(a).for_each(|(to, a)| *to = FACTOR * a),
            Self::Add => to.iter_mut().zip(a).zip(b).for_each(|((to, a), b)| *to = a + b),
            Self::Triad => to.iter_mut().zip(a).zip(b).for_each(|((to, a), b)| *to = a + FACTOR * b),
        });
    }
}
