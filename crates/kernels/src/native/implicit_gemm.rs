//! Implicit-GEMM convolution by wgmma on Hopper; TMA in im2col mode gathers the input.

use super::{
    ConvolutionSpec, CudaDevice, CudaKernel, NativeError,
    im2col_tiles::Im2colTiles,
    kernel::{KernelArgs, LaunchGeometry, common_macros, vector_width},
    nvrtc::CudaSource,
    sizes::{MULTIPROCESSORS, check_size},
};
use crate::Dtype;

/// Output pixels per tile.
const TILE_PIXELS: usize = 128;
/// Threads of a block: one producer warp group and two consumer warp groups.
const THREADS: usize = 3 * 128;

/// Compiles for a checked specification. Inputs: x, w, bias; output: y.
pub(super) fn kernel(device: &CudaDevice, kind: Dtype, spec: ConvolutionSpec) -> Result<CudaKernel, NativeError> {
    let tile = ImplicitGemmTile::new(spec);
    let (pixels, filters) = (spec.output_pixels(), spec.stored_filters());
    check_size("the number of pixels", pixels)?;
    let name = format!("implicit_gemm_conv_{kind}");
    let reads = [("x", spec.x_bytes(kind)), ("w", spec.w_bytes(kind)), ("bias", spec.bias_bytes(kind))];
    let args = KernelArgs::new(reads, [("y", spec.y_bytes(kind))], (pixels, filters));
    let geometry = LaunchGeometry::new(tile.blocks(spec), (THREADS, 1))?;
    let macros = macros(&name, kind, spec, tile);
    let kernel = CudaKernel::prepare(device, CudaSource::ImplicitGemmConv, &name, macros, args, geometry)?;
    let ConvolutionSpec { images, height, width, filter_size: side, stride, padding, .. } = spec;
    let boxes = Im2colTiles {
        kind,
        images,
        height,
        width,
        channels: spec.stored_channels(),
        filters,
        filter_size: side,
        stride,
        padding,
        tile_pixels: TILE_PIXELS,
        tile_filters: tile.filters,
    };
    let description = format!(
        "{name}: wgmma, tile of {TILE_PIXELS} pixels by {} filters, {} stages of 64 channels",
        tile.filters, tile.stages
    );
    let shared_bytes = tile.stages * tile.stage_bytes();
    Ok(kernel.with_im2col_tiles(boxes).with_dynamic_smem(shared_bytes)?.with_description(description))
}

/// Tile configuration of the implicit GEMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ImplicitGemmTile {
    /// Filters per tile.
    filters: usize,
    /// Pipeline stages.
    stages: usize,
}

impl ImplicitGemmTile {
    /// Shared memory per block, less the static part of the kernel.
    const MAX_SMEM_BYTES: usize = 224 << 10;

    fn new(spec: ConvolutionSpec) -> Self {
        let stored = spec.stored_filters();
        // Widest tile among those with the fewest padded filters.
        let filters = [256, 128, 64].into_iter().min_by_key(|width| stored.next_multiple_of(*width)).unwrap_or(64);
        let tile = Self { filters, stages: 1 };
        Self { stages: (Self::MAX_SMEM_BYTES / tile.stage_bytes()).min(8), ..tile }
    }

    fn stage_bytes(&self) -> usize {
        2 * 64 * (TILE_PIXELS + self.filters)
    }

    /// Number of blocks, at most one per multiprocessor.
    fn blocks(&self, spec: ConvolutionSpec) -> usize {
        (spec.output_pixels().div_ceil(TILE_PIXELS) * spec.stored_filters().div_ceil(self.filters)).min(MULTIPROCESSORS)
    }
}

fn macros(name: &str, kind: Dtype, spec: ConvolutionSpec, tile: ImplicitGemmTile) -> Vec<String> {
    let ConvolutionSpec { filter_size: side, stride, padding, relu, .. } = spec;
    let [height, width] = spec.out_size();
    let mut macros = common_macros(name, kind, vector_width(kind));
    macros.extend([format!("FILTER_SIZE={side}"), format!("STRIDE={stride}"), format!("PADDING={padding}")]);
    macros.extend([format!("OUT_HEIGHT={height}"), format!("OUT_WIDTH={width}")]);
    macros.extend([format!("CHANNELS={}", spec.stored_channels()), format!("RELU={}", u8::from(relu))]);
    macros.extend([format!("BLOCK_N={}", tile.filters), format!("STAGES={}", tile.stages)]);
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    fn example_spec(filters: usize, images: usize) -> ConvolutionSpec {
        let (height, width, channels) = (14, 14, 100);
        ConvolutionSpec { images, height, width, channels, filters, filter_size: 3, stride: 1, padding: 1, relu: true }
    }

    #[test]
    fn tile_width_minimizes_padded_filters() {
        for (filters, width) in [(1, 64), (64, 64), (65, 128), (130, 64), (256, 256), (384, 128), (512, 256)] {
            assert_eq!(ImplicitGemmTile::new(example_spec(filters, 8)).filters, width, "{filters}");
        }
    }

    #[test]
    fn smem_holds_at_least_four_stages() {
        for filters in [1, 128, 256] {
            let tile = ImplicitGemmTile::new(example_spec(filters, 8));
            assert!(
                tile.stages >= 4 && tile.stages * tile.stage_bytes() <= ImplicitGemmTile::MAX_SMEM_BYTES,
                "{tile:?}"
            );
        }
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_tile() {
        for kind in [Dtype::F16, Dtype::Bf16] {
            for filters in [64, 128, 256] {
                for relu in [false, true] {
                    let spec = ConvolutionSpec { relu, ..example_spec(filters, 8) };
                    assert_compiles(
                        CudaSource::ImplicitGemmConv,
                        &macros("implicit_gemm_conv", kind, spec, ImplicitGemmTile::new(spec)),
                    );
                }
            }
        }
    }
}
