//! One number of two vectors.

use std::sync::Arc;

use super::{
    Buffer, Machine, NativeError,
    grid_total::GridTotal,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
};
use crate::Dtype;

/// What is computed of two vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PairFunction {
    /// The sum of their products.
    Dot,
    /// The mean of their squared differences.
    MeanSquaredDifference,
}

impl PairFunction {
    fn name(self) -> &'static str {
        match self {
            Self::Dot => "dot",
            Self::MeanSquaredDifference => "mean_squared_difference",
        }
    }

    /// Its name in the CUDA source.
    fn term(self) -> &'static str {
        match self {
            Self::Dot => "product",
            Self::MeanSquaredDifference => "squared_difference",
        }
    }

    fn divisor(self, length: usize) -> usize {
        match self {
            Self::Dot => 1,
            Self::MeanSquaredDifference => length,
        }
    }
}

/// A plan of one f32 number of two vectors, with sums in f32 in an order that is always the same.
#[derive(Debug)]
pub struct PairSum {
    kernel: Kernel,
    total: GridTotal,
    algorithm: String,
}

const THREADS: usize = 256;
/// Threads of up to 48 registers that share a multiprocessor.
const RESIDENT: usize = 1280;
/// So that each thread has four loads of 16 bytes in flight.
const PIECES: usize = 2;

impl PairSum {
    /// Compiles for vectors of `length` elements.
    pub fn new(
        machine: &Arc<Machine>,
        kind: Dtype,
        function: PairFunction,
        length: usize,
    ) -> Result<Self, NativeError> {
        let width = widest(kind);
        let limit = (i32::MAX as usize) * width;
        if !(1..=limit).contains(&length) {
            return Err(NativeError::InvalidSize { what: "the number of elements", limit, value: length });
        }
        let blocks = GridTotal::blocks((length / width).div_ceil(THREADS * PIECES).max(1), THREADS, RESIDENT);
        let name = format!("{}_{kind}", function.name());
        let bytes = length * kind.width();
        let mut extent = Extent {
            reads: vec![("a", bytes), ("b", bytes)],
            writes: vec![("y", 4)],
            sizes: (length as u64, function.divisor(length) as u64),
        };
        let total = GridTotal::new(machine, blocks, &mut extent)?;
        let geometry = Geometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        let macros = macros(&name, kind, function);
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::PairSum, &name, macros, extent, geometry)?,
            total,
            algorithm: format!(
                "{name}: {blocks} blocks of {THREADS} threads, {PIECES} accesses of {width} elements of each vector per \
                 thread in flight, the last block adds up"
            ),
        })
    }

    /// Enqueues one run; y is a single f32.
    pub fn enqueue(&mut self, a: &Buffer, b: &Buffer, y: &mut Buffer) -> Result<(), NativeError> {
        self.total.enqueue(&self.kernel, &[&a.memory, &b.memory], &mut y.memory)
    }

    /// The kernel and how it was cut up.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

fn macros(name: &str, kind: Dtype, function: PairFunction) -> Vec<String> {
    let mut macros = common_macros(name, kind, widest(kind));
    macros.push(format!("THREADS={THREADS}"));
    macros.push(format!("PIECES={PIECES}"));
    macros.push(GridTotal::macros(THREADS, RESIDENT));
    macros.push(format!("TERM={}", function.term()));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_source_compiles_for_every_function_and_kind() {
        for kind in Dtype::ALL {
            for function in [PairFunction::Dot, PairFunction::MeanSquaredDifference] {
                assert_compiles(Source::PairSum, &macros("pair_sum", kind, function));
            }
        }
    }
}
