//! Matmuls of one trained linear layer on CUDA: cuBLASLt in the dtype of the model, or float8 under a training recipe.

use crate::{Spec, ZooError};
use calorimeter_kernels::SharedScale;
use calorimeter_kernels::native::{
    Buffer, Float8Codes, Float8Sums, InputLayout, Linear, LinearForm, LinearShape, Machine, NativeError, TrainedForm,
    TrainedProduct, TrainedProducts, WeightLayout,
};
use calorimeter_recipes::{Dtype, Element, TrainingRecipe};
use std::sync::Arc;

/// Forward and backward matmuls of a layer y = x wᵀ.
pub struct NativeLayer {
    /// Matmuls in the dtype of the model.
    plain: Vec<(TrainedProduct, Linear)>,
    /// Float8 matmuls.
    coded: Option<Box<TrainedProducts>>,
    /// True if the forward pass runs first and quantizes the operands that the backward pass reads.
    goes_there: bool,
}

/// Destinations of the gradients of a layer.
pub struct Back<'a> {
    /// Input gradient, and an optional addend (the gradient that bypasses the layer).
    pub input: (&'a mut Buffer, Option<&'a Buffer>),
    /// Weight gradient.
    pub weight: &'a mut Buffer,
}

impl NativeLayer {
    /// Plans the requested matmuls of a layer.
    pub fn new(
        machine: &Arc<Machine>,
        spec: &Spec,
        shape: LinearShape,
        matmuls: &[TrainedProduct],
    ) -> Result<Self, ZooError> {
        let recipe = spec.training.map(|recipe| form(recipe, spec.element, shape)).transpose();
        let recipe = recipe.map_err(ZooError::Unsupported)?;
        let is_quantized =
            |product: &TrainedProduct| recipe.as_ref().is_some_and(|(_, float8)| float8.contains(product));
        let (quantized, rest): (Vec<_>, Vec<_>) = matmuls.iter().copied().partition(is_quantized);
        let form = recipe.map(|(form, _)| form).filter(|_| !quantized.is_empty());
        let quantized =
            form.map(|form| TrainedProducts::new(machine, form, shape, &quantized).map(Box::new)).transpose()?;
        let plan = |product| Ok((product, plain(machine, spec.dtype(), product, shape)?));
        let unquantized = rest.into_iter().map(plan).collect::<Result<_, NativeError>>()?;
        Ok(Self { plain: unquantized, coded: quantized, goes_there: matmuls.contains(&TrainedProduct::Output) })
    }

    /// Enqueues y = x wᵀ, plus `added` if given.
    pub fn output(
        &mut self,
        input: &Buffer,
        weight: &Buffer,
        added: Option<&Buffer>,
        output: &mut Buffer,
    ) -> Result<(), NativeError> {
        if let Some(products) = &mut self.coded {
            products.code_operands(input, weight)?;
        }
        self.multiply(TrainedProduct::Output, [input, weight], added, output)
    }

    /// Enqueues both gradients, given the output gradient and the input and weights of the forward pass.
    pub fn back(
        &mut self,
        gradient: &Buffer,
        input: &Buffer,
        weight: &Buffer,
        back: Back<'_>,
    ) -> Result<(), NativeError> {
        if let Some(products) = &mut self.coded {
            if !self.goes_there {
                products.code_operands(input, weight)?;
            }
            products.code_gradient(gradient)?;
        }
        let (grad_input, added) = back.input;
        self.multiply(TrainedProduct::GradInput, [gradient, weight], added, grad_input)?;
        self.multiply(TrainedProduct::GradWeight, [gradient, input], None, back.weight)
    }

    fn multiply(
        &self,
        product: TrainedProduct,
        [left, right]: [&Buffer; 2],
        added: Option<&Buffer>,
        output: &mut Buffer,
    ) -> Result<(), NativeError> {
        let planned = self.plain.iter().find(|(planned, _)| *planned == product);
        match (planned, &self.coded, added) {
            (Some((_, plan)), _, Some(added)) => plan.enqueue_with_added(left, right, added, output),
            (Some((_, plan)), _, None) => plan.enqueue(left, right, output),
            (None, Some(products), added) => products.multiply(product, added, output),
            (None, None, _) => unreachable!("only planned matmuls are enqueued"),
        }
    }

    /// Names of the kernels and of the algorithms that cuBLASLt selected.
    pub fn algorithm(&self) -> String {
        let quantized = self.coded.iter().map(|products| products.algorithm());
        quantized.chain(self.plain.iter().map(|(_, product)| product.algorithm())).collect::<Vec<_>>().join("; then ")
    }
}

/// Plans a matmul in the dtype of the model; operands are read in their stored layout, without a transpose.
fn plain(
    machine: &Arc<Machine>,
    kind: Dtype,
    product: TrainedProduct,
    LinearShape { m, k, n }: LinearShape,
) -> Result<Linear, NativeError> {
    let (form, along_n) = (LinearForm::plain(kind), WeightLayout::AlongN);
    let (form, shape) = match product {
        TrainedProduct::Output => (form, LinearShape { m, k, n }),
        TrainedProduct::GradInput => (LinearForm { weight: along_n, ..form }, LinearShape { m, k: n, n: k }),
        TrainedProduct::GradWeight => {
            let input = InputLayout::AlongM;
            (LinearForm { input, weight: along_n, ..form }, LinearShape { m: n, k: m, n: k })
        }
    };
    Linear::of(machine, form, shape)
}

/// Float8 format of the operands under a recipe, and the matmuls that use it. The error names the supported sizes and
/// recipes.
fn form(
    recipe: TrainingRecipe,
    element: Element,
    LinearShape { m, k, n }: LinearShape,
) -> Result<(TrainedForm, &'static [TrainedProduct]), String> {
    use TrainedProduct::{GradInput, GradWeight, Output};
    if element != Element::Float(Dtype::Bf16) || [m, k, n].iter().any(|side| !side.is_multiple_of(16)) {
        let supported = "`native` trains in float8 from bf16, with m, k and n in multiples of 16";
        return Err(format!("{supported}, not {element} with m = {m}, k = {k}, n = {n}; use `eager`"));
    }
    let by_rows = TrainedForm {
        shared: SharedScale::Row,
        power_of_two: true,
        gradient: Float8Codes::E4m3,
        whole_weight_back: false,
        sums: if recipe.is_fast() { Float8Sums::Fast } else { Float8Sums::Promoted },
    };
    match recipe.promoted() {
        TrainingRecipe::TENSORWISE => {
            let (shared, gradient) = (SharedScale::Tensor, Float8Codes::E5m2);
            Ok((TrainedForm { shared, power_of_two: false, gradient, ..by_rows }, &[Output, GradInput, GradWeight]))
        }
        TrainingRecipe::ROWWISE => Ok((by_rows, &[Output, GradInput, GradWeight])),
        TrainingRecipe::ROWWISE_WITH_GW_HP => {
            Ok((TrainedForm { whole_weight_back: true, ..by_rows }, &[Output, GradInput]))
        }
        _ => {
            Err("`native` supports the training recipes baseline, tensorwise, rowwise and rowwise_with_gw_hp in this \
             version; `eager` supports all"
                .into())
        }
    }
}
