//! Products of few rows with a packed weight, which stays packed.

use std::sync::Arc;

use super::{
    ComputeCapability, LinearShape, Machine, NativeError,
    driver::Memory,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
    sizes::{MULTIPROCESSORS, checked_size},
};
use crate::{Dtype, PackedForm};

/// The kernel, and what the blocks that share sums leave for each other.
#[derive(Debug)]
pub(super) struct PackedProduct {
    kernel: Kernel,
    shared: Option<Shared>,
    pub(super) algorithm: String,
}

/// The macro of a kernel that adds a matrix to its product.
const ADDED: &str = "ADDED";

/// Sums of parts of k, and how many blocks have left theirs.
#[derive(Debug)]
pub(super) struct Shared {
    parts: Memory,
    arrived: Memory,
    extent: [(&'static str, usize); 2],
}

impl Shared {
    /// For so many sums of all blocks, which make so many parts of the output.
    pub(super) fn new(machine: &Machine, sums: usize, of_y: usize) -> Result<Self, NativeError> {
        let [of_parts, of_arrived] = [4 * sums, 4 * of_y];
        let parts = Memory::allocate(machine.stream(), of_parts)?;
        let mut arrived = Memory::allocate(machine.stream(), of_arrived)?;
        arrived.fill(0)?;
        Ok(Self { parts, arrived, extent: [("parts", of_parts), ("arrived", of_arrived)] })
    }

    /// What a kernel writes of it.
    pub(super) fn extent(&self) -> [(&'static str, usize); 2] {
        self.extent
    }

    /// Enqueues a run of a kernel that writes y and then this.
    pub(super) fn enqueue(
        this: Option<&mut Self>,
        kernel: &Kernel,
        inputs: &[&Memory],
        y: &mut Memory,
    ) -> Result<(), NativeError> {
        match this {
            None => kernel.enqueue_all(inputs, &mut [y]),
            Some(Self { parts, arrived, .. }) => kernel.enqueue_all(inputs, &mut [y, parts, arrived]),
        }
    }
}

impl PackedProduct {
    /// Compiles for sizes and a form that were checked.
    pub(super) fn new(
        machine: &Arc<Machine>,
        form: PackedForm,
        shape: LinearShape,
        added: bool,
    ) -> Result<Self, NativeError> {
        let cut = Cut::new(form, shape, machine.compute_capability());
        let LinearShape { m, n, .. } = shape;
        let name = cut.name(form);
        let blocks = checked_size("the number of blocks", cut.tiles_of_y(shape) * cut.splits)?;
        let mut reads = vec![("x", shape.x_bytes(form.factors()))];
        reads.extend(form.reads(shape));
        reads.extend(form.outer_reads());
        reads.extend(added.then(|| ("added", shape.y_bytes(form.kind))));
        let mut writes = vec![("y", shape.y_bytes(form.kind))];
        let sums = blocks * cut.rows() * cut.columns;
        let shared = (cut.splits > 1).then(|| Shared::new(machine, sums, cut.tiles_of_y(shape))).transpose()?;
        writes.extend(shared.iter().flat_map(Shared::extent));
        let geometry = Geometry { blocks: blocks as u32, threads: (32 * cut.warps as u32, cut.tiles as u32) };
        let extent = Extent { reads, writes, sizes: (m as u64, n as u64) };
        let mut macros = cut.macros(&name, form, shape.k);
        macros.extend(added.then(|| ADDED.into()));
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::PackedProduct, &name, macros, extent, geometry)?,
            shared,
            algorithm: cut.describe(&name),
        })
    }

    /// Enqueues one run on x and the parts of the weight.
    pub(super) fn enqueue(&mut self, inputs: &[&Memory], y: &mut Memory) -> Result<(), NativeError> {
        Shared::enqueue(self.shared.as_mut(), &self.kernel, inputs, y)
    }
}

/// How a product is dealt to threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    /// Whether tensor cores multiply.
    tensor: bool,
    /// Rows of x that a block takes.
    columns: usize,
    /// Warps that share the k of some rows of the weight.
    warps: usize,
    /// Groups of such warps in a block.
    tiles: usize,
    /// Times 16 rows of the weight that a warp takes.
    tall: usize,
    /// Blocks that share the k of their rows.
    splits: usize,
    /// Neighboring chunks that a thread waits for at once.
    flight: usize,
    /// Blocks that share a multiprocessor, by which registers are dealt out.
    at_once: usize,
    /// Numbers of x in an access.
    width: usize,
    /// Whether blocks take whole rows of the weight, and no more than there are.
    fits: bool,
}

impl Cut {
    /// Two for each multiprocessor.
    const BLOCKS: usize = 2 * MULTIPROCESSORS;
    /// Rows of the weight in a fragment of tensor cores, and in a tile.
    const TILE: usize = 16;
    /// Rows of x in a fragment.
    const FRAGMENT: usize = 8;
    /// A chunk is a piece for each of four threads.
    const PIECES: usize = 4;
    /// The first GPUs whose tensor cores take bf16.
    const TENSOR: ComputeCapability = ComputeCapability { major: 8, minor: 0 };

    fn new(form: PackedForm, shape: LinearShape, capability: ComputeCapability) -> Self {
        let LinearShape { m, k, .. } = shape;
        let tensor = form.factors() != Dtype::F32 && capability >= Self::TENSOR;
        // 64 rows are 32 sums in a thread; without tensor cores 8 rows are 16 of them, and a row costs as much as a weight.
        let columns = if tensor { m.next_multiple_of(Self::FRAGMENT).min(64) } else { m.min(Self::FRAGMENT) };
        // Each block reads all of x, so more rows of x need more rows of the weight in a block.
        let (warps, tiles) = match columns {
            ..=8 => (8, 1),
            9..=32 => (4, 2),
            _ => (2, 4),
        };
        let widest = widest(form.factors());
        let width = if k.is_multiple_of(widest) { widest } else { 1 };
        // Without tensor cores a thread needs the registers.
        let at_once = if tensor { 2 } else { 1 };
        let cut = Self { tensor, columns, warps, tiles, tall: 1, splits: 1, flight: 1, at_once, width, fits: false };
        // Each warp keeps two chunks at least, or adding up costs more than it saves.
        let chunks = k.div_ceil(Self::PIECES * form.codes.piece_codes());
        let splits = (Self::BLOCKS / cut.tiles_of_y(shape)).clamp(1, (chunks / (2 * warps)).max(1));
        // What registers hold, and no more than there is. Powers of two leave no chunks over more often than others.
        let words = match (tensor, columns) {
            (true, ..=8) => 20,
            (true, ..=32) => 16,
            _ => 8,
        };
        let most_in_flight = 1 << (words / form.codes.piece_words()).clamp(1, 4).ilog2();
        let flight = chunks.div_ceil(warps * splits).min(most_in_flight);
        let cut = Self { splits, flight, ..cut };
        let cut = cut.of_many(form, shape).unwrap_or(cut);
        Self { fits: shape.n.is_multiple_of(cut.rows()), ..cut }
    }

    /// The cut where few rows of x meet so many of the weight that blocks follow each other: more of them at once, or more rows
    /// of the weight for what a warp has of x.
    fn of_many(self, form: PackedForm, shape: LinearShape) -> Option<Self> {
        let follow = self.tensor && self.columns == Self::FRAGMENT && self.tiles_of_y(shape) >= 4 * Self::BLOCKS;
        let of_chunks = form.codes.group.is_some_and(|group| group.is_multiple_of(128));
        let chunks = shape.k.div_ceil(Self::PIECES * form.codes.piece_codes());
        match form.codes.number.bits() {
            8 if follow => Some(Self { flight: 1, at_once: 4, ..self }),
            4 if follow && of_chunks && chunks >= 8 => Some(Self { warps: 4, tall: 2, flight: 2, at_once: 4, ..self }),
            _ => None,
        }
    }

    /// Rows of the weight in a block.
    fn rows(&self) -> usize {
        Self::TILE * self.tall * self.tiles
    }

    /// Parts of the output that a block, or several, make.
    fn tiles_of_y(&self, shape: LinearShape) -> usize {
        shape.n.div_ceil(self.rows()) * shape.m.div_ceil(self.columns)
    }

    /// The kernel's name, which is all that a profiler shows of the cut.
    fn name(&self, form: PackedForm) -> String {
        let Self { tensor, columns, warps, splits, .. } = self;
        let by = if *tensor { "tensor" } else { "float" };
        format!("{}_{}_product_{by}_{columns}x{}_k{warps}x{splits}", form.codes.name(), form.kind, self.rows())
    }

    fn macros(&self, name: &str, form: PackedForm, k: usize) -> Vec<String> {
        let Self { tensor, columns, warps, tiles, tall, splits, flight, at_once, width, fits } = *self;
        let mut macros = common_macros(name, form.factors(), width);
        macros.extend(form.macros(k));
        macros.push(format!("TENSOR={}", u8::from(tensor)));
        macros.push(format!("PAIR_SCALES={}", u8::from(form.scales_pairs())));
        macros.push(format!("PIECE_WORDS={}", form.codes.piece_words()));
        macros.push(format!("COLUMNS={columns}"));
        macros.push(format!("WARPS={warps}"));
        macros.push(format!("TILES={tiles}"));
        macros.push(format!("TALL={tall}"));
        macros.push(format!("SPLITS={splits}"));
        macros.push(format!("FLIGHT={flight}"));
        macros.push(format!("AT_ONCE={at_once}"));
        macros.push(format!("ROWS_FIT={}", u8::from(fits)));
        macros
    }

    fn describe(&self, name: &str) -> String {
        let Self { tensor, columns, warps, splits, flight, width, .. } = self;
        let by = if *tensor { "tensor cores" } else { "float" };
        let (rows, accesses) = (self.rows(), 2 * flight);
        format!(
            "{name}: {by}, {columns} rows of x and {rows} of the weight per block, k over {warps} warps and {splits} blocks, \
             {accesses} pieces of codes per thread in flight, {width} elements of x per access"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        nvrtc::tests::assert_compiles,
        packed_form::tests::{every_form, microscaling},
    };
    use super::*;
    use crate::WeightCodes;

    const HOPPER: ComputeCapability = ComputeCapability { major: 9, minor: 0 };
    const VOLTA: ComputeCapability = ComputeCapability { major: 7, minor: 0 };

    fn cuts(form: PackedForm) -> impl Iterator<Item = (LinearShape, Cut)> {
        let sizes = [1, 3, 8, 9, 17, 32, 64, 65, 127, 1000];
        let shapes = sizes.into_iter().flat_map(|m| [1, 17, 129, 1000, 4096, 28672].map(|k| (m, k)));
        let shapes = shapes.flat_map(|(m, k)| [1, 127, 4096, 28672].map(|n| LinearShape { m, k, n }));
        shapes.flat_map(move |shape| [HOPPER, VOLTA].map(|capability| (shape, Cut::new(form, shape, capability))))
    }

    #[test]
    fn every_size_is_covered_and_what_blocks_share_fits() {
        for form in every_form() {
            for (shape, cut) in cuts(form) {
                let what = format!("{form:?} {shape} {cut:?}");
                assert!(shape.k.is_multiple_of(cut.width), "{what}");
                // 512 threads have 128 registers each, 1024 have 64.
                assert!(cut.warps * cut.tiles * cut.at_once * 32 <= 1024, "{what}");
                assert!(cut.tall == 1 || cut.tensor, "{what}");
                assert!(!cut.tensor || cut.columns.is_multiple_of(8), "{what}");
                // Static shared memory.
                assert!(4 * cut.warps * cut.rows() * cut.columns <= 48 << 10, "{what}");
                assert!(cut.splits == 1 || cut.tiles_of_y(shape) * cut.splits <= Cut::BLOCKS, "{what}");
            }
        }
    }

    #[test]
    fn few_rows_of_the_weight_are_split_and_many_are_not() {
        let form = PackedForm::weight_only(Dtype::Bf16, WeightCodes::int8(Dtype::Bf16));
        let cut = |n, k, m| Cut::new(form, LinearShape { m, k, n }, HOPPER);
        assert_eq!([cut(4096, 4096, 1).splits, cut(512, 8192, 1).splits, cut(28672, 8192, 1).splits], [1, 8, 1]);
        let int4 = PackedForm::weight_only(Dtype::Bf16, WeightCodes::int4(128, Dtype::Bf16));
        let many = |form, m, k, n| {
            let cut = Cut::new(form, LinearShape { m, k, n }, HOPPER);
            (cut.rows(), cut.warps, cut.flight, cut.at_once)
        };
        assert_eq!((many(int4, 1, 8192, 28672), many(int4, 1, 4096, 4096)), ((32, 4, 2, 4), (16, 8, 4, 2)));
        assert_eq!((many(form, 1, 8192, 28672), many(form, 9, 8192, 28672)), ((16, 8, 1, 4), (32, 4, 4, 2)));
        // Eight chunks are two for each of four warps.
        assert_eq!((cut(64, 512, 32).splits, cut(64, 64, 1).splits), (1, 1));
        assert_eq!(cut(512, 8192, 1).name(form), "int8_bf16_product_tensor_8x16_k8x8");
        assert_eq!((cut(64, 4096, 64).columns, cut(64, 4096, 1).columns, cut(64, 4096, 20).columns), (64, 8, 24));
    }

    #[test]
    fn tensor_cores_take_halves_and_what_is_exact_in_them() {
        let tensor = |form| Cut::new(form, LinearShape { m: 8, k: 64, n: 64 }, HOPPER).tensor;
        let int8 = |kind| PackedForm::weight_only(kind, WeightCodes::int8(kind));
        assert!(tensor(int8(Dtype::F16)) && !tensor(int8(Dtype::F32)));
        assert!(microscaling(Dtype::F32).into_iter().all(tensor));
    }

    #[test]
    fn the_source_compiles_for_every_form_and_cut() {
        // With wide accesses and without, one row and many, with and without sharing; every form has some of them.
        let shapes = [(1, 4096, 512), (3, 129, 17), (20, 1000, 4096), (64, 8192, 64), (2, 4096, 20000), (1, 1536, 16)];
        for (at, form) in every_form().into_iter().enumerate() {
            for (m, k, n) in shapes.into_iter().skip(at % 3).step_by(3) {
                let shape = LinearShape { m, k, n };
                let mut macros = Cut::new(form, shape, HOPPER).macros("product", form, k);
                macros.extend((at % 2 == 0).then(|| ADDED.into()));
                assert_compiles(Source::PackedProduct, &macros);
            }
        }
    }
}
