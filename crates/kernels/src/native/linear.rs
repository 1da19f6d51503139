//! Unquantized matmuls by cuBLASLt.

use std::sync::Arc;

use super::{
    CudaDevice, DeviceBuffer, Epilogue, Float8Output, LinearShape, LinearSpec, NativeError,
    cublaslt::{CublasLtMatmul, MatmulOperands},
    driver::DeviceMemory,
    gemm_spec::{GemmSpec, OperandTypes},
    scale_kernel::ScaleKernel,
    sizes::check_shape,
};
use crate::Dtype;

/// Plan of y[m, n] = x[m, k] · w[n, k]ᵀ with row-major matrices and f32 accumulators. f32 inputs are rounded to TF32
/// only by [`LinearPlan::with_tf32`].
///
/// The algorithm is the fastest of eight that cuBLASLt's heuristic proposes within 64 MiB of workspace. They are timed
/// on scratch buffers when the first such plan of a device is created. The first proposal is used if no other is faster
/// by 1 %, or if memory does not suffice. A device with a cache folder reuses earlier results.
#[derive(Debug)]
pub struct LinearPlan {
    product: CublasLtMatmul,
    scale_kernel: Option<ScaleKernel>,
    device: Arc<CudaDevice>,
    spec: LinearSpec,
    shape: LinearShape,
}

impl LinearPlan {
    /// Selects the algorithm of a matmul with one dtype and default layouts.
    pub fn new(device: &Arc<CudaDevice>, kind: Dtype, shape: LinearShape) -> Result<Self, NativeError> {
        Self::with_spec(device, LinearSpec::plain(kind), shape)
    }

    /// Selects the algorithm of a matmul with other layouts, another output dtype, or a bias.
    ///
    /// cuBLASLt supports outputs of the input dtype, and f32 for half precision. For other output dtypes a separate
    /// kernel rounds f32 accumulators, which take 4 m n bytes; such a matmul has no epilogue.
    pub fn with_spec(device: &Arc<CudaDevice>, spec: LinearSpec, shape: LinearShape) -> Result<Self, NativeError> {
        let factors = OperandTypes::Float(spec.kind);
        let known = spec.output == spec.kind || spec.output == Dtype::F32;
        if known || spec.epilogue != Epilogue::None {
            return Self::plan(device, spec, factors, shape);
        }
        let linear = Self::plan(device, LinearSpec { output: Dtype::F32, ..spec }, factors, shape)?;
        let after = ScaleKernel::new(device, shape, Float8Output::Plain(spec.output))?;
        Ok(Self { scale_kernel: Some(after), spec, ..linear })
    }

    /// Selects the algorithm of an f32 matmul whose inputs may be rounded to TF32.
    pub fn with_tf32(device: &Arc<CudaDevice>, shape: LinearShape) -> Result<Self, NativeError> {
        Self::plan(device, LinearSpec::plain(Dtype::F32), OperandTypes::Tf32, shape)
    }

    fn plan(
        device: &Arc<CudaDevice>,
        spec: LinearSpec,
        factors: OperandTypes,
        shape: LinearShape,
    ) -> Result<Self, NativeError> {
        let shape = check_shape(shape)?;
        let LinearSpec { output, input, weight, epilogue, .. } = spec;
        let product = CublasLtMatmul::plan(
            device,
            GemmSpec { input, weight, epilogue, ..GemmSpec::plain(factors, output) },
            shape,
        )?;
        Ok(Self { product, scale_kernel: None, device: device.clone(), spec, shape })
    }

    /// Bytes of the input.
    pub fn x_bytes(&self) -> usize {
        self.shape.x_bytes(self.spec.kind)
    }

    /// Bytes of the weight.
    pub fn w_bytes(&self) -> usize {
        self.shape.w_bytes(self.spec.kind)
    }

    /// Bytes of the output.
    pub fn y_bytes(&self) -> usize {
        self.shape.y_bytes(self.spec.output)
    }

    /// Bytes of the bias, for an epilogue with bias.
    pub fn bias_bytes(&self) -> usize {
        self.shape.n * self.spec.output.width()
    }

    /// Enqueues a launch.
    pub fn enqueue(&self, x: &DeviceBuffer, w: &DeviceBuffer, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        self.run([&x.memory, &w.memory], None, None, y)
    }

    /// Enqueues a launch with bias.
    pub fn enqueue_with_bias(
        &self,
        x: &DeviceBuffer,
        w: &DeviceBuffer,
        bias: &DeviceBuffer,
        y: &mut DeviceBuffer,
    ) -> Result<(), NativeError> {
        self.run([&x.memory, &w.memory], Some(&bias.memory), None, y)
    }

    /// Enqueues a launch that adds a matrix of the shape of y before rounding. Not available with a separate rounding
    /// kernel.
    pub fn enqueue_with_addend(
        &self,
        x: &DeviceBuffer,
        w: &DeviceBuffer,
        added: &DeviceBuffer,
        y: &mut DeviceBuffer,
    ) -> Result<(), NativeError> {
        self.run([&x.memory, &w.memory], None, Some(&added.memory), y)
    }

    /// Enqueues a launch on x and w, a bias, and an addend.
    pub(super) fn run(
        &self,
        [x, w]: [&DeviceMemory; 2],
        bias: Option<&DeviceMemory>,
        added: Option<&DeviceMemory>,
        y: &mut DeviceBuffer,
    ) -> Result<(), NativeError> {
        NativeError::check_input_count(self.input_count(), 2 + usize::from(bias.is_some()))?;
        if added.is_some() && self.scale_kernel.is_some() {
            return Err(NativeError::InputCount { needed: 2, found: 3 });
        }
        let sums = self.scale_kernel.as_ref().map_or(&y.memory, |after| &after.accumulators);
        let operands = MatmulOperands { x, w, y: sums, scales: None, addend: added, bias };
        self.product.enqueue(&self.device, operands)?;
        match &self.scale_kernel {
            Some(after) => after.kernel.enqueue_all([&after.accumulators], [&mut y.memory]),
            None => Ok(()),
        }
    }

    fn input_count(&self) -> usize {
        if self.spec.epilogue.has_bias() { 3 } else { 2 }
    }

    /// Algorithm in cuBLASLt's numeric settings, and where rounding happens.
    pub fn algorithm(&self) -> String {
        let after = if self.scale_kernel.is_some() { ", then a separate rounding kernel" } else { "" };
        format!("{}{after}", self.product.describe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_checked_and_sized_in_bytes() {
        let shape = LinearShape { m: 3, k: 5, n: 7 };
        let kind = Dtype::Bf16;
        assert_eq!((shape.x_bytes(kind), shape.w_bytes(kind), shape.y_bytes(kind)), (30, 70, 42));
        assert!(check_shape(shape).is_ok());
        const LIMIT: usize = 2_147_483_647;
        let invalid = |what, value| Err(NativeError::InvalidSize { what, limit: LIMIT, value });
        assert_eq!(check_shape(LinearShape { k: 0, ..shape }), invalid("k", 0));
        assert_eq!(check_shape(LinearShape { n: LIMIT + 1, ..shape }), invalid("n", LIMIT + 1));
    }
}
