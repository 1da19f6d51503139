//! What kernels are given: sizes, and memory that is checked against them.

use super::CubeError;
use crate::Dtype;
use cubecl::ir::features::TypeUsage;
use cubecl::ir::{ElemType, FloatKind as Float};
use cubecl::prelude::*;
use cubecl::server::Handle;

/// The size of a matrix whose rows lie one after the other, and the type of its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Matrix {
    /// Rows; without any, nothing is launched.
    pub rows: usize,
    /// Columns; without any, nothing is launched.
    pub cols: usize,
    /// Type of the elements.
    pub kind: Dtype,
}

impl Matrix {
    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0 || self.cols == 0
    }

    pub(super) fn len(&self) -> usize {
        self.rows * self.cols
    }

    pub(super) fn storage(&self) -> StorageType {
        storage(self.kind)
    }

    /// Memory for the whole matrix.
    pub(super) fn whole<'a>(&self, name: &'static str, handle: &'a Handle) -> Operand<'a> {
        Operand { name, handle, elements: self.rows.saturating_mul(self.cols), kind: self.kind }
    }

    /// Memory for one row.
    pub(super) fn row<'a>(&self, name: &'static str, handle: &'a Handle) -> Operand<'a> {
        self.row_of(self.kind, name, handle)
    }

    /// Memory for one row of another type.
    pub(super) fn row_of<'a>(&self, kind: Dtype, name: &'static str, handle: &'a Handle) -> Operand<'a> {
        Operand { name, handle, elements: self.cols, kind }
    }
}

/// A type of elements as CubeCL names it.
pub(super) fn storage(kind: Dtype) -> StorageType {
    let kind = match kind {
        Dtype::F32 => Float::F32,
        Dtype::F16 => Float::F16,
        Dtype::Bf16 => Float::BF16,
    };
    StorageType::Scalar(ElemType::Float(kind))
}

/// Memory, and how many elements a kernel touches in it.
#[derive(Clone, Copy)]
pub(super) struct Operand<'a> {
    name: &'static str,
    handle: &'a Handle,
    elements: usize,
    kind: Dtype,
}

/// How a kernel reaches its operands.
pub(super) struct Access {
    /// Elements in one access.
    pub(super) width: usize,
    /// What counts them.
    pub(super) address: AddressType,
}

impl Access {
    /// Bytes of the widest access, to which memory must then be aligned.
    const WIDEST: u64 = 16;

    /// The widest that divides a `run` of elements, once all operands are known to be large enough.
    pub(super) fn to<R: Runtime>(
        client: &ComputeClient<R>,
        size: &Matrix,
        run: usize,
        operands: &[Operand],
    ) -> Result<Self, CubeError> {
        let &Matrix { rows, cols, kind } = size;
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
        for &Operand { name, handle, elements, kind } in operands {
            let (needs, has) = ((elements * kind.width()) as u64, handle.size_in_used());
            if has < needs {
                return Err(CubeError::TooSmall { operand: name, needs, has });
            }
        }
        let aligned = |operand: &Operand| operand.handle.offset_start.unwrap_or(0).is_multiple_of(Self::WIDEST);
        // No access is wider than that of the widest type.
        let element = operands.iter().map(|operand| operand.kind.width()).fold(kind.width(), usize::max);
        let mut widths = client.io_optimized_vector_sizes(element);
        let fits = |&width: &usize| width == 1 || (run.is_multiple_of(width) && operands.iter().all(aligned));
        // Half of u32's range, so that sums of positions do not overflow either.
        let address = AddressType::from_len_signed(size.len());
        Ok(Self { width: widths.find(fits).unwrap_or(1), address })
    }

    /// An operand as whole accesses.
    pub(super) fn arg<R: Runtime>(&self, operand: Operand) -> ArrayArg<R> {
        // SAFETY: `to` found that the memory holds so many elements.
        unsafe { ArrayArg::from_raw_parts(operand.handle.clone(), operand.elements / self.width) }
    }
}

/// At least so many cubes, and hardly more, in a shape that the device takes.
pub(super) fn cubes<R: Runtime>(client: &ComputeClient<R>, count: usize) -> CubeCount {
    let most = client.properties().hardware.max_cube_count.0 as usize;
    let layers = count.div_ceil(most);
    CubeCount::Static(count.div_ceil(layers) as u32, layers as u32, 1)
}
