//! e4m3 matmuls with both operands along k.

use std::sync::Arc;

use super::{
    CudaDevice, DeviceBuffer, Float8Accumulation, Float8Output, LinearShape, NativeError,
    cublaslt::{CublasLtMatmul, MatmulOperands},
    gemm_spec::{GemmScales, GemmSpec, OperandTypes},
    gpu::ComputeCapability,
    scale_kernel::ScaleKernel,
    sizes::check_shape,
};
use crate::Dtype;

/// Plan of y[m, n] = x[m, k] · w[n, k]ᵀ for e4m3 values in row-major matrices.
///
/// cuBLASLt supports only operands that are contiguous along k. For w[k, n] use [`super::Float8MatmulPlan`], or
/// [`super::CudaKernel::quantize_columns`], which transposes during quantization. k and n must be multiples of 16.
#[derive(Debug)]
pub struct Float8LinearPlan {
    product: CublasLtMatmul,
    scale_kernel: Option<ScaleKernel>,
    device: Arc<CudaDevice>,
    shape: LinearShape,
    output: Float8Output,
}

impl Float8LinearPlan {
    /// Selects the algorithm. cuBLASLt applies the scales if it can (12.9 or newer, on Hopper); otherwise a separate
    /// kernel does.
    pub fn new(
        device: &Arc<CudaDevice>,
        shape: LinearShape,
        output: Float8Output,
        sums: Float8Accumulation,
    ) -> Result<Self, NativeError> {
        let scaled = !matches!(output, Float8Output::Plain(_));
        let scales = if scaled { GemmScales::RowsCols } else { GemmScales::None };
        let spec = GemmSpec { scales, ..GemmSpec::plain(OperandTypes::E4m3(sums), output.kind()) };
        device.require("an e4m3 matmul", ComputeCapability::E4M3)?;
        let shape = check_shape(shape)?;
        match CublasLtMatmul::plan(device, spec, shape) {
            Ok(product) => Ok(Self { product, scale_kernel: None, device: device.clone(), shape, output }),
            Err(NativeError::NoAlgorithm { .. } | NativeError::CublasLt { .. }) if scaled => {
                Self::with_scale_kernel(device, shape, output, sums)
            }
            Err(error) => Err(error),
        }
    }

    /// Plans a matmul to f32 accumulators and a separate kernel for scales and addend. Allocates 4 m n bytes.
    pub fn with_scale_kernel(
        device: &Arc<CudaDevice>,
        shape: LinearShape,
        output: Float8Output,
        sums: Float8Accumulation,
    ) -> Result<Self, NativeError> {
        device.require("an e4m3 matmul", ComputeCapability::E4M3)?;
        let shape = check_shape(shape)?;
        let spec = GemmSpec::plain(OperandTypes::E4m3(sums), Dtype::F32);
        let product = CublasLtMatmul::plan(device, spec, shape)?;
        let after = Some(ScaleKernel::new(device, shape, output)?);
        Ok(Self { product, scale_kernel: after, device: device.clone(), shape, output })
    }

    /// Plans a matmul with the block scales of [`super::CudaKernel::quantize_row_blocks`] and
    /// [`super::CudaKernel::quantize_square_blocks`], which cuBLASLt applies every 128 terms (12.9 or newer, on
    /// Hopper).
    pub fn with_block_scales(device: &Arc<CudaDevice>, shape: LinearShape, kind: Dtype) -> Result<Self, NativeError> {
        let spec = GemmSpec {
            scales: GemmScales::Blocks,
            ..GemmSpec::plain(OperandTypes::E4m3(Float8Accumulation::Promoted), kind)
        };
        device.require("an e4m3 matmul", ComputeCapability::E4M3)?;
        let shape = check_shape(shape)?;
        let product = CublasLtMatmul::plan(device, spec, shape)?;
        Ok(Self { product, scale_kernel: None, device: device.clone(), shape, output: Float8Output::Scaled(kind) })
    }

    /// Bytes of x.
    pub fn x_bytes(&self) -> usize {
        self.shape.m * self.shape.k
    }

    /// Bytes of w.
    pub fn w_bytes(&self) -> usize {
        self.shape.n * self.shape.k
    }

    /// Bytes of y, and of the addend.
    pub fn y_bytes(&self) -> usize {
        self.shape.y_bytes(self.output.kind())
    }

    /// Enqueues a launch. Inputs: x, w; if scaled, m row scales and n column scales; then the addend.
    pub fn enqueue(&self, inputs: &[&DeviceBuffer], y: &mut DeviceBuffer) -> Result<(), NativeError> {
        NativeError::check_input_count(self.output.inputs(), inputs.len())?;
        let (x, w) = (&inputs[0].memory, &inputs[1].memory);
        match &self.scale_kernel {
            None => {
                let scales = (inputs.len() > 2).then(|| [&inputs[2].memory, &inputs[3].memory]);
                let addend = inputs.get(4).map(|addend| &addend.memory);
                self.product.enqueue(&self.device, MatmulOperands { x, w, y: &y.memory, scales, addend, bias: None })
            }
            Some(after) => {
                let operands = MatmulOperands { x, w, y: &after.accumulators, scales: None, addend: None, bias: None };
                self.product.enqueue(&self.device, operands)?;
                let scales_and_addend = inputs[2..].iter().map(|input| &input.memory);
                after.kernel.enqueue_all([&after.accumulators].into_iter().chain(scales_and_addend), [&mut y.memory])
            }
        }
    }

    /// Algorithm in cuBLASLt's numeric settings, and where the scales are applied.
    pub fn algorithm(&self) -> String {
        let after = if self.scale_kernel.is_some() { ", then a separate kernel for the scales" } else { "" };
        format!("{}{after}", self.product.describe())
    }
}
