//! Operands of kernels: sizes, and memory that is checked against them.

use super::CubeError;
use crate::Dtype;
use cubecl::ir::features::TypeUsage;
use cubecl::ir::{ElemType, FloatKind as Float};
use cubecl::prelude::*;
use cubecl::server::Handle;

/// Size and dtype of a row-major matrix without gaps between rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixLayout {
    /// Rows; nothing is launched if 0.
    pub rows: usize,
    /// Columns; nothing is launched if 0.
    pub cols: usize,
    /// Dtype of the elements.
    pub kind: Dtype,
}

impl MatrixLayout {
    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0 || self.cols == 0
    }

    pub(super) fn len(&self) -> usize {
        self.rows * self.cols
    }

    pub(super) fn storage(&self) -> StorageType {
        storage(self.kind)
    }

    /// Operand of the whole matrix.
    pub(super) fn operand<'a>(&self, name: &'static str, handle: &'a Handle) -> CubeOperand<'a> {
        CubeOperand { name, handle, elements: self.rows.saturating_mul(self.cols), kind: self.kind }
    }

    /// Operand of one row.
    pub(super) fn row_operand<'a>(&self, name: &'static str, handle: &'a Handle) -> CubeOperand<'a> {
        self.row_operand_of(self.kind, name, handle)
    }

    /// Operand of one row with another dtype.
    pub(super) fn row_operand_of<'a>(&self, kind: Dtype, name: &'static str, handle: &'a Handle) -> CubeOperand<'a> {
        CubeOperand { name, handle, elements: self.cols, kind }
    }
}

/// Returns CubeCL's name of a dtype.
pub(super) fn storage(kind: Dtype) -> StorageType {
    let kind = match kind {
        Dtype::F32 => Float::F32,
        Dtype::F16 => Float::F16,
        Dtype::Bf16 => Float::BF16,
    };
    StorageType::Scalar(ElemType::Float(kind))
}

/// Memory, and the number of elements that a kernel accesses.
#[derive(Clone, Copy)]
pub(super) struct CubeOperand<'a> {
    name: &'static str,
    handle: &'a Handle,
    elements: usize,
    kind: Dtype,
}

/// Bytes of the widest vector, and its alignment.
const MAX_VECTOR_BYTES: u64 = 16;

/// True if memory may be accessed in vectors.
pub(super) fn is_aligned(handle: &Handle) -> bool {
    handle.offset_start.unwrap_or(0).is_multiple_of(MAX_VECTOR_BYTES)
}

/// Vector width and index type of a kernel.
pub(super) struct VectorAccess {
    /// Elements per vector.
    pub(super) width: usize,
    /// Index type.
    pub(super) address: AddressType,
}

impl VectorAccess {
    /// Selects the widest vector that divides `run` elements, after checking the size of all operands.
    pub(super) fn for_operands<R: Runtime>(
        client: &ComputeClient<R>,
        size: &MatrixLayout,
        run: usize,
        operands: &[CubeOperand],
    ) -> Result<Self, CubeError> {
        let &MatrixLayout { rows, cols, kind } = size;
        let needed = TypeUsage::Buffer | TypeUsage::Conversion;
        for kind in operands.iter().map(|operand| operand.kind) {
            if !client.properties().type_usage(storage(kind)).is_superset(needed) {
                return Err(CubeError::Unsupported { kind });
            }
        }
        let bytes = rows.checked_mul(cols).and_then(|elements| elements.checked_mul(kind.width()));
        if bytes.is_none_or(|bytes| bytes > isize::MAX as usize) {
            return Err(CubeError::TooLarge { rows, cols });
        }
        for &CubeOperand { name, handle, elements, kind } in operands {
            let (needs, has) = ((elements * kind.width()) as u64, handle.size_in_used());
            if has < needs {
                return Err(CubeError::TooSmall { operand: name, needs, has });
            }
        }
        let aligned = |operand: &CubeOperand| is_aligned(operand.handle);
        // The operand with the widest dtype limits the vector width.
        let element = operands.iter().map(|operand| operand.kind.width()).fold(kind.width(), usize::max);
        let mut widths = client.io_optimized_vector_sizes(element);
        let fits = |&width: &usize| width == 1 || (run.is_multiple_of(width) && operands.iter().all(aligned));
        // Only half the range of u32, so that sums of indices do not overflow.
        let address = AddressType::from_len_signed(size.len());
        Ok(Self { width: widths.find(fits).unwrap_or(1), address })
    }

    /// Returns an operand as an array of vectors.
    pub(super) fn arg<R: Runtime>(&self, operand: CubeOperand) -> ArrayArg<R> {
        // SAFETY: the constructor checked that the memory holds `elements` elements.
        unsafe { ArrayArg::from_raw_parts(operand.handle.clone(), operand.elements / self.width) }
    }
}

/// Returns a grid of at least `count` cubes, with few excess ones, in a shape that the device supports.
pub(super) fn cubes<R: Runtime>(client: &ComputeClient<R>, count: usize) -> CubeCount {
    let most = client.properties().hardware.max_cube_count.0 as usize;
    let layers = count.div_ceil(most);
    CubeCount::Static(count.div_ceil(layers) as u32, layers as u32, 1)
}
