//! float8 matmuls of a linear layer in training.

use std::sync::Arc;

use super::{
    CudaDevice, DeviceBuffer, Float8Accumulation, Float8Dtype, Float8Format, LinearShape, NativeError,
    cublaslt::{CublasLtMatmul, MatmulOperands},
    driver::DeviceMemory,
    gemm_spec::{GemmScales, GemmSpec, OperandTypes},
    quantize_rows_cols::{OperandOrientations, QuantizedOperand, RowColQuantizer},
    sizes::check_shape,
};
use crate::Dtype;
use crate::format::Grouping;
use crate::layer::Rejection;

/// Matmul of a training step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrainingGemm {
    /// Output y[m, n], from input and weight.
    Output,
    /// Gradient of the input [m, k], from the gradient of y and the weight.
    GradInput,
    /// Gradient of the weight [n, k], from the gradient of y and the input.
    GradWeight,
}

/// Quantization of all operands; they share one granularity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TrainingGemmSpec {
    /// Granularity of the scales.
    pub granularity: Grouping,
    /// True if scales are powers of two.
    pub power_of_two: bool,
    /// Element type of the gradient of y; input and weight are e4m3.
    pub gradient: Float8Dtype,
    /// True if the weight has a tensor-wide scale in the backward pass, whatever its granularity in the forward pass.
    pub tensor_scaled_weight_in_backward: bool,
    /// Accumulation mode of the output; gradients use promoted accumulation.
    pub accumulation: Float8Accumulation,
}

/// Plan of some matmuls of a training step in bf16. Each operand is quantized once per required orientation: along rows
/// for one matmul and along columns for another. cuBLASLt multiplies and applies the scales.
///
/// x[m, k], w[n, k] and the gradient of y[m, n] are in bf16; m, k and n must be multiples of 16 for the tensor cores.
#[derive(Debug)]
pub struct TrainingGemmsPlan {
    input: Option<RowColQuantizer>,
    weight: Option<RowColQuantizer>,
    /// Weight for the backward pass, if it has a different scale.
    backward_weight: Option<RowColQuantizer>,
    gradient: Option<RowColQuantizer>,
    products: Vec<(TrainingGemm, CublasLtMatmul)>,
    device: Arc<CudaDevice>,
}

impl TrainingGemmsPlan {
    /// Selects the algorithms and compiles.
    pub fn new(
        device: &Arc<CudaDevice>,
        spec: TrainingGemmSpec,
        shape: LinearShape,
        requested: &[TrainingGemm],
    ) -> Result<Self, NativeError> {
        use TrainingGemm::{GradInput, GradWeight, Output};
        let LinearShape { m, k, n } = check_shape(shape)?;
        if let Grouping::Block(_) = spec.granularity {
            return Err(Rejection::Spec("float8 with one scale per row or per tensor").into());
        }
        let is = |product| requested.contains(&product);
        let TrainingGemmSpec {
            granularity: shared,
            power_of_two,
            tensor_scaled_weight_in_backward: whole_weight_back,
            ..
        } = spec;
        let quantizer = |format: Float8Format, plain, turned, size| -> Result<Option<RowColQuantizer>, NativeError> {
            (plain || turned)
                .then(|| RowColQuantizer::new(device, format, OperandOrientations { plain, transposed: turned }, size))
                .transpose()
        };
        let format = |codes| Float8Format { dtype: codes, granularity: shared, power_of_two, scale_per_line: false };
        let e4m3 = format(Float8Dtype::E4m3);
        let whole = Float8Format { granularity: Grouping::Tensor, scale_per_line: shared == Grouping::Row, ..e4m3 };
        let product = |&product: &TrainingGemm| -> Result<_, NativeError> {
            let (left, shape) = match product {
                Output => (Float8Dtype::E4m3, LinearShape { m, k, n }),
                GradInput => (spec.gradient, LinearShape { m, k: n, n: k }),
                GradWeight => (spec.gradient, LinearShape { m: n, k: m, n: k }),
            };
            let sums = if product == Output { spec.accumulation } else { Float8Accumulation::Promoted };
            let factors = match left {
                Float8Dtype::E4m3 => OperandTypes::E4m3(sums),
                Float8Dtype::E5m2 => OperandTypes::E5m2ByE4m3(sums),
            };
            let scales = if spec.granularity == Grouping::Row { GemmScales::RowsCols } else { GemmScales::Tensors };
            let spec = GemmSpec { scales, ..GemmSpec::plain(factors, Dtype::Bf16) };
            Ok((product, CublasLtMatmul::plan(device, spec, shape)?))
        };
        Ok(Self {
            input: quantizer(e4m3, is(Output), is(GradWeight), (m, k))?,
            weight: quantizer(e4m3, is(Output), is(GradInput) && !whole_weight_back, (n, k))?,
            backward_weight: quantizer(whole, false, is(GradInput) && whole_weight_back, (n, k))?,
            gradient: quantizer(format(spec.gradient), is(GradInput), is(GradWeight), (m, n))?,
            products: requested.iter().map(product).collect::<Result<_, _>>()?,
            device: device.clone(),
        })
    }

    /// Enqueues the quantization of input and weight for all planned matmuls.
    pub fn quantize_operands(&mut self, input: &DeviceBuffer, weight: &DeviceBuffer) -> Result<(), NativeError> {
        let Self { input: of_input, weight: of_weight, backward_weight: weight_back, .. } = self;
        let coded = [(of_input, input), (of_weight, weight), (weight_back, weight)].into_iter();
        coded
            .filter_map(|(codes, of)| Some((codes.as_mut()?, of)))
            .try_for_each(|(codes, of)| codes.enqueue(&of.memory))
    }

    /// Enqueues the quantization of the output gradient.
    pub fn quantize_gradient(&mut self, gradient: &DeviceBuffer) -> Result<(), NativeError> {
        self.gradient.as_mut().map_or(Ok(()), |codes| codes.enqueue(&gradient.memory))
    }

    /// Enqueues a planned matmul of the operands quantized last, optionally with an addend before rounding.
    pub fn multiply(
        &self,
        product: TrainingGemm,
        added: Option<&DeviceBuffer>,
        output: &mut DeviceBuffer,
    ) -> Result<(), NativeError> {
        let Self { input, weight, backward_weight: weight_back, gradient, .. } = self;
        let (left, right) = match product {
            TrainingGemm::Output => (row_major(input), row_major(weight)),
            TrainingGemm::GradInput => {
                (row_major(gradient), transposed(if weight_back.is_some() { weight_back } else { weight }))
            }
            TrainingGemm::GradWeight => (transposed(gradient), transposed(input)),
        };
        let scales: Option<[&DeviceMemory; 2]> = Some([&left.scales, &right.scales]);
        let added = added.map(|added| &added.memory);
        let operands =
            MatmulOperands { x: &left.codes, w: &right.codes, y: &output.memory, scales, addend: added, bias: None };
        let (_, plan) = self.products.iter().find(|(planned, _)| *planned == product).expect(PLANNED);
        plan.enqueue(&self.device, operands)
    }

    /// Kernels and the algorithms of cuBLASLt.
    pub fn algorithm(&self) -> String {
        let products = self.products.iter().map(|(_, product)| product.describe());
        let operands = [&self.input, &self.weight, &self.backward_weight, &self.gradient].into_iter().flatten().count();
        let codes = format!("amax and quantization of {operands} operands");
        [codes].into_iter().chain(products).collect::<Vec<_>>().join("; then ")
    }
}

const PLANNED: &str = "the plan contains this matmul";

fn row_major(codes: &Option<RowColQuantizer>) -> &QuantizedOperand {
    codes.as_ref().and_then(|codes| codes.plain.as_ref()).expect(PLANNED)
}

fn transposed(codes: &Option<RowColQuantizer>) -> &QuantizedOperand {
    codes.as_ref().and_then(|codes| codes.turned.as_ref()).expect(PLANNED)
}
