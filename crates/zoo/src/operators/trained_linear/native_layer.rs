//! The products of one linear layer that is trained, by CUDA's libraries: in its own type, or of codes under a recipe.

use crate::{Spec, ZooError};
use calorimeter_kernels::SharedScale;
use calorimeter_kernels::native::{
    Buffer, Float8Codes, Float8Sums, InputLayout, Linear, LinearForm, LinearShape, Machine, NativeError, TrainedForm,
    TrainedProduct, TrainedProducts, WeightLayout,
};
use calorimeter_recipes::{Dtype, Element, TrainingRecipe};
use std::sync::Arc;

/// A layer y = x wᵀ, and what comes back of the gradient of y.
pub struct NativeLayer {
    /// The products in the model's own type.
    plain: Vec<(TrainedProduct, Linear)>,
    /// Those of codes.
    coded: Option<Box<TrainedProducts>>,
    /// Whether the way there makes the codes that the way back reads.
    goes_there: bool,
}

/// What comes back of a layer.
pub struct Back<'a> {
    /// The gradient of the input, and what is added to it.
    pub input: (&'a mut Buffer, Option<&'a Buffer>),
    /// That of the weight.
    pub weight: &'a mut Buffer,
}

impl NativeLayer {
    /// Plans those products of a layer that are wanted.
    pub fn new(
        machine: &Arc<Machine>,
        spec: &Spec,
        shape: LinearShape,
        wanted: &[TrainedProduct],
    ) -> Result<Self, ZooError> {
        let recipe = spec.training.map(|recipe| form(recipe, spec.element, shape)).transpose();
        let recipe = recipe.map_err(ZooError::Unsupported)?;
        let is_coded = |product: &TrainedProduct| recipe.as_ref().is_some_and(|(_, coded)| coded.contains(product));
        let (coded, plainly): (Vec<_>, Vec<_>) = wanted.iter().copied().partition(is_coded);
        let form = recipe.map(|(form, _)| form).filter(|_| !coded.is_empty());
        let coded = form.map(|form| TrainedProducts::new(machine, form, shape, &coded).map(Box::new)).transpose()?;
        let plain = |product| Ok((product, plain(machine, spec.dtype(), product, shape)?));
        let plain = plainly.into_iter().map(plain).collect::<Result<_, NativeError>>()?;
        Ok(Self { plain, coded, goes_there: wanted.contains(&TrainedProduct::Output) })
    }

    /// Enqueues the way there, with a matrix like the output added to it.
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

    /// Enqueues the way back, of the gradient of the output, and the same input and weight.
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
        let (of_input, added) = back.input;
        self.multiply(TrainedProduct::GradInput, [gradient, weight], added, of_input)?;
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
            (None, None, _) => unreachable!("a product was wanted when the layer was planned"),
        }
    }

    /// Which kernels run, and what cuBLASLt chose.
    pub fn algorithm(&self) -> String {
        let coded = self.coded.iter().map(|products| products.algorithm());
        coded.chain(self.plain.iter().map(|(_, product)| product.algorithm())).collect::<Vec<_>>().join("; then ")
    }
}

/// A product in the model's own type: each operand is read as it lies.
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

/// How a recipe stores operands, and of which products; the error says which have kernels.
fn form(
    recipe: TrainingRecipe,
    element: Element,
    LinearShape { m, k, n }: LinearShape,
) -> Result<(TrainedForm, &'static [TrainedProduct]), String> {
    use TrainedProduct::{GradInput, GradWeight, Output};
    if element != Element::Float(Dtype::Bf16) || [m, k, n].iter().any(|side| !side.is_multiple_of(16)) {
        let what = "`native` multiplies codes of training in bf16, for sizes that are multiples of 16";
        return Err(format!("{what}, not {element} of m = {m}, k = {k}, n = {n}; `eager` runs it"));
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
        _ => Err(
            "`native` trains by the baseline, tensorwise, rowwise and rowwise_with_gw_hp in this version; `eager` by \
                  all"
            .into(),
        ),
    }
}
