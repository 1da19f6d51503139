//! Images and filters, channels last, as the tensor memory accelerator of Hopper copies them.

use std::ptr;

use cudarc::driver::sys::{
    self, CUtensorMapDataType_enum as Numbers, CUtensorMapFloatOOBfill_enum as Fill,
    CUtensorMapInterleave_enum as Interleave, CUtensorMapL2promotion_enum as Promotion,
    CUtensorMapSwizzle_enum as Swizzle,
};

use super::{NativeError, boxes::TensorMap, driver::failed};
use crate::Dtype;

/// What a convolution copies: 64 channels at a time, swizzled, of some pixels that lie under a tap, and of that tap of some
/// filters. Beyond the ends of either are zeros.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImageBoxes {
    /// f16 or bf16.
    pub(super) kind: Dtype,
    pub(super) images: usize,
    pub(super) height: usize,
    pub(super) width: usize,
    /// A multiple of 8.
    pub(super) channels: usize,
    pub(super) filters: usize,
    /// Taps of a filter in each direction.
    pub(super) side: usize,
    pub(super) stride: usize,
    pub(super) padding: usize,
    /// Pixels of y in a box.
    pub(super) pixels: usize,
    /// Filters in a box.
    pub(super) box_filters: usize,
}

/// Numbers of a row of a box: 128 bytes.
const CHANNELS: u32 = 64;

impl ImageBoxes {
    /// Describes the images and the filters at addresses of the device.
    pub(super) fn maps(&self, images: u64, filters: u64) -> Result<[TensorMap; 2], NativeError> {
        Ok([self.of_images(images)?, self.of_filters(filters)?])
    }

    fn numbers(&self) -> Numbers {
        match self.kind {
            Dtype::F32 => Numbers::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            Dtype::F16 => Numbers::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            Dtype::Bf16 => Numbers::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        }
    }

    fn of_images(&self, address: u64) -> Result<TensorMap, NativeError> {
        let Self { images, height, width, channels, side, stride, padding, pixels, .. } = *self;
        let sizes = [channels, width, height, images].map(|size| size as u64);
        let steps = [channels, width * channels, height * width * channels];
        let steps = steps.map(|numbers| (numbers * self.kind.width()) as u64);
        // A filter's first tap goes from the padding before the first pixel to where its last one meets the padding behind.
        let before = -(padding as i32);
        let behind = padding as i32 - (side as i32 - 1);
        let mut map = sys::CUtensorMap { opaque: [0; 16] };
        // SAFETY: all arrays are as long as the rank asks for; the map is written, and nothing is read at the address.
        let status = unsafe {
            sys::cuTensorMapEncodeIm2col(
                ptr::from_mut(&mut map),
                self.numbers(),
                sizes.len() as u32,
                address as *mut _,
                sizes.as_ptr(),
                steps.as_ptr(),
                [before; 2].as_ptr(),
                [behind; 2].as_ptr(),
                CHANNELS,
                pixels as u32,
                [1, stride as u32, stride as u32, 1].as_ptr(),
                Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                Swizzle::CU_TENSOR_MAP_SWIZZLE_128B,
                Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        };
        status.result().map_err(failed("describing images for copies of what lies under a tap"))?;
        Ok(TensorMap(map))
    }

    fn of_filters(&self, address: u64) -> Result<TensorMap, NativeError> {
        let Self { channels, filters, side, box_filters, .. } = *self;
        let sizes = [channels, side * side, filters].map(|size| size as u64);
        let steps = [channels, side * side * channels].map(|numbers| (numbers * self.kind.width()) as u64);
        let mut map = sys::CUtensorMap { opaque: [0; 16] };
        // SAFETY: as above.
        let status = unsafe {
            sys::cuTensorMapEncodeTiled(
                ptr::from_mut(&mut map),
                self.numbers(),
                sizes.len() as u32,
                address as *mut _,
                sizes.as_ptr(),
                steps.as_ptr(),
                [CHANNELS, 1, box_filters as u32].as_ptr(),
                [1; 3].as_ptr(),
                Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                Swizzle::CU_TENSOR_MAP_SWIZZLE_128B,
                Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        };
        status.result().map_err(failed("describing filters for copies of boxes"))?;
        Ok(TensorMap(map))
    }
}
