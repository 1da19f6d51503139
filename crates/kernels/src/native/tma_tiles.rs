//! Tensor maps for TMA loads of matrix tiles (`cuTensorMapEncodeTiled`).

use std::ptr;

use cudarc::driver::{DeviceRepr, sys};

use super::{NativeError, driver::driver_error};
use crate::Dtype;

/// Batch of equally sized matrices and the tile that one TMA load copies: `height` rows by 128 bytes with 128-byte
/// swizzle. Elements beyond the matrix are zero.
#[derive(Debug, Clone, Copy)]
pub(super) struct TmaTiles {
    /// Index of the kernel input that holds the matrices.
    pub(super) input: usize,
    pub(super) kind: Dtype,
    pub(super) matrices: usize,
    pub(super) rows: usize,
    /// Multiple of 8.
    pub(super) columns: usize,
    /// Rows of a tile.
    pub(super) height: usize,
}

/// Tensor map as a by-value kernel argument.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(super) struct TensorMap(pub(super) sys::CUtensorMap);

// SAFETY: plain words without host pointers, the type of the kernel parameter.
unsafe impl DeviceRepr for TensorMap {}

impl TmaTiles {
    /// Bytes of a tile row, equal to the swizzle span.
    const ROW_BYTES: usize = 128;

    /// Tiles of a matrix of bytes with an even row length; pairs of bytes are copied as 16-bit elements.
    pub(super) fn for_bytes(input: usize, rows: usize, codes: usize, height: usize) -> Self {
        Self { input, kind: Dtype::F16, matrices: 1, rows, columns: codes / 2, height }
    }

    /// Encodes the tensor map for a device address.
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
        let of_box = [(Self::ROW_BYTES / kind.width()) as u32, height as u32, 1];
        let mut map = sys::CUtensorMap { opaque: [0; 16] };
        // SAFETY: all arrays have the length of the rank; the map is written, and the address is not dereferenced.
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
        status.result().map_err(driver_error("encoding a tensor map"))?;
        Ok(TensorMap(map))
    }
}
