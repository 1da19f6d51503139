//! Fake quantization of layer inputs to microscaling formats.

use super::{
    CudaDevice, CudaKernel, LAYER_NORM_EPSILON, NativeError,
    driver::DeviceMemory,
    kernel::{KernelArgs, LaunchGeometry, common_macros, vector_width},
    nvrtc::CudaSource,
    quantize_input::resident_blocks,
    row_tile::RowTile,
    sizes::check_size,
};
use crate::format::QuantMethod;
use crate::{Dtype, Element, Format};

/// Kernels that fake-quantize x, and the result in bf16.
#[derive(Debug)]
pub(super) struct InputFakeQuantizer {
    round: CudaKernel,
    /// Kernel that computes the tensor-wide scale.
    tensor_amax: Option<CudaKernel>,
    pub(super) values: DeviceMemory,
    /// Tensor-wide scale, applied to the accumulators; 1 if the format has none.
    pub(super) tensor_scale: DeviceMemory,
    pub(super) algorithm: String,
}

const THREADS: usize = 256;
/// Largest e2m1 times the largest e4m3: 6 * 448.
const NVFP4_MAX: &str = "2688.0f";

impl InputFakeQuantizer {
    /// Compiles for x[rows, columns]; `None` if the input is not fake-quantized.
    pub(super) fn new(
        device: &CudaDevice,
        kind: Dtype,
        format: Option<Format>,
        (rows, columns): (usize, usize),
    ) -> Result<Option<Self>, NativeError> {
        let Some(format) = format else { return Ok(None) };
        let (rows, columns) = (check_size("m", rows)?, check_size("k", columns)?);
        let (block, name) = (format.group_size(columns), name(kind, format));
        let width = row_vector_width(kind, columns);
        let threads = rows * columns.div_ceil(block) * (block / width);
        let geometry = LaunchGeometry::new(threads.div_ceil(THREADS), (THREADS, 1))?;
        let x = ("x", rows * columns * kind.width());
        let whole = (format.method == QuantMethod::Nvfp4).then(|| {
            let tile = RowTile::for_row(kind, columns);
            let name = format!("amax_{kind}");
            let args = KernelArgs::new([x], [("scale", 4)], (rows, columns));
            let geometry = tile.geometry(rows);
            let geometry = LaunchGeometry { blocks: geometry.blocks.min(resident_blocks(tile)), ..geometry };
            let macros = amax_macros(&name, kind, tile);
            CudaKernel::prepare(device, CudaSource::TensorAmax, &name, macros, args, geometry)?.with_workspace(8)
        });
        let whole = whole.transpose()?;
        let mut reads = vec![x];
        reads.extend(whole.is_some().then_some(("scale", 4)));
        let bytes = 2 * rows * columns;
        let args = KernelArgs::new(reads, [("values", bytes)], (rows, columns));
        let macros = macros(&name, kind, format, width);
        let round = CudaKernel::prepare(device, CudaSource::FakeQuantizeInput, &name, macros, args, geometry)?;
        let mut outer = DeviceMemory::allocate(device.stream(), 4)?;
        outer.upload(&1.0f32.to_le_bytes())?;
        let first = if whole.is_some() { format!("amax_{kind}; then ") } else { String::new() };
        let algorithm = format!("{first}{name}: {width} elements per thread, {block} per scale");
        Ok(Some(Self {
            round,
            tensor_amax: whole,
            values: DeviceMemory::allocate(device.stream(), bytes)?,
            tensor_scale: outer,
            algorithm,
        }))
    }

    /// Enqueues a launch.
    pub(super) fn enqueue(&mut self, x: &DeviceMemory) -> Result<(), NativeError> {
        let Self { round, tensor_amax: whole, values: numbers, tensor_scale: outer, .. } = self;
        match whole {
            None => round.enqueue_all([x], [numbers]),
            Some(kernel) => {
                kernel.enqueue_all([x], [&mut *outer])?;
                round.enqueue_all([x, outer], [numbers])
            }
        }
    }
}

/// Elements per thread: 16 bytes if the row length allows it.
fn row_vector_width(kind: Dtype, columns: usize) -> usize {
    if columns.is_multiple_of(vector_width(kind)) { vector_width(kind) } else { 1 }
}

fn name(kind: Dtype, format: Format) -> String {
    match (format.method, format.element) {
        (QuantMethod::Nvfp4, _) => format!("round_{kind}_to_nvfp4"),
        (_, Element::E2m1) => format!("round_{kind}_to_mxfp4"),
        _ => format!("round_{kind}_to_mxfp8"),
    }
}

fn macros(name: &str, kind: Dtype, format: Format, width: usize) -> Vec<String> {
    let mut macros = common_macros(name, kind, width);
    macros.extend([format!("THREADS={THREADS}"), format!("BLOCK_SIZE={}", format.group_size(1))]);
    let of_e4m3 = ["MANTISSA_BITS=3", "MIN_NORMAL=0x1p-6f", "MAX_VALUE=448.0f"];
    let of_e2m1 = ["MANTISSA_BITS=1", "MIN_NORMAL=1.0f", "MAX_VALUE=6.0f"];
    let number = if format.element == Element::E4m3 { of_e4m3 } else { of_e2m1 };
    macros.extend(number.map(String::from));
    macros.extend((format.method == QuantMethod::Nvfp4).then(|| "NVFP4".into()));
    macros
}

/// Macros of the amax kernel.
fn amax_macros(name: &str, kind: Dtype, tile: RowTile) -> Vec<String> {
    let mut macros = tile.kernel_macros(name, kind);
    // The source requires a format, although nothing is quantized.
    macros.extend([format!("EPSILON={LAYER_NORM_EPSILON:e}f"), "QUANT_INT8".into(), "PER_TENSOR".into()]);
    macros.push(format!("AMAX_TARGET={NVFP4_MAX}"));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;
    use crate::format::MxScaling;

    #[test]
    #[ignore = "needs NVRTC"]
    fn sources_compile_for_every_dtype_and_width() {
        for kind in Dtype::ALL {
            let mx = |element| Format::mx(element, MxScaling::Ceil);
            for format in [mx(Element::E4m3), mx(Element::E2m1), Format::nvfp4()] {
                for columns in [129, 4096] {
                    assert_compiles(
                        CudaSource::FakeQuantizeInput,
                        &macros("rounded", kind, format, row_vector_width(kind, columns)),
                    );
                }
            }
            assert_compiles(CudaSource::TensorAmax, &amax_macros("amax", kind, RowTile::for_row(kind, 4096)));
        }
    }
}
