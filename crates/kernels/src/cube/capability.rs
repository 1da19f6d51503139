//! Instructions of a device that layer kernels use.

use crate::Dtype;
use cubecl::ir::features::MmaConfig;
use cubecl::ir::{ElemType, FloatKind, IntKind};
use cubecl::prelude::*;

/// Units of a plane, as matrix instructions require.
pub(super) const PLANE_SIZE: usize = 32;

/// Weight rows, input rows and values along k of a matrix instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MmaShape {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
}

/// Matrix instruction on f16 and bf16.
pub(super) const FLOAT_MMA: MmaShape = MmaShape { m: 16, n: 8, k: 16 };

/// Matrix instruction on int8.
pub(super) const INT8_MMA: MmaShape = MmaShape { m: 16, n: 8, k: 32 };

/// Properties of a device that decide which layer kernels run on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CubeCapability {
    /// True for matrix instructions on f16 with f32 accumulators.
    pub f16_mma: bool,
    /// True for matrix instructions on bf16 with f32 accumulators.
    pub bf16_mma: bool,
    /// True for matrix instructions on int8 with i32 accumulators, and accesses of four words.
    pub int8_mma: bool,
    /// Bytes of shared memory per cube.
    pub shared_memory: usize,
}

impl CubeCapability {
    /// Device with all instructions and unlimited shared memory.
    pub const COMPLETE: Self = Self { f16_mma: true, bf16_mma: true, int8_mma: true, shared_memory: usize::MAX };

    /// Returns the capability of a client's device.
    pub fn of_client<R: Runtime>(client: &ComputeClient<R>) -> Self {
        let properties = client.properties();
        let hardware = &properties.hardware;
        let has_mma = |operand: ElemType, accumulator: ElemType, MmaShape { m, n, k }: MmaShape| {
            let (a_type, b_type, cd_type) = (operand.into(), operand.into(), accumulator.into());
            let config = MmaConfig { a_type, b_type, cd_type, m: m as u32, n: n as u32, k: k as u32 };
            [hardware.plane_size_min, hardware.plane_size_max] == [PLANE_SIZE as u32; 2]
                && properties.features.matmul.mma.contains(&config)
        };
        let has_float_mma = |kind| has_mma(ElemType::Float(kind), ElemType::Float(FloatKind::F32), FLOAT_MMA);
        Self {
            f16_mma: has_float_mma(FloatKind::F16),
            bf16_mma: has_float_mma(FloatKind::BF16),
            int8_mma: has_mma(ElemType::Int(IntKind::I8), ElemType::Int(IntKind::I32), INT8_MMA)
                && max_vector_width(client, 4, 4) == 4,
            shared_memory: hardware.max_shared_memory_size,
        }
    }

    /// True for matrix instructions on a dtype with f32 accumulators.
    pub(super) fn has_mma(&self, dtype: Dtype) -> bool {
        match dtype {
            Dtype::F32 => false,
            Dtype::F16 => self.f16_mma,
            Dtype::Bf16 => self.bf16_mma,
        }
    }
}

/// Widest vector, in elements of `bytes` bytes, that divides a run of `run` elements.
pub(super) fn max_vector_width<R: Runtime>(client: &ComputeClient<R>, bytes: usize, run: usize) -> usize {
    client.io_optimized_vector_sizes(bytes).find(|&width| run.is_multiple_of(width)).unwrap_or(1)
}
