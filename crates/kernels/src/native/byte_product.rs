//! Products of codes of a byte whose scales, activation and addend are applied before anything is written, by the warp groups of
//! Hopper.

use std::sync::Arc;

use super::{
    ComputeCapability, LinearShape, Machine, NativeError,
    boxes::Boxes,
    driver::Memory,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
    sizes::{MULTIPROCESSORS, checked_size},
};
use crate::{Activation, Dtype, DynamicCodes, DynamicForm, Float8Sums};

/// The kernel.
#[derive(Debug)]
pub(super) struct ByteProduct {
    kernel: Kernel,
    pub(super) algorithm: String,
}

/// Rows and columns of y in a block's tile, of which two lie under each other in a cluster.
const TILE: (usize, usize) = (128, 256);
const CLUSTER: usize = 2;
/// A group that brings and two that multiply.
const THREADS: u32 = 3 * 128;
/// Codes of a row in a step.
const STEP: usize = 128;
/// Steps in a block's memory.
const STAGES: usize = 4;
const SHARED: usize = STAGES * STEP * (TILE.0 + TILE.1);
/// Tiles across that are gone down together.
const BAND: usize = 8;
/// With fewer, a third of them has nothing to do, and cuBLASLt has smaller tiles: 512 rows by 4096 columns took 28 us here and 26
/// there, 1024 took 33 and 45.
const FEWEST_PAIRS: usize = MULTIPROCESSORS / CLUSTER * 2 / 3;

impl ByteProduct {
    /// Whether there is one, and it is the fastest. y is written in pieces of 16 bytes. Of e4m3 cuBLASLt applies scales too, and a
    /// ReLU of nothing added; then it is as fast, and faster for few tiles.
    pub(super) fn is_for(form: DynamicForm, shape: LinearShape, capability: ComputeCapability) -> bool {
        let applied = matches!((form.activation, form.added), (None, _) | (Some(Activation::Relu), false));
        let gains = match form.codes {
            DynamicCodes::Int8 => true,
            DynamicCodes::E4m3 => form.sums == Float8Sums::Fast && !applied,
            DynamicCodes::Int4 | DynamicCodes::Int4InGroups => false,
        };
        gains
            && capability == ComputeCapability::WARP_GROUPS
            && form.kind != Dtype::F32
            && shape.n.is_multiple_of(widest(form.kind))
            && shape.m > TILE.0
            && pairs(shape) >= FEWEST_PAIRS
    }

    /// Compiles for sizes and a form that were checked, and that it is for. Rows of codes are `filled_k` long.
    pub(super) fn new(
        machine: &Arc<Machine>,
        form: DynamicForm,
        shape: LinearShape,
        filled_k: usize,
    ) -> Result<Self, NativeError> {
        let LinearShape { m, n, .. } = shape;
        let pairs = checked_size("the number of tiles", pairs(shape))?;
        let name = format!("{}_product{}", form.codes.name(), form.end_name());
        let mut reads = vec![("x", m * filled_k), ("w", n * filled_k)];
        reads.extend(form.scales(shape));
        reads.extend(form.added.then(|| ("added", shape.y_bytes(form.kind))));
        let writes = vec![("y", shape.y_bytes(form.kind))];
        let extent = Extent { reads, writes, sizes: (m as u64, n as u64) };
        let blocks = CLUSTER * pairs.min(MULTIPROCESSORS / CLUSTER);
        let geometry = Geometry { blocks: blocks as u32, threads: (THREADS, 1) };
        let kernel =
            Kernel::prepare(machine, Source::ByteProduct, &name, macros(&name, form, filled_k), extent, geometry)?;
        Ok(Self {
            kernel: kernel
                .with_boxes(vec![
                    Boxes::of_codes(0, m, filled_k, TILE.0),
                    Boxes::of_codes(1, n, filled_k, TILE.1 / CLUSTER),
                ])
                .with_shared(SHARED)?,
            algorithm: format!(
                "{name}: products of warp groups, {} rows by {} columns a tile, {blocks} blocks in clusters of {CLUSTER}, \
                 {STAGES} steps of {STEP} codes in a block's memory",
                TILE.0, TILE.1
            ),
        })
    }

    /// Enqueues one run on the codes of x and w, the scales of rows and of columns, and what is added.
    pub(super) fn enqueue(
        &self,
        codes: [&Memory; 2],
        scales: [&Memory; 2],
        added: Option<&Memory>,
        y: &mut Memory,
    ) -> Result<(), NativeError> {
        let inputs: Vec<&Memory> = codes.into_iter().chain(scales).chain(added).collect();
        self.kernel.enqueue_all(&inputs, &mut [y])
    }
}

fn pairs(shape: LinearShape) -> usize {
    shape.m.div_ceil(CLUSTER * TILE.0) * shape.n.div_ceil(TILE.1)
}

fn macros(name: &str, form: DynamicForm, filled_k: usize) -> Vec<String> {
    let mut macros = common_macros(name, form.kind, widest(form.kind));
    macros.extend([format!("K={filled_k}"), format!("STAGES={STAGES}"), format!("BAND={BAND}")]);
    macros.extend(form.macros());
    macros.extend(form.end_macros());
    macros
}

#[cfg(test)]
mod tests {
    use super::super::{nvrtc::tests::assert_compiles, quantize_input::tests::every_form};
    use super::*;

    const HOPPER: ComputeCapability = ComputeCapability { major: 9, minor: 0 };

    #[test]
    fn it_is_for_codes_of_a_byte_whose_end_cublaslt_does_not_apply() {
        for form in every_form() {
            let is_for = |sums, activation, added, m, n| {
                let form = DynamicForm { sums, activation, added, ..form };
                ByteProduct::is_for(form, LinearShape { m, k: 100, n }, HOPPER)
            };
            let halves = form.kind != Dtype::F32;
            let (int8, e4m3) = (halves && form.codes == DynamicCodes::Int8, halves && form.codes == DynamicCodes::E4m3);
            let (fast, promoted, silu) = (Float8Sums::Fast, Float8Sums::Promoted, Some(Activation::Silu));
            for (activation, added, applied) in [
                (None, true, true),
                (Some(Activation::Relu), false, true),
                (Some(Activation::Relu), true, false),
                (silu, false, false),
            ] {
                assert_eq!(is_for(fast, activation, added, 1024, 4096), int8 || e4m3 && !applied, "{form:?}");
                assert_eq!(is_for(promoted, activation, added, 1024, 4096), int8, "{form:?}");
            }
            for (m, n) in [(1024, 4100), (512, 4096), (128, 1 << 16)] {
                assert!(!is_for(fast, silu, false, m, n), "{form:?} {m} {n}");
            }
        }
    }

    #[test]
    fn the_source_compiles_for_every_form() {
        let activations = [None, Some(Activation::Gelu), Some(Activation::Relu), Some(Activation::Silu)];
        for (form, activation) in every_form().zip(activations.into_iter().cycle()) {
            let form = DynamicForm { activation, added: activation.is_none(), sums: Float8Sums::Fast, ..form };
            if ByteProduct::is_for(form, LinearShape { m: 1024, k: 100, n: 4096 }, HOPPER) {
                assert_compiles(Source::ByteProduct, &macros("product", form, 4096 + 32));
            }
        }
    }
}
