//! Matmuls of one trained linear layer on CUDA: cuBLASLt in the dtype of the model, or float8 under a training recipe.

use crate::{Spec, ZooError};
use calorimeter_kernels::format::Grouping;
use calorimeter_kernels::native::{
    CudaDevice, DeviceBuffer, Float8Accumulation, Float8Dtype, InputLayout, LinearPlan, LinearShape, LinearSpec,
    NativeError, TrainingGemm, TrainingGemmSpec, TrainingGemmsPlan, WeightLayout,
};
use calorimeter_recipes::{Dtype, Element, TrainingRecipe};
use std::sync::Arc;

/// Forward and backward matmuls of a layer y = x wᵀ.
pub struct NativeLayer {
    /// Matmuls in the dtype of the model.
    unquantized: Vec<(TrainingGemm, LinearPlan)>,
    /// Float8 matmuls.
    quantized: Option<Box<TrainingGemmsPlan>>,
    /// True if the forward pass runs first and quantizes the operands that the backward pass reads.
    has_forward: bool,
}

/// Destinations of the gradients of a layer.
pub struct LayerGradients<'a> {
    /// Input gradient, and an optional addend (the gradient that bypasses the layer).
    pub input: (&'a mut DeviceBuffer, Option<&'a DeviceBuffer>),
    /// Weight gradient.
    pub weight: &'a mut DeviceBuffer,
}

impl NativeLayer {
    /// Plans the requested matmuls of a layer.
    pub fn new(
        machine: &Arc<CudaDevice>,
        spec: &Spec,
        shape: LinearShape,
        matmuls: &[TrainingGemm],
    ) -> Result<Self, ZooError> {
        let recipe = spec.training.map(|recipe| training_form(recipe, spec.element, shape)).transpose();
        let recipe = recipe.map_err(ZooError::Unsupported)?;
        let is_quantized = |product: &TrainingGemm| recipe.as_ref().is_some_and(|(_, float8)| float8.contains(product));
        let (quantized, rest): (Vec<_>, Vec<_>) = matmuls.iter().copied().partition(is_quantized);
        let form = recipe.map(|(form, _)| form).filter(|_| !quantized.is_empty());
        let quantized =
            form.map(|form| TrainingGemmsPlan::new(machine, form, shape, &quantized).map(Box::new)).transpose()?;
        let plan = |product| Ok((product, plan_matmul(machine, spec.dtype(), product, shape)?));
        let unquantized = rest.into_iter().map(plan).collect::<Result<_, NativeError>>()?;
        Ok(Self { unquantized, quantized, has_forward: matmuls.contains(&TrainingGemm::Output) })
    }

    /// Enqueues y = x wᵀ, plus `added` if given.
    pub fn forward(
        &mut self,
        input: &DeviceBuffer,
        weight: &DeviceBuffer,
        added: Option<&DeviceBuffer>,
        output: &mut DeviceBuffer,
    ) -> Result<(), NativeError> {
        if let Some(products) = &mut self.quantized {
            products.quantize_operands(input, weight)?;
        }
        self.multiply(TrainingGemm::Output, [input, weight], added, output)
    }

    /// Enqueues both gradients, given the output gradient and the input and weights of the forward pass.
    pub fn backward(
        &mut self,
        gradient: &DeviceBuffer,
        input: &DeviceBuffer,
        weight: &DeviceBuffer,
        back: LayerGradients<'_>,
    ) -> Result<(), NativeError> {
        if let Some(products) = &mut self.quantized {
            if !self.has_forward {
                products.quantize_operands(input, weight)?;
            }
            products.quantize_gradient(gradient)?;
        }
        let (grad_input, added) = back.input;
        self.multiply(TrainingGemm::GradInput, [gradient, weight], added, grad_input)?;
        self.multiply(TrainingGemm::GradWeight, [gradient, input], None, back.weight)
    }

    fn multiply(
        &self,
        product: TrainingGemm,
        [left, right]: [&DeviceBuffer; 2],
        added: Option<&DeviceBuffer>,
        output: &mut DeviceBuffer,
    ) -> Result<(), NativeError> {
        let planned = self.unquantized.iter().find(|(planned, _)| *planned == product);
        match (planned, &self.quantized, added) {
            (Some((_, plan)), _, Some(added)) => plan.enqueue_with_addend(left, right, added, output),
            (Some((_, plan)), _, None) => plan.enqueue(left, right, output),
            (None, Some(products), added) => products.multiply(product, added, output),
            (None, None, _) => unreachable!("only planned matmuls are enqueued"),
        }
    }

    /// Names of the kernels and of the algorithms that cuBLASLt selected.
    pub fn algorithm(&self) -> String {
        let quantized = self.quantized.iter().map(|products| products.algorithm());
        quantized
            .chain(self.unquantized.iter().map(|(_, product)| product.algorithm()))
            .collect::<Vec<_>>()
            .join("; then ")
    }
}

/// Plans a matmul in the dtype of the model; operands are read in their stored layout, without a transpose.
fn plan_matmul(
    machine: &Arc<CudaDevice>,
    kind: Dtype,
    product: TrainingGemm,
    LinearShape { m, k, n }: LinearShape,
) -> Result<LinearPlan, NativeError> {
    let (form, along_n) = (LinearSpec::plain(kind), WeightLayout::AlongN);
    let (form, shape) = match product {
        TrainingGemm::Output => (form, LinearShape { m, k, n }),
        TrainingGemm::GradInput => (LinearSpec { weight: along_n, ..form }, LinearShape { m, k: n, n: k }),
        TrainingGemm::GradWeight => {
            let input = InputLayout::AlongM;
            (LinearSpec { input, weight: along_n, ..form }, LinearShape { m: n, k: m, n: k })
        }
    };
    LinearPlan::with_spec(machine, form, shape)
}

/// Float8 format of the operands under a recipe, and the matmuls that use it. The error names the supported sizes and
/// recipes.
fn training_form(
    recipe: TrainingRecipe,
    element: Element,
    LinearShape { m, k, n }: LinearShape,
) -> Result<(TrainingGemmSpec, &'static [TrainingGemm]), String> {
    use TrainingGemm::{GradInput, GradWeight, Output};
    if element != Element::Float(Dtype::Bf16) || [m, k, n].iter().any(|side| !side.is_multiple_of(16)) {
        let supported = "`native` trains in float8 from bf16, with m, k and n in multiples of 16";
        return Err(format!("{supported}, not {element} with m = {m}, k = {k}, n = {n}; use `eager`"));
    }
    let by_rows = TrainingGemmSpec {
        granularity: Grouping::Row,
        power_of_two: true,
        gradient: Float8Dtype::E4m3,
        tensor_scaled_weight_in_backward: false,
        accumulation: if recipe.has_fast_accumulation() {
            Float8Accumulation::Fast
        } else {
            Float8Accumulation::Promoted
        },
    };
    match recipe.with_promoted_accumulation() {
        TrainingRecipe::TENSORWISE => {
            let (shared, gradient) = (Grouping::Tensor, Float8Dtype::E5m2);
            Ok((
                TrainingGemmSpec { granularity: shared, power_of_two: false, gradient, ..by_rows },
                &[Output, GradInput, GradWeight],
            ))
        }
        TrainingRecipe::ROWWISE => Ok((by_rows, &[Output, GradInput, GradWeight])),
        TrainingRecipe::ROWWISE_WITH_GW_HP => {
            Ok((TrainingGemmSpec { tensor_scaled_weight_in_backward: true, ..by_rows }, &[Output, GradInput]))
        }
        _ => {
            Err("`native` supports the training recipes baseline, tensorwise, rowwise and rowwise_with_gw_hp in this \
             version; `eager` supports all"
                .into())
        }
    }
}
