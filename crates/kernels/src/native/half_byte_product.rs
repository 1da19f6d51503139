//! Products of inputs in codes of a byte with weights in codes of half a byte.

use std::sync::Arc;

use super::{
    LinearShape, Machine, NativeError, PackedWeight,
    cublaslt::{Operands, Product},
    driver::Memory,
    finish_product::FinishProduct,
    form::Form,
    kernel::{Extent, Geometry, Kernel, common_macros},
    nvrtc::Source,
    packed_product::Shared,
    sizes::{MULTIPROCESSORS, checked_size},
};
use crate::{DynamicCodes, DynamicForm};

/// The product and what follows it, up to y: the weight stays as it is for few rows, and becomes bytes for many.
#[derive(Debug)]
pub(super) enum HalfByteProduct {
    Few(Box<Few>),
    Many(Box<Many>),
}

/// A kernel that does all.
#[derive(Debug)]
pub(super) struct Few {
    kernel: Kernel,
    shared: Option<Shared>,
    algorithm: String,
}

/// Codes become bytes, which cuBLASLt multiplies.
#[derive(Debug)]
pub(super) struct Many {
    widen: Kernel,
    bytes: Memory,
    product: Product,
    finish: FinishProduct,
    algorithm: String,
}

/// The most rows of x for which the weight stays as it is.
const MOST_ROWS: usize = 64;

impl HalfByteProduct {
    /// Compiles for sizes that were checked, and those that they are filled up to.
    pub(super) fn new(
        machine: &Arc<Machine>,
        form: DynamicForm,
        shape: LinearShape,
        filled: LinearShape,
    ) -> Result<Self, NativeError> {
        Ok(if shape.m <= MOST_ROWS {
            Self::Few(Box::new(Few::new(machine, form, shape, filled.k)?))
        } else {
            Self::Many(Box::new(Many::new(machine, form, shape, filled)?))
        })
    }

    /// Enqueues one run on the codes of x and their scales.
    pub(super) fn enqueue(
        &mut self,
        machine: &Machine,
        [x, of_rows]: [&Memory; 2],
        w: &PackedWeight,
        added: Option<&Memory>,
        y: &mut Memory,
    ) -> Result<(), NativeError> {
        let parts: Vec<&Memory> = w.parts().chain(w.outer.iter().map(|outer| &outer.memory)).collect();
        // The scales of rows are the last of its parts.
        let Some((&of_columns, codes)) = parts.split_last() else { return Err(NativeError::OtherPlan) };
        match self {
            Self::Few(few) => {
                let inputs: Vec<&Memory> =
                    [x, of_rows].into_iter().chain(codes.iter().copied()).chain([of_columns]).chain(added).collect();
                Shared::enqueue(few.shared.as_mut(), &few.kernel, &inputs, y)
            }
            Self::Many(many) => {
                let Many { widen, bytes, product, finish, .. } = &mut **many;
                widen.enqueue_all(codes, &mut [bytes])?;
                let operands = Operands { x, w: bytes, y: &finish.sums, scales: None, added: None, bias: None };
                product.enqueue(machine, operands)?;
                finish.enqueue([of_rows, of_columns], added, y)
            }
        }
    }

    /// Which kernels, how they were cut up, and what cuBLASLt chose.
    pub(super) fn algorithm(&self) -> String {
        match self {
            Self::Few(few) => few.algorithm.clone(),
            Self::Many(many) => {
                let Many { algorithm, product, finish, .. } = &**many;
                format!("{algorithm}; then {}; then {}", product.describe(), finish.algorithm)
            }
        }
    }
}

impl Few {
    fn new(machine: &Arc<Machine>, form: DynamicForm, shape: LinearShape, stride: usize) -> Result<Self, NativeError> {
        let cut = Cut::new(shape);
        let LinearShape { m, n, .. } = shape;
        let name = cut.name(form);
        let blocks = checked_size("the number of blocks", cut.tiles_of_y(shape) * cut.splits)?;
        let mut reads = vec![("codes of x", m * stride), ("row scales", 4 * m)];
        reads.extend(of_codes(form, shape));
        reads.push(("column scales", 4 * n));
        reads.extend(form.added.then(|| ("added", shape.y_bytes(form.kind))));
        let mut writes = vec![("y", shape.y_bytes(form.kind))];
        let sums = blocks * cut.rows() * cut.columns;
        let shared = (cut.splits > 1).then(|| Shared::new(machine, sums, cut.tiles_of_y(shape))).transpose()?;
        writes.extend(shared.iter().flat_map(Shared::extent));
        let geometry = Geometry { blocks: blocks as u32, threads: (32 * cut.warps as u32, cut.tiles as u32) };
        let extent = Extent { reads, writes, sizes: (m as u64, n as u64) };
        let macros = cut.macros(&name, form, shape.k, stride);
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::HalfByteProduct, &name, macros, extent, geometry)?,
            shared,
            algorithm: cut.describe(&name),
        })
    }
}

impl Many {
    fn new(
        machine: &Arc<Machine>,
        form: DynamicForm,
        shape: LinearShape,
        filled: LinearShape,
    ) -> Result<Self, NativeError> {
        let name = format!("widen_{}_{}", form.codes.name(), form.kind);
        let of_bytes = filled.n * filled.k;
        let blocks = checked_size("the number of blocks", (of_bytes / 32).div_ceil(WIDEN_THREADS))?;
        let extent = Extent {
            reads: of_codes(form, shape),
            writes: vec![("bytes", of_bytes)],
            sizes: (shape.n as u64, filled.n as u64),
        };
        let geometry = Geometry { blocks: blocks as u32, threads: (WIDEN_THREADS as u32, 1) };
        let macros = widen_macros(&name, form, shape.k, filled.k);
        Ok(Self {
            widen: Kernel::prepare(machine, Source::WidenHalfBytes, &name, macros, extent, geometry)?,
            bytes: Memory::allocate(machine.stream(), of_bytes)?,
            product: Product::plan(machine, Form::int8(), filled)?,
            finish: FinishProduct::new(machine, form, shape, (filled.m, filled.n))?,
            algorithm: format!("{name}: {WIDEN_THREADS} threads per block, an access of 32 codes per thread"),
        })
    }
}

/// What is read of a weight besides the scales of its rows.
fn of_codes(form: DynamicForm, LinearShape { k, n, .. }: LinearShape) -> Vec<(&'static str, usize)> {
    match form.codes {
        DynamicCodes::Int4InGroups => {
            let groups = k.div_ceil(DynamicCodes::GROUP);
            vec![("codes", n * groups * DynamicCodes::GROUP / 2), ("group scales", n * groups * form.kind.width())]
        }
        _ => vec![("codes", n * k.next_multiple_of(32) / 2)],
    }
}

const WIDEN_THREADS: usize = 256;

fn of_weight(form: DynamicForm, k: usize, stride: usize) -> impl Iterator<Item = String> {
    let grouped = (form.codes == DynamicCodes::Int4InGroups).then(|| "GROUPED".to_string());
    [format!("K={k}u"), format!("STRIDE={stride}u")].into_iter().chain(grouped)
}

fn widen_macros(name: &str, form: DynamicForm, k: usize, stride: usize) -> Vec<String> {
    let mut macros = common_macros(name, form.kind, 1);
    macros.extend(of_weight(form, k, stride));
    macros.push(format!("THREADS={WIDEN_THREADS}"));
    macros
}

/// How a product is dealt to threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    /// Rows of x that a block takes.
    columns: usize,
    /// Warps that share the k of some rows of the weight.
    warps: usize,
    /// Times 16 rows of the weight that a block takes.
    tiles: usize,
    /// Blocks that share the k of their rows.
    splits: usize,
    /// Chunks that a thread waits for at once.
    flight: usize,
}

impl Cut {
    /// Two for each multiprocessor.
    const BLOCKS: usize = 2 * MULTIPROCESSORS;
    /// Codes in a chunk: a piece of 32 for each of four threads.
    const CHUNK: usize = 128;

    fn new(shape: LinearShape) -> Self {
        // More than 32 rows of x at once were slower than the same rows in two turns: 16 us instead of 10 for 64 of them.
        let columns = shape.m.next_multiple_of(8).min(32);
        // Each block reads all of x, so more rows of x need more rows of the weight in a block.
        let (warps, tiles) = if columns == 8 { (8, 1) } else { (4, 2) };
        let cut = Self { columns, warps, tiles, splits: 1, flight: 1 };
        // Each warp keeps two chunks at least, or adding up costs more than it saves.
        let chunks = shape.k.div_ceil(Self::CHUNK);
        let splits = (Self::BLOCKS / cut.tiles_of_y(shape)).clamp(1, (chunks / (2 * warps)).max(1));
        let flight = chunks.div_ceil(warps * splits).min(4);
        Self { splits, flight, ..cut }
    }

    /// Rows of the weight in a block.
    fn rows(&self) -> usize {
        16 * self.tiles
    }

    /// Parts of the output that a block, or several, make.
    fn tiles_of_y(&self, shape: LinearShape) -> usize {
        shape.n.div_ceil(self.rows()) * shape.m.div_ceil(self.columns)
    }

    /// The kernel's name, which is all that a profiler shows of the cut.
    fn name(&self, form: DynamicForm) -> String {
        let Self { columns, warps, splits, .. } = self;
        let after = form.activation.map(|activation| format!("_{activation}")).unwrap_or_default();
        let rows = self.rows();
        format!("{}_by_int8_{}{after}_product_{columns}x{rows}_k{warps}x{splits}", form.codes.name(), form.kind)
    }

    fn macros(&self, name: &str, form: DynamicForm, k: usize, stride: usize) -> Vec<String> {
        let Self { columns, warps, tiles, splits, flight } = self;
        let mut macros = common_macros(name, form.kind, 1);
        macros.extend(of_weight(form, k, stride));
        macros.extend([format!("COLUMNS={columns}"), format!("WARPS={warps}"), format!("TILES={tiles}")]);
        macros.extend([format!("SPLITS={splits}"), format!("FLIGHT={flight}")]);
        macros.extend(form.activation.map(|activation| format!("ACTIVATE={activation}")));
        macros.extend(form.added.then(|| "ADDED".into()));
        macros
    }

    fn describe(&self, name: &str) -> String {
        let Self { columns, warps, splits, flight, .. } = self;
        format!(
            "{name}: tensor cores, {columns} rows of x and {} of the weight per block, k over {warps} warps and {splits} blocks, \
             {} accesses of 16 bytes per thread in flight",
            self.rows(),
            2 * flight
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;
    use crate::{Activation, Dtype, Float8Sums, Prologue, SharedScale};

    fn forms() -> impl Iterator<Item = DynamicForm> {
        let codes = [DynamicCodes::Int4, DynamicCodes::Int4InGroups];
        Dtype::ALL.into_iter().flat_map(move |kind| {
            let (shared, prologue) = (SharedScale::Row, Prologue::Nothing);
            codes.map(|codes| DynamicForm {
                kind,
                codes,
                shared,
                sums: Float8Sums::Promoted,
                prologue,
                activation: None,
                added: false,
            })
        })
    }

    #[test]
    fn every_size_is_covered_and_what_blocks_share_fits() {
        for m in [1, 3, 8, 9, 17, 32, 33, 64] {
            for (k, n) in [(1, 1), (129, 127), (1000, 4096), (4096, 4096), (28672, 8192), (512, 28672)] {
                let shape = LinearShape { m, k, n };
                let cut = Cut::new(shape);
                assert!(cut.columns.is_multiple_of(8) && cut.columns >= m.min(32) && cut.flight > 0, "{shape} {cut:?}");
                assert!(4 * cut.warps * cut.rows() * cut.columns <= 48 << 10, "{shape} {cut:?}");
                assert!(cut.splits == 1 || cut.tiles_of_y(shape) * cut.splits <= Cut::BLOCKS, "{shape} {cut:?}");
            }
        }
        assert_eq!(Cut::new(LinearShape { m: 1, k: 4096, n: 4096 }).splits, 1);
        assert_eq!(Cut::new(LinearShape { m: 1, k: 8192, n: 512 }).splits, 4);
    }

    #[test]
    fn the_sources_compile_for_every_form_and_cut() {
        let activations = Activation::ALL.map(Some).into_iter().chain([None]).cycle();
        for (form, activation) in forms().zip(activations) {
            for (m, k, n, added) in [(1, 4096_usize, 512, true), (20, 129, 17, false), (64, 8192, 64, true)] {
                let (form, stride) = (DynamicForm { activation, added, ..form }, k.next_multiple_of(32));
                let macros = Cut::new(LinearShape { m, k, n }).macros("product", form, k, stride);
                assert_compiles(Source::HalfByteProduct, &macros);
                assert_compiles(Source::WidenHalfBytes, &widen_macros("widen", form, k, stride));
            }
        }
    }
}
