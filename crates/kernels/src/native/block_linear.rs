//! Layers with a weight of which whole blocks are zero.

use std::sync::Arc;

use super::{
    Buffer, ComputeCapability, LinearShape, Machine, NativeError,
    driver::Memory,
    kernel::{Extent, Geometry, Kernel, common_macros},
    nvrtc::Source,
    sizes::{checked_shape, checked_size},
};
use crate::Dtype;

/// A weight w[n, k] that is made of square blocks, of which each row of blocks keeps as many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockForm {
    /// The type of x, w and y.
    pub kind: Dtype,
    /// Rows and columns of a block; n and k are multiples of it.
    pub side: usize,
    /// Blocks that are kept in each row of blocks.
    pub kept: usize,
    /// Whether a matrix like y is added to the product.
    pub added: bool,
}

/// Such a weight on the device.
#[derive(Debug)]
pub struct BlockWeight {
    /// For each row of blocks its rows, made of the kept blocks alone.
    pub values: Buffer,
    /// The columns of blocks that are kept, ascending, for each row of blocks: u32.
    pub places: Buffer,
}

/// A plan of y[m, n] = x[m, k] · w[n, k]ᵀ + added[m, n] for such a weight, with sums in f32: blocks of zeros are neither read nor
/// multiplied. Tensor cores multiply numbers of 16 bits in blocks whose side is a multiple of 16.
#[derive(Debug)]
pub struct BlockLinear {
    kernel: Kernel,
    shape: LinearShape,
    form: BlockForm,
    algorithm: String,
}

impl BlockLinear {
    /// Chooses and compiles.
    pub fn new(machine: &Arc<Machine>, form: BlockForm, shape: LinearShape) -> Result<Self, NativeError> {
        let shape = checked_shape(shape)?;
        let (LinearShape { m, k, n }, BlockForm { kind, side, kept, added }) = (shape, form);
        if side == 0 || !n.is_multiple_of(side) || !k.is_multiple_of(side) {
            return Err(NativeError::NotInBlocks { side, k, n });
        }
        let limit = k / side;
        if !(1..=limit).contains(&kept) {
            return Err(NativeError::InvalidSize { what: "the number of kept blocks in a row", limit, value: kept });
        }
        let cut = Cut::new(form, shape, machine.compute_capability());
        let name = cut.name(form);
        let mut reads = vec![("x", shape.x_bytes(kind)), ("blocks", n * kept * side * kind.width())];
        reads.push(("places", 4 * n / side * kept));
        reads.extend(added.then(|| ("added", shape.y_bytes(kind))));
        let extent = Extent { reads, writes: vec![("y", shape.y_bytes(kind))], sizes: (m as u64, n as u64) };
        let blocks = checked_size("the number of blocks", cut.blocks(form, shape))?;
        let geometry = Geometry { blocks: blocks as u32, threads: (cut.threads() as u32, 1) };
        let macros = cut.macros(&name, form, k);
        let kernel = Kernel::prepare(machine, cut.source(), &name, macros, extent, geometry)?;
        let kernel = match cut {
            Cut::Tensor { .. } => kernel.with_shared(cut.shared_bytes())?,
            Cut::Float => kernel,
        };
        Ok(Self { kernel, shape, form, algorithm: cut.describe(&name, form, limit) })
    }

    /// Bytes of the input.
    pub fn x_bytes(&self) -> usize {
        self.shape.x_bytes(self.form.kind)
    }

    /// Bytes of the output.
    pub fn y_bytes(&self) -> usize {
        self.shape.y_bytes(self.form.kind)
    }

    /// Enqueues one run; `added` is there if the plan was made for it.
    pub fn enqueue(
        &self,
        x: &Buffer,
        w: &BlockWeight,
        added: Option<&Buffer>,
        y: &mut Buffer,
    ) -> Result<(), NativeError> {
        let inputs: Vec<&Memory> =
            [x, &w.values, &w.places].into_iter().chain(added).map(|buffer| &buffer.memory).collect();
        self.kernel.enqueue_all(&inputs, &mut [&mut y.memory])
    }

    /// The kernel, and how it was cut up.
    pub fn algorithm(&self) -> String {
        self.algorithm.clone()
    }
}

/// How a product is dealt to blocks of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// To tensor cores.
    Tensor {
        /// Rows of x.
        rows: usize,
        /// Columns of y.
        columns: usize,
        /// Numbers along k that are in memory together.
        step: usize,
        /// Warps beside each other along the columns.
        across: usize,
        /// Steps in memory.
        stages: usize,
    },
    /// In float.
    Float,
}

/// Rows and columns of y that a block of threads makes in float.
const FLOAT_TILE: usize = 64;

impl Cut {
    fn new(form: BlockForm, shape: LinearShape, capability: ComputeCapability) -> Self {
        let BlockForm { kind, side, .. } = form;
        if kind == Dtype::F32 || !side.is_multiple_of(16) || capability < ComputeCapability::WARP_MAXIMA {
            return Self::Float;
        }
        let step = [64, 32, 16].into_iter().find(|step| side.is_multiple_of(*step)).unwrap_or(16);
        let (rows, across, stages) = match shape.m {
            ..=16 if step == 16 => (32, 2, 6),
            ..=16 => (16, 4, 6),
            17..=64 => (64, 1, 4),
            _ => (128, 1, 3),
        };
        Self::Tensor { rows, columns: step, step, across, stages }
    }

    fn source(self) -> Source {
        match self {
            Self::Tensor { .. } => Source::BlockProduct,
            Self::Float => Source::BlockProductFloat,
        }
    }

    fn threads(self) -> usize {
        match self {
            Self::Tensor { .. } => 128,
            Self::Float => 256,
        }
    }

    fn blocks(self, form: BlockForm, LinearShape { m, n, .. }: LinearShape) -> usize {
        match self {
            Self::Tensor { rows, columns, .. } => m.div_ceil(rows) * (n / columns),
            Self::Float => m.div_ceil(FLOAT_TILE) * (n / form.side) * form.side.div_ceil(FLOAT_TILE),
        }
    }

    fn shared_bytes(self) -> usize {
        match self {
            Self::Tensor { rows, columns, step, stages, .. } => stages * (rows + columns) * step * 2,
            Self::Float => 0,
        }
    }

    /// The kernel's name, which is all that a profiler shows of the cut.
    fn name(self, BlockForm { kind, side, kept, .. }: BlockForm) -> String {
        match self {
            Self::Tensor { rows, columns, .. } => format!("blocks_{side}_{kind}_product_{kept}_kept_{rows}x{columns}"),
            Self::Float => format!("blocks_{side}_{kind}_product_{kept}_kept_float"),
        }
    }

    fn macros(self, name: &str, form: BlockForm, k: usize) -> Vec<String> {
        let BlockForm { kind, side, kept, added } = form;
        let mut macros = common_macros(name, kind, 1);
        macros.extend([format!("K={k}ull"), format!("SIDE={side}u"), format!("KEPT={kept}u")]);
        if let Self::Tensor { rows, columns, step, across, stages } = self {
            macros.extend([format!("TILE_M={rows}"), format!("TILE_N={columns}"), format!("STEP={step}")]);
            macros.extend([format!("ACROSS={across}"), format!("STAGES={stages}")]);
        }
        macros.extend(added.then(|| "ADDED".into()));
        macros
    }

    fn describe(self, name: &str, BlockForm { side, kept, .. }: BlockForm, of: usize) -> String {
        let what = format!("{name}: {kept} of {of} blocks of side {side} in each row of blocks");
        match self {
            Self::Tensor { rows, columns, step, stages, .. } => format!(
                "{what}, tensor cores, {rows} rows of x and {columns} of the weight per block, {stages} steps of {step} in memory"
            ),
            Self::Float => format!("{what}, float, tiles of {FLOAT_TILE} by {FLOAT_TILE}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    const HOPPER: ComputeCapability = ComputeCapability { major: 9, minor: 0 };

    #[test]
    fn the_sources_compile_for_every_side_and_cut() {
        for kind in Dtype::ALL {
            for side in [1, 16, 20, 32, 48, 64, 128] {
                for (at, m) in [1, 17, 65].into_iter().enumerate() {
                    let form = BlockForm { kind, side, kept: 3, added: at % 2 == 0 };
                    let cut = Cut::new(form, LinearShape { m, k: 8 * side, n: 4 * side }, HOPPER);
                    assert!(cut.shared_bytes() <= 100 << 10, "{cut:?}");
                    assert_eq!(cut == Cut::Float, kind == Dtype::F32 || side % 16 != 0, "{form:?}");
                    assert_compiles(cut.source(), &cut.macros("product", form, 8 * side));
                }
            }
        }
    }
}
