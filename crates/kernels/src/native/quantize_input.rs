//! Quantization of layer inputs, with fused prologue.

use super::{
    CudaDevice, CudaKernel, LAYER_NORM_EPSILON, LinearShape, NativeError, SHORT_ATTENTION_TOKENS, attention_quantize,
    driver::DeviceMemory,
    kernel::{KernelArgs, LaunchGeometry, vector_width},
    layer_specs::DynamicSpec,
    nvrtc::CudaSource,
    persistent_rows::PersistentRows,
    row_tile::RowTile,
    short_attention,
    sizes::{MULTIPROCESSORS, check_matrix},
    smem_resident_rows::SmemResidentRows,
};
use crate::format::QuantMethod;
use crate::{Activation, Prologue};

/// Kernels that quantize x, and the resulting values and scales.
#[derive(Debug)]
pub(super) struct InputQuantizer {
    strategy: QuantizeStrategy,
    /// Rows of `stride` quantized values, padded with 0.
    pub(super) codes: DeviceMemory,
    /// Scale per row, or a single scale for the tensor.
    pub(super) scales: DeviceMemory,
    pub(super) algorithm: String,
}

/// Kernels of the quantization.
#[derive(Debug)]
enum QuantizeStrategy {
    /// Single pass: row scales, or a tensor scale with x resident on the multiprocessors.
    SinglePass(CudaKernel),
    /// Tensor scale in two passes: amax, then quantization.
    TwoPass { largest: CudaKernel, quantize: CudaKernel },
    /// Tensor scale computed by the attention kernel, then quantization of its output.
    AttentionWithAmax { attention: CudaKernel, mixed: DeviceMemory, quantize: CudaKernel },
    /// Attention, then any quantization of its output.
    AfterAttention { attention: CudaKernel, mixed: DeviceMemory, then: Box<QuantizeStrategy> },
}

impl InputQuantizer {
    /// Compiles for x[rows, columns]; the quantized matrix has at least `filled.0` rows of `filled.1` values.
    pub(super) fn new(
        device: &CudaDevice,
        spec: DynamicSpec,
        (rows, columns): (usize, usize),
        filled: (usize, usize),
    ) -> Result<Self, NativeError> {
        check_matrix(rows, columns)?;
        let size = (rows, columns);
        let strategy = match spec.prologue {
            Prologue::ShortAttention { heads } => {
                if heads == 0 || !rows.is_multiple_of(SHORT_ATTENTION_TOKENS) || !columns.is_multiple_of(heads) {
                    return Err(NativeError::AttentionRows { rows, columns, heads });
                }
                plan_attention(device, spec, size, heads, filled)?
            }
            _ => plan_quantization(device, spec, size, filled)?,
        };
        let scales = if spec.is_per_tensor() { 4 } else { 4 * rows };
        // Padding is written once.
        let mut codes = DeviceMemory::allocate(device.stream(), filled.0 * filled.1)?;
        codes.fill(0)?;
        let (scales, algorithm) = (DeviceMemory::allocate(device.stream(), scales)?, strategy.algorithm());
        Ok(Self { strategy, codes, scales, algorithm })
    }

    /// Compiles for x[rows, columns] in a 16-bit dtype, with scales per row. The quantized values are stored in the
    /// dtype of x, which represents them exactly.
    pub(super) fn storing_elements(
        device: &CudaDevice,
        spec: DynamicSpec,
        (rows, columns): (usize, usize),
    ) -> Result<Self, NativeError> {
        check_matrix(rows, columns)?;
        let row_bytes = columns * spec.kind.width();
        let stored = (rows, row_bytes);
        let kernel = quantize_kernel(device, spec, (rows, columns), stored, true, &[STORE_ELEMENTS.to_string()])?;
        let (codes, scales) = (rows * row_bytes, 4 * rows);
        let [codes, scales] = [codes, scales].map(|bytes| DeviceMemory::allocate(device.stream(), bytes));
        let algorithm = format!("{} in {}", kernel.algorithm(), spec.kind);
        Ok(Self { strategy: QuantizeStrategy::SinglePass(kernel), codes: codes?, scales: scales?, algorithm })
    }

    /// Enqueues a launch.
    pub(super) fn enqueue(&mut self, x: &DeviceMemory) -> Result<(), NativeError> {
        let Self { strategy, codes, scales, .. } = self;
        strategy.enqueue(x, codes, scales)
    }
}

impl QuantizeStrategy {
    fn enqueue(
        &mut self,
        x: &DeviceMemory,
        codes: &mut DeviceMemory,
        scales: &mut DeviceMemory,
    ) -> Result<(), NativeError> {
        match self {
            Self::SinglePass(kernel) => kernel.enqueue_all([x], [codes, scales]),
            Self::TwoPass { largest, quantize } => {
                largest.enqueue_all([x], [&mut *scales])?;
                quantize.enqueue_all([x, scales], [codes])
            }
            Self::AttentionWithAmax { attention, mixed, quantize } => {
                attention.enqueue_all([x], [&mut *mixed, &mut *scales])?;
                quantize.enqueue_all([&*mixed, scales], [codes])
            }
            Self::AfterAttention { attention, mixed, then } => {
                attention.enqueue_all([x], [&mut *mixed])?;
                then.enqueue(mixed, codes, scales)
            }
        }
    }

    fn algorithm(&self) -> String {
        match self {
            Self::SinglePass(kernel) => kernel.algorithm(),
            Self::TwoPass { largest: first, quantize: then }
            | Self::AttentionWithAmax { attention: first, quantize: then, .. } => {
                format!("{}; then {}", first.algorithm(), then.algorithm())
            }
            Self::AfterAttention { attention, then, .. } => {
                format!("{}; then {}", attention.algorithm(), then.algorithm())
            }
        }
    }
}

/// Elements per thread. The fixed cost per row (statistics, scale) is significant: after GEMMs, which lower the clock,
/// RMS norm and quantization of 16384 rows of 4096 take 56 us, and 73 us with half as many elements.
const ELEMENTS_PER_THREAD: usize = 32;

/// Plans attention followed by quantization.
fn plan_attention(
    device: &CudaDevice,
    spec: DynamicSpec,
    size: (usize, usize),
    heads: usize,
    filled: (usize, usize),
) -> Result<QuantizeStrategy, NativeError> {
    if let Some(kernel) = attention_quantize::kernel(device, spec, &name(spec), size, heads, filled)? {
        return Ok(QuantizeStrategy::SinglePass(kernel));
    }
    let (rows, columns) = size;
    let (sequences, head) = (rows / SHORT_ATTENTION_TOKENS, columns / heads);
    let mixed = DeviceMemory::allocate(device.stream(), rows * columns * spec.kind.width())?;
    let of_mixed = DynamicSpec { prologue: Prologue::None, ..spec };
    let scaled = if spec.is_per_tensor() {
        short_attention::tensor_core_kernel(device, spec.kind, sequences, (heads, head), Some(spec))?
    } else {
        None
    };
    if let Some(attention) = scaled {
        let quantize = quantize_kernel(device, of_mixed, size, filled, true, &[])?;
        return Ok(QuantizeStrategy::AttentionWithAmax { attention, mixed, quantize });
    }
    let attention = CudaKernel::short_attention(device, spec.kind, sequences, heads, head)?;
    let then = Box::new(plan_quantization(device, of_mixed, size, filled)?);
    Ok(QuantizeStrategy::AfterAttention { attention, mixed, then })
}

/// Plans the quantization of x[rows, columns] without attention.
fn plan_quantization(
    device: &CudaDevice,
    spec: DynamicSpec,
    size: (usize, usize),
    filled: (usize, usize),
) -> Result<QuantizeStrategy, NativeError> {
    if !spec.is_per_tensor() {
        return Ok(QuantizeStrategy::SinglePass(quantize_kernel(device, spec, size, filled, true, &[])?));
    }
    let name = name(spec);
    let x = ("x", size.0 * size.1 * spec.kind.width());
    if let Some(held) = SmemResidentRows::new(device, spec, size)? {
        let (name, geometry) = (format!("resident_{name}"), held.geometry(size.0));
        let mut macros = macros(&name, spec, held.tile, filled.1);
        macros.push(format!("ROWS_PER_BLOCK={}", held.rows));
        let args = KernelArgs::new([x], [("quantized values", filled.0 * filled.1), ("scale", 4)], size);
        let kernel = CudaKernel::prepare(device, CudaSource::SmemResidentRows, &name, macros, args, geometry)?
            .with_workspace(8 * geometry.blocks as usize)?
            .with_dynamic_smem(held.shared_bytes)?
            .with_description(held.describe(&name));
        return Ok(QuantizeStrategy::SinglePass(kernel.cooperative()));
    }
    let of_largest = format!("amax_{name}");
    let (tile, geometry) = row_tile(spec, size);
    let blocks = geometry.blocks.min(resident_blocks(tile));
    let args = KernelArgs::new([x], [("scale", 4)], size);
    let macros = tiled_macros(&of_largest, spec, tile, filled.1, size);
    let geometry = LaunchGeometry { blocks, ..geometry };
    let described = tile
        .describe(&format!("{of_largest} in {blocks} blocks"), &describe_passes(statistics_passes(spec.prologue) + 1));
    let largest = CudaKernel::prepare(device, CudaSource::TensorAmax, &of_largest, macros, args, geometry)?
        .with_workspace(8)?
        .with_description(described);
    // Reads the last rows first, because the preceding kernel left them in the cache.
    Ok(QuantizeStrategy::TwoPass { largest, quantize: quantize_kernel(device, spec, size, filled, false, &[])? })
}

/// Macro that stores quantized values in the dtype of x.
const STORE_ELEMENTS: &str = "STORE_ELEMENTS";

/// Compiles the kernel that quantizes rows, with row scales or a given tensor scale. With `last_first` it processes the
/// rows in reverse order, starting with those that are most likely cached.
fn quantize_kernel(
    device: &CudaDevice,
    spec: DynamicSpec,
    size: (usize, usize),
    filled: (usize, usize),
    last_first: bool,
    own_macros: &[String],
) -> Result<CudaKernel, NativeError> {
    let x = ("x", size.0 * size.1 * spec.kind.width());
    let codes = ("quantized values", filled.0 * filled.1);
    let (reads, writes, own) = if spec.is_per_tensor() {
        (vec![x, ("scale", 4)], vec![codes], 0)
    } else {
        (vec![x], vec![codes, ("scales", 4 * size.0)], 1)
    };
    let args = KernelArgs::new(reads, writes, size);
    let name = name(spec);
    let prepare = |tile, geometry, more: &[String]| {
        let mut macros = tiled_macros(&name, spec, tile, filled.1, size);
        macros.push(format!("REVERSE_ROWS={last_first}"));
        macros.extend_from_slice(own_macros);
        macros.extend_from_slice(more);
        CudaKernel::prepare(device, CudaSource::QuantizeInput, &name, macros, args, geometry)
    };
    if let Some(turns) = PersistentRows::new(device, spec, size)? {
        let kernel = prepare(turns.tile, turns.geometry, &turns.macros())?.with_dynamic_smem(turns.shared_bytes)?;
        return Ok(kernel.with_description(turns.describe(&name)));
    }
    let (tile, geometry) = row_tile(spec, size);
    let described = tile.describe(&name, &describe_passes(statistics_passes(spec.prologue) + own + 1));
    Ok(prepare(tile, geometry, &[])?.with_description(described))
}

fn row_tile(spec: DynamicSpec, (rows, columns): (usize, usize)) -> (RowTile, LaunchGeometry) {
    let tile = RowTile::new(columns, vector_width(spec.kind), ELEMENTS_PER_THREAD);
    (tile, tile.geometry(rows))
}

/// Passes over a row for the statistics of the prologue.
fn statistics_passes(prologue: Prologue) -> usize {
    match prologue {
        Prologue::None | Prologue::Activation(_) | Prologue::ShortAttention { .. } => 0,
        Prologue::RmsNorm => 1,
        Prologue::LayerNorm => 2,
    }
}

fn describe_passes(looks: usize) -> String {
    format!("row read {looks} times")
}

/// Maximum number of resident blocks of the device.
pub(super) fn resident_blocks(tile: RowTile) -> u32 {
    (MULTIPROCESSORS * 2048 / (tile.threads * tile.rows)) as u32
}

fn name(spec: DynamicSpec) -> String {
    let before = match spec.prologue {
        Prologue::None => String::new(),
        Prologue::LayerNorm => "layer_norm_".into(),
        Prologue::RmsNorm => "rms_norm_".into(),
        Prologue::Activation(function) => format!("{function}_"),
        Prologue::ShortAttention { .. } => "attention_".into(),
    };
    let of = if spec.is_per_tensor() { "tensor" } else { "rows" };
    format!("{before}{}_{of}_{}", spec.format_name(), spec.kind)
}

/// Macros of a kernel that processes whole row tiles.
fn tiled_macros(name: &str, spec: DynamicSpec, tile: RowTile, stride: usize, size: (usize, usize)) -> Vec<String> {
    [macros(name, spec, tile, stride), vec![tile.full_tile_macro(size)]].concat()
}

pub(super) fn macros(name: &str, spec: DynamicSpec, tile: RowTile, stride: usize) -> Vec<String> {
    let mut macros = tile.kernel_macros(name, spec.kind);
    macros.push(format!("EPSILON={LAYER_NORM_EPSILON:e}f"));
    macros.push(format!("STRIDE={stride}ull"));
    macros.extend(spec.macros());
    match spec.prologue {
        Prologue::None | Prologue::ShortAttention { .. } => {}
        Prologue::LayerNorm => macros.push("LAYER_NORM".into()),
        Prologue::RmsNorm => macros.push("RMS_NORM".into()),
        // An infinite element makes the quantized row NaN in any case. From 0.3 on, GELU increases by more than its
        // error between adjacent 16-bit floats; below 0.3 no value has a larger magnitude.
        Prologue::Activation(Activation::Gelu) => {
            macros.extend(["PROLOGUE=finite_gelu", "MONOTONIC_FROM=0.3f"].map(String::from));
        }
        Prologue::Activation(function) => macros.push(format!("PROLOGUE={function}")),
    }
    macros
}

impl DynamicSpec {
    /// Macros for quantized values and scales.
    pub(super) fn macros(self) -> Vec<String> {
        let mut macros = vec![if self.is_e4m3() { "QUANT_E4M3" } else { "QUANT_INT8" }.to_string()];
        if let QuantMethod::Symmetric { min, epsilon, .. } = self.input.method {
            macros.push(format!("QUANT_EPSILON={epsilon:e}f"));
            macros.extend((min == -128).then(|| "QUANT_FULL_RANGE".into()));
        }
        if self.is_int4() {
            macros.extend(["COLUMN_SCALES_F32", "QUANT_IN_F32"].map(String::from));
        }
        if self.is_per_tensor() {
            macros.push("PER_TENSOR".into());
        }
        macros
    }

    /// Macros of the epilogue.
    pub(super) fn epilogue_macros(self) -> Vec<String> {
        let activated = self.activation.map(|activation| format!("ACTIVATE={activation}"));
        activated.into_iter().chain(self.has_addend.then(|| "ADDEND".into())).collect()
    }

    /// Epilogue and output dtype in kernel names.
    pub(super) fn epilogue_name(self) -> String {
        let activated = self.activation.map(|activation| format!("_{activation}")).unwrap_or_default();
        format!("{activated}{}_{}", if self.has_addend { "_added" } else { "" }, self.kind)
    }

    /// Row and column scales that an epilogue reads, with their bytes.
    pub(super) fn scale_reads(self, shape: LinearShape) -> [(&'static str, usize); 2] {
        // Scales of int4 weights are f32, too.
        let of_column = if self.is_e4m3() || self.is_int4() { 4 } else { self.kind.width() };
        let (rows, columns) = if self.is_per_tensor() { (1, 1) } else { (shape.m, shape.n) };
        [("row scales", 4 * rows), ("column scales", of_column * columns)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::layer_specs::tests::dynamic_specs;
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;
    use crate::Dtype;

    #[test]
    #[ignore = "needs NVRTC"]
    fn sources_compile_for_every_spec_and_tile() {
        for (at, spec) in dynamic_specs().enumerate() {
            // Each specification gets a third of the row lengths: short, long, too long for registers, aligned and
            // unaligned.
            for columns in [1, 257, 1000, 4096, 65536, 70001].into_iter().skip(at % 3).step_by(3) {
                let tile = RowTile::for_row(spec.kind, columns);
                let size = (tile.rows * 3 + at % 2, columns);
                let mut macros = tiled_macros("quantize", spec, tile, columns.next_multiple_of(32), size);
                if spec.is_per_tensor() {
                    assert_compiles(CudaSource::TensorAmax, &macros);
                }
                macros.push(format!("REVERSE_ROWS={}", at % 2 == 0));
                let is_stored = spec.kind != Dtype::F32 && !spec.is_per_tensor() && !spec.is_int4();
                macros.extend((is_stored && at % 4 < 2).then(|| STORE_ELEMENTS.into()));
                assert_compiles(CudaSource::QuantizeInput, &macros);
            }
        }
    }
}
