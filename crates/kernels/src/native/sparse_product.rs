//! Products on sparse tensor cores with weights of which two of every four numbers are kept.

use std::sync::Arc;

use super::{
    Buffer, ComputeCapability, LinearShape, Machine, NativeError,
    driver::Memory,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
    packed_product::Shared,
    sizes::{MULTIPROCESSORS, checked_size},
};
use crate::{Dtype, DynamicCodes, KeptCodes, SharedScale, SparseForm};

/// The kernels that order a weight once and multiply with it, and what the blocks that share sums leave for each other.
#[derive(Debug)]
pub(super) struct SparseProduct {
    order: Kernel,
    units_bytes: usize,
    kernel: Kernel,
    shared: Option<Shared>,
    pub(super) algorithm: String,
}

impl SparseProduct {
    /// Whether there is one: for numbers of 16 bits and for bytes.
    pub(super) fn is_for(form: SparseForm, capability: ComputeCapability) -> bool {
        match form.codes {
            KeptCodes::Numbers | KeptCodes::Int4 => {
                form.kind != Dtype::F32 && capability >= ComputeCapability::WARP_MAXIMA
            }
            KeptCodes::Dynamic(DynamicCodes::Int8, _) => capability >= ComputeCapability::WARP_MAXIMA,
            KeptCodes::Dynamic(DynamicCodes::E4m3, _) => capability >= ComputeCapability::E4M3,
            KeptCodes::Dynamic(..) => false,
        }
    }

    /// Compiles for sizes that were checked and a form that it is for; rows of x are `stride` numbers long.
    pub(super) fn new(
        machine: &Arc<Machine>,
        form: SparseForm,
        shape: LinearShape,
        stride: usize,
    ) -> Result<Self, NativeError> {
        let LinearShape { m, k, n } = shape;
        let cut = Cut::new(shape);
        let units = checked_size("the number of units", n.div_ceil(16) * k.div_ceil(UNIT))?;
        let units_bytes = units * unit_bytes(form);
        let name = format!("order_{}", kept_name(form));
        let mut macros = common_macros(&name, form.kind, 1);
        macros.extend(kept_macros(form, k));
        let [numbers, places] = stored_parts(form, shape);
        let order = Kernel::prepare(
            machine,
            Source::OrderSparse,
            &name,
            macros,
            Extent {
                reads: vec![numbers, places],
                writes: vec![("units", units_bytes)],
                sizes: (n as u64, units as u64),
            },
            Geometry { blocks: units.div_ceil(8) as u32, threads: (256, 1) },
        )?;

        let blocks = checked_size("the number of blocks", cut.tiles_of_y(shape) * cut.splits)?;
        let dynamic = matches!(form.codes, KeptCodes::Dynamic(..));
        let x = if dynamic { m * stride } else { shape.x_bytes(form.kind) };
        let mut reads = vec![("x", x)];
        reads.extend(dynamic.then(|| ("row scales", scales_of(form, m, 4))));
        reads.push(("units", units_bytes));
        reads.extend(weight_scales(form, shape).map(|bytes| ("scales", bytes)));
        reads.extend(form.added.then(|| ("added", shape.y_bytes(form.kind))));
        let mut writes = vec![("y", shape.y_bytes(form.kind))];
        let sums = blocks * cut.rows() * cut.columns;
        let shared = (cut.splits > 1).then(|| Shared::new(machine, sums, cut.tiles_of_y(shape))).transpose()?;
        writes.extend(shared.iter().flat_map(Shared::extent));
        let name = cut.name(form);
        let extent = Extent { reads, writes, sizes: (m as u64, n as u64) };
        let geometry = Geometry { blocks: blocks as u32, threads: (256, 1) };
        let macros = cut.macros(&name, form, k, stride);
        let kernel = Kernel::prepare(machine, Source::SparseProduct, &name, macros, extent, geometry)?;
        let kernel = kernel.with_shared(cut.shared_bytes(form))?;
        Ok(Self { order, units_bytes, kernel, shared, algorithm: cut.describe(&name) })
    }

    /// Kept numbers and their places in the order that is multiplied.
    pub(super) fn ordered(&self, machine: &Machine, parts: [&Memory; 2]) -> Result<Buffer, NativeError> {
        let mut units = machine.allocate(self.units_bytes)?;
        self.order.enqueue_all(&parts, &mut [&mut units.memory])?;
        Ok(units)
    }

    /// Enqueues one run on x, the scales of its rows, an ordered weight, its scales and what is added: those there are.
    pub(super) fn enqueue(&mut self, inputs: &[&Memory], y: &mut Memory) -> Result<(), NativeError> {
        Shared::enqueue(self.shared.as_mut(), &self.kernel, inputs, y)
    }
}

/// Numbers along k in a unit.
const UNIT: usize = 64;

/// Bytes of the numbers of 16 rows in a unit, and of their places.
fn unit_bytes(form: SparseForm) -> usize {
    16 * UNIT / 2 * form.bits() / 8 + 128
}

/// The kept numbers and their places, as they are stored row by row.
pub(super) fn stored_parts(form: SparseForm, LinearShape { k, n, .. }: LinearShape) -> [(&'static str, usize); 2] {
    let kept = match form.codes {
        KeptCodes::Int4 => k.next_multiple_of(128) / 2,
        _ => (k / 2).next_multiple_of(32),
    };
    [("kept numbers", n * kept * form.bits() / 8), ("places", n * k.div_ceil(32) * 4)]
}

/// Bytes of a weight's scales, if it has any.
pub(super) fn weight_scales(form: SparseForm, LinearShape { k, n, .. }: LinearShape) -> Option<usize> {
    match form.codes {
        KeptCodes::Numbers => None,
        KeptCodes::Int4 => Some(n * k.div_ceil(128) * form.kind.width()),
        KeptCodes::Dynamic(DynamicCodes::Int8, _) => Some(scales_of(form, n, form.kind.width())),
        KeptCodes::Dynamic(..) => Some(scales_of(form, n, 4)),
    }
}

fn scales_of(form: SparseForm, rows: usize, width: usize) -> usize {
    let shared = form.dynamic().map(|form| form.shared);
    if shared == Some(SharedScale::Tensor) { width } else { rows * width }
}

/// What kernels are called by.
pub(super) fn kept_name(form: SparseForm) -> String {
    match form.codes {
        KeptCodes::Numbers => format!("two_of_four_{}", form.kind),
        KeptCodes::Int4 => format!("two_of_four_int4_128_{}", form.kind),
        KeptCodes::Dynamic(codes, _) => format!("two_of_four_{}_{}", codes.name(), form.kind),
    }
}

/// What `sparse_codes.cuh` needs to know.
pub(super) fn kept_macros(form: SparseForm, k: usize) -> Vec<String> {
    let kept = match form.bits() {
        4 => Some("KEPT_HALVES"),
        8 => Some("KEPT_BYTES"),
        32 => Some("KEPT_WORDS"),
        _ => None,
    };
    [format!("K={k}u")].into_iter().chain(kept.map(String::from)).collect()
}

/// How a product is dealt to blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    /// Rows of x that a block takes.
    columns: usize,
    /// Times 16 rows of the weight that a warp takes.
    tiles: usize,
    /// Warps that share the k of their rows.
    deep: usize,
    /// Blocks that share the k of their rows.
    splits: usize,
    /// Units that a warp has read ahead.
    flight: usize,
    /// Units of x in a block's memory.
    stages: usize,
}

impl Cut {
    /// Two for each multiprocessor.
    const BLOCKS: usize = 2 * MULTIPROCESSORS;
    const WARPS: usize = 8;

    fn new(shape: LinearShape) -> Self {
        let LinearShape { m, k, .. } = shape;
        // More than 32 rows of x at once were slower than the same rows in two turns: 22 us instead of 16 for 64 of them.
        let columns = if m > 64 { 64 } else { m.next_power_of_two().clamp(8, 32) };
        // More rows of x cost more to bring to many blocks than it costs to add up over them.
        let deep = match columns {
            8 => 8,
            16 => 4,
            32 => 2,
            _ => 1,
        };
        let (tiles, flight, stages) = if m > 64 { (2, 2, 4) } else { (1, 4, 4) };
        let cut = Self { columns, tiles, deep, splits: 1, flight, stages };
        let most = (k.div_ceil(UNIT) / (flight * deep)).clamp(1, 16);
        Self { splits: (Self::BLOCKS / tiles / cut.tiles_of_y(shape)).clamp(1, most), ..cut }
    }

    /// Rows of the weight in a block.
    fn rows(&self) -> usize {
        16 * self.tiles * Self::WARPS / self.deep
    }

    /// Parts of the output that a block, or several, make.
    fn tiles_of_y(&self, shape: LinearShape) -> usize {
        shape.n.div_ceil(self.rows()) * shape.m.div_ceil(self.columns)
    }

    /// The ring of x, where the sums are turned at the end.
    fn shared_bytes(&self, form: SparseForm) -> usize {
        let of_x = if form.bits() == 8 { 1 } else { 2 };
        let turned = 4 * self.deep * self.columns.min(16) * (self.rows() + 4);
        (self.stages * self.deep * self.columns * UNIT * of_x).max(turned)
    }

    /// The kernel's name, which is all that a profiler shows of the cut.
    fn name(&self, form: SparseForm) -> String {
        let after = form.activation.map(|activation| format!("_{activation}")).unwrap_or_default();
        let Self { columns, deep, splits, .. } = self;
        format!("{}{after}_product_{columns}x{}_k{deep}x{splits}", kept_name(form), self.rows())
    }

    fn macros(&self, name: &str, form: SparseForm, k: usize, stride: usize) -> Vec<String> {
        let Self { columns, tiles, deep, splits, flight, stages } = self;
        let dynamic = form.dynamic();
        let whole = dynamic.is_some() || k.is_multiple_of(widest(form.kind));
        let mut macros = common_macros(name, form.kind, if whole { widest(form.kind) } else { 1 });
        macros.extend(kept_macros(form, k));
        macros.extend(dynamic.iter().flat_map(|form| form.macros()));
        macros.extend([format!("STRIDE={stride}u"), format!("COLUMNS={columns}"), format!("TILES={tiles}")]);
        macros.extend([format!("DEEP={deep}"), format!("SPLITS={splits}")]);
        macros.extend([format!("FLIGHT={flight}"), format!("STAGES={stages}")]);
        macros.extend(form.activation.map(|activation| format!("ACTIVATE={activation}")));
        macros.extend(form.added.then(|| "ADDED".into()));
        macros
    }

    fn describe(&self, name: &str) -> String {
        let Self { columns, deep, splits, flight, stages, .. } = self;
        format!(
            "{name}: sparse tensor cores, {columns} rows of x and {} of the weight per block, k over {deep} warps and {splits} \
             blocks, {flight} units of the weight per warp in flight, {} of x in memory",
            self.rows(),
            stages * deep
        )
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;
    use crate::{Activation, Prologue};

    /// Every kind of kept numbers.
    pub(in crate::native) fn every_form() -> Vec<SparseForm> {
        let dynamic = [
            (DynamicCodes::Int8, SharedScale::Row),
            (DynamicCodes::E4m3, SharedScale::Row),
            (DynamicCodes::E4m3, SharedScale::Tensor),
        ];
        let dynamic = dynamic.map(|(codes, shared)| KeptCodes::Dynamic(codes, shared));
        let codes: Vec<KeptCodes> = [KeptCodes::Numbers, KeptCodes::Int4].into_iter().chain(dynamic).collect();
        let form = |kind, codes| {
            let (prologue, activation) = (Prologue::Nothing, None);
            SparseForm { kind, codes, prologue, activation, added: false }
        };
        Dtype::ALL.into_iter().flat_map(|kind| codes.iter().map(move |&codes| form(kind, codes))).collect()
    }

    const HOPPER: ComputeCapability = ComputeCapability { major: 9, minor: 0 };

    #[test]
    fn every_size_is_covered_and_a_block_has_memory_for_it() {
        for form in every_form() {
            for (m, k, n) in [(1, 4, 1), (8, 4096, 4096), (20, 132, 17), (64, 28672, 8192), (4096, 4096, 4096)] {
                let shape = LinearShape { m, k, n };
                let cut = Cut::new(shape);
                assert!(cut.shared_bytes(form) <= 100 << 10, "{form:?} {shape} {cut:?}");
                assert!(cut.splits <= k.div_ceil(UNIT) && cut.columns.is_multiple_of(8), "{form:?} {shape} {cut:?}");
                assert!(cut.stages > 2, "{form:?} {shape} {cut:?}");
            }
        }
        let form = every_form()[0];
        assert_eq!(
            (unit_bytes(form), stored_parts(form, LinearShape { m: 1, k: 132, n: 3 })[1]),
            (2176, ("places", 60))
        );
    }

    #[test]
    fn the_sources_compile_for_every_form_and_cut() {
        let activations = Activation::ALL.map(Some).into_iter().chain([None]).cycle();
        for (form, activation) in every_form().into_iter().zip(activations) {
            if !SparseProduct::is_for(form, HOPPER) {
                continue;
            }
            let activation = activation.filter(|_| form.dynamic().is_some());
            for (at, (m, k, n)) in
                [(1, 4096_usize, 512), (20, 132, 17), (64, 1000, 64), (500, 4096, 1000)].into_iter().enumerate()
            {
                let form = SparseForm { activation, added: at % 2 == 0, ..form };
                let stride = if form.dynamic().is_some() { k.next_multiple_of(32) } else { k };
                let macros = Cut::new(LinearShape { m, k, n }).macros("product", form, k, stride);
                assert_compiles(Source::SparseProduct, &macros);
            }
            let mut macros = common_macros("order", form.kind, 1);
            macros.extend(kept_macros(form, 132));
            assert_compiles(Source::OrderSparse, &macros);
        }
    }
}
