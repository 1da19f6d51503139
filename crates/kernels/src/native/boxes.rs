//! Matrices whose boxes a kernel copies by the tensor memory accelerator of Hopper.

use std::ptr;

use cudarc::driver::{DeviceRepr, sys};

use super::{NativeError, driver::failed};
use crate::Dtype;

/// Matrices behind each other, all of the same size, and what is copied of one at a time: so many rows of a column of 64
/// numbers, swizzled; zeros beyond the ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Boxes {
    /// Which input of the kernel they are.
    pub(super) input: usize,
    pub(super) kind: Dtype,
    pub(super) matrices: usize,
    pub(super) rows: usize,
    /// A multiple of 8.
    pub(super) columns: usize,
    /// Rows of a box.
    pub(super) height: usize,
}

/// What a kernel takes of them, by value.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(super) struct TensorMap(pub(super) sys::CUtensorMap);

// SAFETY: plain words without pointers of the host, which is what the kernel's parameter is.
unsafe impl DeviceRepr for TensorMap {}

impl Boxes {
    /// Bytes of a row of a box, which is what is swizzled.
    const WIDTH: usize = 128;

    /// A matrix of codes of a byte, an even number in a row: in twos, which are copied as numbers of 16 bits.
    pub(super) fn of_codes(input: usize, rows: usize, codes: usize, height: usize) -> Self {
        Self { input, kind: Dtype::F16, matrices: 1, rows, columns: codes / 2, height }
    }

    /// Describes them at an address of the device.
    pub(super) fn map(&self, address: u64) -> Result<TensorMap, NativeError> {
        use sys::{
            CUtensorMapDataType_enum as Numbers, CUtensorMapFloatOOBfill_enum as Fill,
            CUtensorMapInterleave_enum as Interleave, CUtensorMapL2promotion_enum as Promotion,
            CUtensorMapSwizzle_enum as Swizzle,
        };
        let Self { kind, matrices, rows, columns, height, .. } = *self;
        let numbers = match kind {
            Dtype::F32 => Numbers::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            Dtype::F16 => Numbers::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            Dtype::Bf16 => Numbers::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        };
        let sizes = [columns, rows, matrices].map(|size| size as u64);
        let steps = [columns, rows * columns].map(|numbers| (numbers * kind.width()) as u64);
        let of_box = [(Self::WIDTH / kind.width()) as u32, height as u32, 1];
        let mut map = sys::CUtensorMap { opaque: [0; 16] };
        // SAFETY: all arrays are as long as the rank asks for; the map is written, and nothing is read at the address.
        let status = unsafe {
            sys::cuTensorMapEncodeTiled(
                ptr::from_mut(&mut map),
                numbers,
                sizes.len() as u32,
                address as *mut _,
                sizes.as_ptr(),
                steps.as_ptr(),
                of_box.as_ptr(),
                [1; 3].as_ptr(),
                Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                Swizzle::CU_TENSOR_MAP_SWIZZLE_128B,
                Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        };
        status.result().map_err(failed("describing a matrix for copies of boxes"))?;
        Ok(TensorMap(map))
    }
}
