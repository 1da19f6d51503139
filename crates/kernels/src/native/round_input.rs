//! Inputs of layers as the nearest numbers of a microscaling format.

use std::sync::Arc;

use super::{
    LayerNorm, Machine, NativeError,
    driver::Memory,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
    quantize_input::resident_blocks,
    row_cut::RowCut,
    sizes::checked_size,
};
use crate::{Dtype, Element, InputNumbers};

/// The kernels that round x, and its numbers in bf16.
#[derive(Debug)]
pub(super) struct RoundInput {
    round: Kernel,
    whole: Option<Whole>,
    pub(super) numbers: Memory,
    /// What multiplies the sums besides; 1 where nothing does.
    pub(super) outer: Memory,
    pub(super) algorithm: String,
}

/// What finds the scale of a whole tensor.
#[derive(Debug)]
struct Whole {
    kernel: Kernel,
    state: Memory,
}

const THREADS: usize = 256;
/// What takes a tensor's largest magnitude to the largest e2m1 under the largest e4m3.
const LARGEST_OF_NVFP4: &str = "2688.0f";

impl RoundInput {
    /// Compiles for x[rows, columns], unless it is taken as it is.
    pub(super) fn new(
        machine: &Arc<Machine>,
        kind: Dtype,
        numbers: InputNumbers,
        (rows, columns): (usize, usize),
    ) -> Result<Option<Self>, NativeError> {
        if numbers == InputNumbers::AsTheyAre {
            return Ok(None);
        }
        let (rows, columns) = (checked_size("m", rows)?, checked_size("k", columns)?);
        let (block, name) = (block(numbers), name(kind, numbers));
        let width = width(kind, columns);
        let threads = rows * columns.div_ceil(block) * (block / width);
        let blocks = checked_size("the number of blocks", threads.div_ceil(THREADS))?;
        let x = ("x", rows * columns * kind.width());
        let sizes = (rows as u64, columns as u64);
        let whole = (numbers == InputNumbers::Nvfp4).then(|| {
            machine.require("the scale of a whole input", super::ComputeCapability::WARP_MAXIMA)?;
            let cut = RowCut::of_row(kind, columns);
            let name = format!("largest_{kind}");
            let extent = Extent { reads: vec![x], writes: vec![("scale", 4), ("state", 8)], sizes };
            let blocks = (rows.div_ceil(cut.rows) as u32).min(resident_blocks(cut));
            let geometry = Geometry { blocks, threads: (cut.threads as u32, cut.rows as u32) };
            let macros = largest_macros(&name, kind, cut);
            let kernel = Kernel::prepare(machine, Source::LargestInput, &name, macros, extent, geometry)?;
            let mut state = Memory::allocate(machine.stream(), 8)?;
            state.fill(0)?;
            Ok::<_, NativeError>(Whole { kernel, state })
        });
        let whole = whole.transpose()?;
        let mut reads = vec![x];
        reads.extend(whole.is_some().then_some(("scale", 4)));
        let bytes = 2 * rows * columns;
        let extent = Extent { reads, writes: vec![("numbers", bytes)], sizes };
        let geometry = Geometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        let macros = macros(&name, kind, numbers, width);
        let round = Kernel::prepare(machine, Source::RoundInput, &name, macros, extent, geometry)?;
        let mut outer = Memory::allocate(machine.stream(), 4)?;
        outer.upload(&1.0f32.to_le_bytes())?;
        let first = if whole.is_some() { format!("largest_{kind}; then ") } else { String::new() };
        let algorithm = format!("{first}{name}: {width} numbers per thread, {block} under a scale");
        Ok(Some(Self { round, whole, numbers: Memory::allocate(machine.stream(), bytes)?, outer, algorithm }))
    }

    /// Enqueues one run.
    pub(super) fn enqueue(&mut self, x: &Memory) -> Result<(), NativeError> {
        let Self { round, whole, numbers, outer, .. } = self;
        match whole {
            None => round.enqueue(x, numbers),
            Some(Whole { kernel, state }) => {
                kernel.enqueue_all(&[x], &mut [outer, state])?;
                round.enqueue_all(&[x, outer], &mut [numbers])
            }
        }
    }
}

/// Numbers that share a scale.
fn block(numbers: InputNumbers) -> usize {
    if numbers == InputNumbers::Nvfp4 { 16 } else { 32 }
}

/// Numbers of a thread: 16 bytes of them, where rows allow it.
fn width(kind: Dtype, columns: usize) -> usize {
    if columns.is_multiple_of(widest(kind)) { widest(kind) } else { 1 }
}

fn name(kind: Dtype, numbers: InputNumbers) -> String {
    match numbers {
        InputNumbers::Mx(Element::E2m1) => format!("round_{kind}_to_mxfp4"),
        InputNumbers::Mx(_) => format!("round_{kind}_to_mxfp8"),
        InputNumbers::Nvfp4 => format!("round_{kind}_to_nvfp4"),
        InputNumbers::AsTheyAre => format!("copy_{kind}"),
    }
}

fn macros(name: &str, kind: Dtype, numbers: InputNumbers, width: usize) -> Vec<String> {
    let mut macros = common_macros(name, kind, width);
    macros.extend([format!("THREADS={THREADS}"), format!("BLOCK={}", block(numbers))]);
    let of_e4m3 = ["MANTISSA=3", "LEAST=0x1p-6f", "LARGEST=448.0f"];
    let of_e2m1 = ["MANTISSA=1", "LEAST=1.0f", "LARGEST=6.0f"];
    let number = if numbers == InputNumbers::Mx(Element::E4m3) { of_e4m3 } else { of_e2m1 };
    macros.extend(number.map(String::from));
    macros.extend((numbers == InputNumbers::Nvfp4).then(|| "NVFP4".into()));
    macros
}

/// For the kernel that finds the largest magnitude of all.
fn largest_macros(name: &str, kind: Dtype, cut: RowCut) -> Vec<String> {
    let mut macros = common_macros(name, kind, cut.width);
    macros.extend(cut.macros());
    // No code is made, but the source wants to know which.
    macros.extend([format!("EPSILON={:e}f", LayerNorm::EPSILON), "CODES_INT8".into(), "TENSOR".into()]);
    macros.push(format!("SCALED_TO={LARGEST_OF_NVFP4}"));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_sources_compile_for_every_type_and_width() {
        for kind in Dtype::ALL {
            for numbers in [InputNumbers::Mx(Element::E4m3), InputNumbers::Mx(Element::E2m1), InputNumbers::Nvfp4] {
                for columns in [129, 4096] {
                    assert_compiles(Source::RoundInput, &macros("rounded", kind, numbers, width(kind, columns)));
                }
            }
            assert_compiles(Source::LargestInput, &largest_macros("largest", kind, RowCut::of_row(kind, 4096)));
        }
    }
}
