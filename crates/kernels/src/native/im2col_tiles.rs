//! Tensor maps for implicit-GEMM convolutions in channels-last layout (`cuTensorMapEncodeIm2col`).

use std::ptr;

use cudarc::driver::sys::{
    self, CUtensorMapDataType_enum as Numbers, CUtensorMapFloatOOBfill_enum as Fill,
    CUtensorMapInterleave_enum as Interleave, CUtensorMapL2promotion_enum as Promotion,
    CUtensorMapSwizzle_enum as Swizzle,
};

use super::{NativeError, driver::driver_error, tma_tiles::TensorMap};
use crate::Dtype;

/// Images and filters of a convolution, and the tiles of one TMA load: 64 channels, swizzled, of the pixels under one
/// filter tap (im2col mode), and of that tap of several filters. Elements beyond either tensor are zero.
#[derive(Debug, Clone, Copy)]
pub(super) struct Im2colTiles {
    /// f16 or bf16.
    pub(super) kind: Dtype,
    pub(super) images: usize,
    pub(super) height: usize,
    pub(super) width: usize,
    /// Multiple of 8.
    pub(super) channels: usize,
    pub(super) filters: usize,
    /// Height and width of a filter.
    pub(super) filter_size: usize,
    pub(super) stride: usize,
    pub(super) padding: usize,
    /// Output pixels of a tile.
    pub(super) tile_pixels: usize,
    /// Filters of a tile.
    pub(super) tile_filters: usize,
}

/// Channels of a tile row: 128 bytes.
const TILE_CHANNELS: u32 = 64;

impl Im2colTiles {
    /// Encodes the tensor maps of images and filters for their device addresses.
    pub(super) fn maps(&self, images: u64, filters: u64) -> Result<[TensorMap; 2], NativeError> {
        Ok([self.image_map(images)?, self.filter_map(filters)?])
    }

    fn data_type(&self) -> Numbers {
        match self.kind {
            Dtype::F32 => Numbers::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            Dtype::F16 => Numbers::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            Dtype::Bf16 => Numbers::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        }
    }

    fn image_map(&self, address: u64) -> Result<TensorMap, NativeError> {
        let Self { images, height, width, channels, filter_size: side, stride, padding, tile_pixels: pixels, .. } =
            *self;
        let sizes = [channels, width, height, images].map(|size| size as u64);
        let steps = [channels, width * channels, height * width * channels];
        let steps = steps.map(|numbers| (numbers * self.kind.width()) as u64);
        // Bounding box of the first filter tap: from the leading padding to the position whose last tap meets the
        // trailing padding.
        let before = -(padding as i32);
        let behind = padding as i32 - (side as i32 - 1);
        let mut map = sys::CUtensorMap { opaque: [0; 16] };
        // SAFETY: all arrays have the length of the rank; the map is written, and the address is not dereferenced.
        let status = unsafe {
            sys::cuTensorMapEncodeIm2col(
                ptr::from_mut(&mut map),
                self.data_type(),
                sizes.len() as u32,
                address as *mut _,
                sizes.as_ptr(),
                steps.as_ptr(),
                [before; 2].as_ptr(),
                [behind; 2].as_ptr(),
                TILE_CHANNELS,
                pixels as u32,
                [1, stride as u32, stride as u32, 1].as_ptr(),
                Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                Swizzle::CU_TENSOR_MAP_SWIZZLE_128B,
                Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        };
        status.result().map_err(driver_error("encoding an im2col tensor map"))?;
        Ok(TensorMap(map))
    }

    fn filter_map(&self, address: u64) -> Result<TensorMap, NativeError> {
        let Self { channels, filters, filter_size: side, tile_filters: box_filters, .. } = *self;
        let sizes = [channels, side * side, filters].map(|size| size as u64);
        let steps = [channels, side * side * channels].map(|numbers| (numbers * self.kind.width()) as u64);
        let mut map = sys::CUtensorMap { opaque: [0; 16] };
        // SAFETY: all arrays have the length of the rank; the map is written, and the address is not dereferenced.
        let status = unsafe {
            sys::cuTensorMapEncodeTiled(
                ptr::from_mut(&mut map),
                self.data_type(),
                sizes.len() as u32,
                address as *mut _,
                sizes.as_ptr(),
                steps.as_ptr(),
                [TILE_CHANNELS, 1, box_filters as u32].as_ptr(),
                [1; 3].as_ptr(),
                Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                Swizzle::CU_TENSOR_MAP_SWIZZLE_128B,
                Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        };
        status.result().map_err(driver_error("encoding a tensor map of filters"))?;
        Ok(TensorMap(map))
    }
}
