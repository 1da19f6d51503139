//! Products of one or a few rows with a packed weight that comes through the memory of blocks in long pieces.

use std::sync::Arc;

use super::{
    ComputeCapability, LinearShape, Machine, NativeError,
    driver::Memory,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
    sizes::MULTIPROCESSORS,
};
use crate::{CodeZero, Dtype, Element, PackedForm, WeightCodes};

/// The kernel.
#[derive(Debug)]
pub(super) struct StreamedProduct {
    kernel: Kernel,
    pub(super) algorithm: String,
}

/// How a product is dealt to warps and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// Warps of a block that multiply.
    warps: usize,
    /// Blocks that share a multiprocessor.
    at_once: usize,
    /// Parts of a tile in a block's memory.
    stages: usize,
    shared_bytes: usize,
}

/// Rows of the weight in a tile.
const TILE: usize = 16;
/// Numbers that share a scale, and that four threads multiply at once.
const CHUNK: usize = 128;
/// Chunks of a row that a warp has in a stage.
const PART_CHUNKS: usize = 4;

impl Cut {
    /// What all blocks on a multiprocessor may have, and what each has of it besides what it asks for.
    const SHARED: usize = 228 << 10;
    const OWN: usize = (1 << 10) + 256;

    /// How a product is dealt out, if this kernel is for it: where it was faster than `packed_product` on an H200, which for
    /// more than one row it is for large weights.
    pub(super) fn new(form: PackedForm, shape: LinearShape, capability: ComputeCapability) -> Option<Self> {
        let LinearShape { m, k, n } = shape;
        let is_large = n.saturating_mul(k) >= 1 << 26;
        let is_for = capability == ComputeCapability::WARP_GROUPS
            && (m == 1 || m <= 8 && is_large)
            && form.factors() == form.kind
            && form.kind != Dtype::F32
            && of_half_bytes(form.codes)
            && n.is_multiple_of(TILE)
            && n / TILE >= MULTIPROCESSORS;
        // Pieces of 1 KiB and two blocks, of which one multiplies while the other waits, or longer pieces and one. Fewer stages
        // would not keep the memory busy.
        let ways = [(4, 2, 4), (8, 1, 3), (7, 1, 3), (6, 1, 3), (5, 1, 3)];
        let mut fitting = ways.into_iter().filter_map(|(warps, at_once, least)| {
            let whole = k.is_multiple_of(CHUNK * PART_CHUNKS * warps);
            let room = Self::SHARED / at_once - Self::OWN;
            let cuts = (least..=12).rev().map(|stages| Self::of(form, shape, warps, at_once, stages));
            whole.then(|| cuts.into_iter().find(|cut| cut.shared_bytes <= room)).flatten()
        });
        is_for.then(|| fitting.next()).flatten()
    }

    fn of(form: PackedForm, shape: LinearShape, warps: usize, at_once: usize, stages: usize) -> Self {
        let LinearShape { m, k, .. } = shape;
        let (chunks, stage_chunks) = (k / CHUNK, PART_CHUNKS * warps);
        let parts = chunks / stage_chunks;
        let row = stage_chunks * CHUNK / 2;
        let pitch = if row % 128 == 64 { row } else { row + 64 };
        let kinds = if form.codes.zero == CodeZero::Nothing { 1 } else { 2 };
        let slots = stages.div_ceil(parts) + usize::from(parts > 1);
        let of_x = m * k * form.kind.width() + 4 * chunks * m;
        let of_warps = 2 * 4 * warps * m * TILE;
        let shared_bytes = stages * TILE * pitch + slots * kinds * TILE * chunks * 2 + of_x + of_warps;
        Self { warps, at_once, stages, shared_bytes }
    }

    fn macros(&self, name: &str, form: PackedForm, shape: LinearShape, added: bool) -> Vec<String> {
        let Self { warps, at_once, stages, .. } = self;
        let mut macros = common_macros(name, form.factors(), widest(form.factors()));
        macros.extend(form.macros(shape.k));
        macros.extend([format!("ROWS={}", shape.m), format!("PART_CHUNKS={PART_CHUNKS}")]);
        macros.extend([format!("WARPS={warps}"), format!("STAGES={stages}"), format!("AT_ONCE={at_once}")]);
        macros.extend(added.then(|| "ADDED".into()));
        macros
    }
}

/// Whether codes are integers of 4 bits in groups of a chunk, whose scales and zeros have two bytes each.
fn of_half_bytes(codes: WeightCodes) -> bool {
    let of_two_bytes = |element| matches!(element, Element::Float(Dtype::F16 | Dtype::Bf16));
    let zeros_fit = match codes.zero {
        CodeZero::Nothing => true,
        CodeZero::InSteps(zero) | CodeZero::InUnits(zero) => of_two_bytes(zero),
    };
    matches!(codes.number, Element::Signed(4) | Element::Unsigned(4))
        && codes.group == Some(CHUNK)
        && of_two_bytes(codes.scale)
        && zeros_fit
}

impl StreamedProduct {
    /// Compiles for sizes and a form that were checked, and a cut of them.
    pub(super) fn new(
        machine: &Arc<Machine>,
        form: PackedForm,
        shape: LinearShape,
        cut: Cut,
        added: bool,
    ) -> Result<Self, NativeError> {
        let LinearShape { m, n, .. } = shape;
        let Cut { warps, at_once, stages, .. } = cut;
        let name = format!("{}_{}_product_streamed_{m}x{TILE}_k{warps}", form.codes.name(), form.kind);
        let mut reads = vec![("x", shape.x_bytes(form.kind))];
        reads.extend(form.reads(shape));
        reads.extend(added.then(|| ("added", shape.y_bytes(form.kind))));
        let writes = vec![("y", shape.y_bytes(form.kind))];
        let geometry = Geometry {
            blocks: (n / TILE).min(at_once * MULTIPROCESSORS) as u32,
            threads: (32 * (warps as u32 + 1), 1),
        };
        let kernel = Kernel::prepare(
            machine,
            Source::StreamedProduct,
            &name,
            cut.macros(&name, form, shape, added),
            Extent { reads, writes, sizes: (m as u64, n as u64) },
            geometry,
        )?;
        let algorithm = format!(
            "{name}: tensor cores, {at_once} blocks at once on a multiprocessor, {TILE} rows of the weight after each other, k over \
             {warps} warps, {stages} pieces of each row on their way"
        );
        Ok(Self { kernel: kernel.with_shared(cut.shared_bytes)?, algorithm })
    }

    /// Enqueues one run on x, the parts of the weight, and what is added.
    pub(super) fn enqueue(&self, inputs: &[&Memory], y: &mut Memory) -> Result<(), NativeError> {
        self.kernel.enqueue_all(inputs, &mut [y])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{nvrtc::tests::assert_compiles, packed_form::tests::every_form};
    use super::*;

    const HOPPER: ComputeCapability = ComputeCapability::WARP_GROUPS;

    fn cut(m: usize, k: usize, n: usize) -> Option<Cut> {
        let form = PackedForm::weight_only(Dtype::Bf16, WeightCodes::int4(CHUNK, Dtype::Bf16));
        Cut::new(form, LinearShape { m, k, n }, HOPPER)
    }

    #[test]
    fn one_row_and_few_by_large_weights_are_streamed() {
        let ways = |m, k, n| cut(m, k, n).map(|cut| (cut.warps, cut.at_once, cut.stages));
        assert_eq!(ways(1, 8192, 28672), Some((4, 2, 4)));
        assert_eq!([ways(4, 8192, 28672), ways(1, 28672, 8192)], [Some((8, 1, 4)); 2]);
        assert_eq!((ways(1, 5120, 5120), ways(1, 3584, 4096)), (Some((5, 1, 9)), Some((7, 1, 7))));
        // x takes the memory; few rows of the weight; parts of tiles and of stages; several rows by a small weight.
        let refused =
            [(8, 8192, 28672), (1, 4096, 2096), (1, 4096, 4104), (1, 4224, 4096), (2, 4096, 4096), (9, 8192, 28672)];
        assert!(refused.into_iter().all(|(m, k, n)| cut(m, k, n).is_none()));
    }

    #[test]
    fn blocks_that_run_at_once_fit_and_the_source_compiles_for_them() {
        for m in 1..=8 {
            for k in (1..=64).map(|at| 512 * at) {
                let Some(cut) = cut(m, k, 1 << 17) else { continue };
                assert!(cut.at_once * (cut.shared_bytes + Cut::OWN) <= Cut::SHARED, "{m} {k} {cut:?}");
                assert!(2 * 8 * cut.stages <= 256 && 32 * (cut.warps + 1) * cut.at_once <= 512, "{m} {k} {cut:?}");
            }
        }
        let forms: Vec<_> = every_form().into_iter().filter(|form| of_half_bytes(form.codes)).collect();
        for (at, form) in forms.into_iter().enumerate() {
            for (m, k) in [(1, 4096), (3, 8192), (5, 7168)] {
                let shape = LinearShape { m, k, n: 1 << 17 };
                let Some(cut) = Cut::new(form, shape, HOPPER) else { continue };
                assert_compiles(Source::StreamedProduct, &cut.macros("product", form, shape, at % 2 == 0));
            }
        }
    }
}
