//! Products with a packed weight whose codes lie in tiles, by the warp groups of Hopper.

use std::sync::Arc;

use super::{
    ComputeCapability, LinearShape, Machine, NativeError, PackedWeight,
    boxes::Boxes,
    driver::Memory,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
    packed_product::Shared,
    sizes::{MULTIPROCESSORS, checked_size},
};
use crate::{CodeZero, Dtype, PackedForm, WeightCodes};

/// The kernels that order the codes once and multiply them, and what the blocks that share sums leave for each other.
#[derive(Debug)]
pub(super) struct TiledProduct {
    order: Kernel,
    ordered_bytes: usize,
    parts: usize,
    kernel: Kernel,
    shared: Option<Shared>,
    pub(super) algorithm: String,
}

/// Rows of the weight, and numbers of each, in a tile.
const TILE: (usize, usize) = (128, 64);

impl TiledProduct {
    /// Whether there is one. x is copied in pieces of 16 bytes, each 16 numbers have one scale, and group scales are of the type of
    /// the factors.
    pub(super) fn is_for(form: PackedForm, shape: LinearShape, capability: ComputeCapability) -> bool {
        let groups_fit = form.codes.group.is_none_or(|group| group.is_multiple_of(TILE.1) || matches!(group, 16 | 32));
        capability == ComputeCapability::WARP_GROUPS
            && form.factors() != Dtype::F32
            && groups_fit
            && form.scales_pairs()
            && shape.k.is_multiple_of(widest(form.factors()))
    }

    /// Compiles for sizes and a form that were checked, and that it is for.
    pub(super) fn new(
        machine: &Arc<Machine>,
        form: PackedForm,
        shape: LinearShape,
        added: bool,
    ) -> Result<Self, NativeError> {
        let LinearShape { m, k, n } = shape;
        let cut = Cut::new(form, shape);
        let tiles = checked_size("the number of tiles", n.div_ceil(TILE.0) * k.div_ceil(TILE.1))?;
        let ordered_bytes = tiles * tile_bytes(form.codes);
        let name = format!("tile_{}_codes", form.codes.name());
        // Scales of rows stay where they are.
        let (mut of_order, mut of_product) = (form.reads(shape), vec![("codes", ordered_bytes)]);
        if form.codes.group.is_none() {
            of_product.extend(of_order.drain(1..));
        }
        let order = Kernel::prepare(
            machine,
            Source::TileCodes,
            &name,
            macros(&name, form, shape, 1),
            Extent { reads: of_order, writes: vec![("tiles", ordered_bytes)], sizes: (n as u64, 0) },
            Geometry { blocks: tiles as u32, threads: (256, 1) },
        )?;

        let of_y = cut.tiles_of_y(shape);
        let blocks = checked_size("the number of blocks", of_y * cut.splits)?;
        let parts = of_product.len();
        let mut reads = vec![("x", shape.x_bytes(form.factors()))];
        reads.extend(of_product);
        reads.extend(form.outer_reads());
        reads.extend(added.then(|| ("added", shape.y_bytes(form.kind))));
        let mut writes = vec![("y", shape.y_bytes(form.kind))];
        let sums = blocks * TILE.0 * cut.columns;
        let shared = (cut.splits > 1).then(|| Shared::new(machine, sums, of_y)).transpose()?;
        writes.extend(shared.iter().flat_map(Shared::extent));
        let name = cut.name(form);
        let extent = Extent { reads, writes, sizes: (m as u64, n as u64) };
        let geometry = Geometry { blocks: blocks as u32, threads: (3 * 128, 1) };
        let macros = cut.macros(&name, form, shape, added);
        let kernel = Kernel::prepare(machine, Source::TiledProduct, &name, macros, extent, geometry)?;
        let boxes = Boxes { input: 0, kind: form.factors(), matrices: 1, rows: m, columns: k, height: cut.columns };
        Ok(Self {
            order,
            ordered_bytes,
            parts,
            kernel: kernel.with_boxes(vec![boxes]).with_shared(cut.shared_bytes(form.codes))?,
            shared,
            algorithm: cut.describe(&name),
        })
    }

    /// The weight in the order that is multiplied. Its zeros are then beside its codes.
    pub(super) fn ordered(&self, machine: &Machine, weight: PackedWeight) -> Result<PackedWeight, NativeError> {
        let mut codes = machine.allocate(self.ordered_bytes)?;
        let parts: Vec<&Memory> = weight.parts().take(self.order.inputs()).collect();
        self.order.enqueue_all(&parts, &mut [&mut codes.memory])?;
        Ok(PackedWeight { codes, zeros: None, ..weight })
    }

    /// Parts of an ordered weight that a run takes: scales of groups are beside their codes.
    pub(super) fn parts(&self) -> usize {
        self.parts
    }

    /// Enqueues one run on x and the parts of an ordered weight, and what is added.
    pub(super) fn enqueue(&mut self, inputs: &[&Memory], y: &mut Memory) -> Result<(), NativeError> {
        Shared::enqueue(self.shared.as_mut(), &self.kernel, inputs, y)
    }
}

/// How a product is dealt to blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    /// Rows of x that a block takes.
    columns: usize,
    /// Blocks that share the k of their columns of y.
    splits: usize,
    /// Tiles in a block's memory.
    stages: usize,
}

impl Cut {
    /// What a block may have of its memory, less what the kernel declares.
    const SHARED: usize = 224 << 10;

    fn new(form: PackedForm, shape: LinearShape) -> Self {
        let columns = shape.m.next_power_of_two().clamp(16, 128);
        let stages = (Self::SHARED / stage_bytes(form.codes, columns)).min(12);
        let cut = Self { columns, splits: 1, stages };
        // Each block has four tiles at least, or adding up costs more than it saves.
        let most = (shape.k.div_ceil(TILE.1) / 4).max(1);
        Self { splits: (MULTIPROCESSORS / cut.tiles_of_y(shape)).clamp(1, most), ..cut }
    }

    /// Parts of the output that a block, or several, make.
    fn tiles_of_y(&self, shape: LinearShape) -> usize {
        shape.n.div_ceil(TILE.0) * shape.m.div_ceil(self.columns)
    }

    /// The kernel's name, which is all that a profiler shows of the cut.
    fn name(&self, form: PackedForm) -> String {
        format!("{}_{}_product_tiled_{}x{}_k{}", form.codes.name(), form.kind, self.columns, TILE.0, self.splits)
    }

    fn shared_bytes(&self, codes: WeightCodes) -> usize {
        self.stages * stage_bytes(codes, self.columns)
    }

    fn macros(&self, name: &str, form: PackedForm, shape: LinearShape, added: bool) -> Vec<String> {
        let Self { columns, splits, stages } = self;
        let width = if shape.n.is_multiple_of(widest(form.kind)) { widest(form.kind) } else { 1 };
        let mut macros = macros(name, form, shape, width);
        macros.extend([format!("COLUMNS={columns}"), format!("SPLITS={splits}")]);
        macros.extend([format!("STAGES={stages}")]);
        macros.extend(added.then(|| "ADDED".into()));
        macros
    }

    fn describe(&self, name: &str) -> String {
        let Self { columns, splits, stages } = self;
        format!(
            "{name}: products of warp groups, {columns} rows of x and {} of the weight per block, k over {splits} blocks, \
             {stages} tiles of {} numbers in its memory",
            TILE.0, TILE.1
        )
    }
}

/// Bytes of the codes in a tile, and of their scales and zeros where groups have them.
fn tile_bytes(codes: WeightCodes) -> usize {
    let of_zeros = if codes.zero == CodeZero::Nothing { 1 } else { 2 };
    let scales = codes.group.map_or(0, |group| TILE.1.div_ceil(group) * of_zeros);
    TILE.0 * TILE.1 * codes.number.bits() as usize / 8 + 2 * TILE.0 * scales
}

/// Bytes of a tile and of the numbers of x that meet it.
fn stage_bytes(codes: WeightCodes, columns: usize) -> usize {
    tile_bytes(codes) + 2 * columns * TILE.1
}

fn macros(name: &str, form: PackedForm, shape: LinearShape, width: usize) -> Vec<String> {
    let mut macros = common_macros(name, form.factors(), width);
    macros.extend(form.macros(shape.k));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::{
        nvrtc::tests::assert_compiles,
        packed_form::tests::{every_form, microscaling},
    };
    use super::*;

    const HOPPER: ComputeCapability = ComputeCapability { major: 9, minor: 0 };

    fn forms() -> impl Iterator<Item = PackedForm> {
        let any = LinearShape { m: 16, k: 4096, n: 4096 };
        every_form().into_iter().filter(move |form| TiledProduct::is_for(*form, any, HOPPER))
    }

    #[test]
    fn it_is_for_what_whole_copies_and_steps_allow() {
        let shape = LinearShape { m: 16, k: 4096, n: 4096 };
        let is_for = |kind, codes| TiledProduct::is_for(PackedForm::weight_only(kind, codes), shape, HOPPER);
        let int4 = WeightCodes::int4;
        assert!(is_for(Dtype::Bf16, WeightCodes::int8(Dtype::Bf16)) && is_for(Dtype::F16, int4(64, Dtype::F16)));
        assert!(is_for(Dtype::Bf16, int4(32, Dtype::Bf16)) && !is_for(Dtype::Bf16, int4(96, Dtype::Bf16)));
        assert!(!is_for(Dtype::F16, int4(64, Dtype::Bf16)) && !is_for(Dtype::F32, WeightCodes::int8(Dtype::F32)));
        assert!(microscaling(Dtype::F32).into_iter().all(|form| TiledProduct::is_for(form, shape, HOPPER)));
        let int8 = PackedForm::weight_only(Dtype::Bf16, WeightCodes::int8(Dtype::Bf16));
        assert!(!TiledProduct::is_for(int8, LinearShape { k: 4100, ..shape }, HOPPER));
        assert!(!TiledProduct::is_for(int8, shape, ComputeCapability { major: 10, minor: 0 }));
    }

    #[test]
    fn a_block_has_memory_for_its_tiles_and_for_its_sums() {
        for form in forms() {
            for m in [1, 17, 33, 65, 129, 5000] {
                for k in [8, 64, 1000, 4096, 28672] {
                    let shape = LinearShape { m, k, n: 1000 };
                    let cut = Cut::new(form, shape);
                    assert!(cut.shared_bytes(form.codes) <= Cut::SHARED, "{cut:?}");
                    assert!(cut.shared_bytes(form.codes) >= 4 * cut.columns * (TILE.0 + 4), "{cut:?}");
                    assert!(cut.splits <= k.div_ceil(TILE.1), "{cut:?}");
                    assert!(cut.stages > 2, "{cut:?}");
                }
            }
        }
    }

    #[test]
    fn the_sources_compile_for_every_form_and_cut() {
        for (at, form) in forms().enumerate() {
            for m in [1, 20, 64, 500].into_iter().skip(at % 2).step_by(2) {
                let shape = LinearShape { m, k: 4096 - 8 * at, n: 4096 - at };
                let cut = Cut::new(form, shape);
                assert_compiles(Source::TiledProduct, &cut.macros("product", form, shape, at % 2 == 0));
            }
            let shape = LinearShape { m: 1, k: 129, n: 3 };
            assert_compiles(Source::TileCodes, &macros("order", form, shape, 1));
        }
    }
}
