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
    products: Products,
    /// Whether the way there makes the codes that the way back reads.
    goes_there: bool,
}

enum Products {
    /// In the model's own type.
    Plain(Vec<(TrainedProduct, Linear)>),
    /// Of codes.
    Coded(Box<TrainedProducts>),
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
        let products = match spec.training {
            None => {
                let plain = |&product: &TrainedProduct| Ok((product, plain(machine, spec.dtype(), product, shape)?));
                Products::Plain(wanted.iter().map(plain).collect::<Result<_, NativeError>>()?)
            }
            Some(recipe) => {
                let form = form(recipe, spec.element, shape).map_err(ZooError::Unsupported)?;
                Products::Coded(Box::new(TrainedProducts::new(machine, form, shape, wanted)?))
            }
        };
        Ok(Self { products, goes_there: wanted.contains(&TrainedProduct::Output) })
    }

    /// Enqueues the way there, with a matrix like the output added to it.
    pub fn output(
        &mut self,
        input: &Buffer,
        weight: &Buffer,
        added: Option<&Buffer>,
        output: &mut Buffer,
    ) -> Result<(), NativeError> {
        if let Products::Coded(products) = &mut self.products {
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
        if let Products::Coded(products) = &mut self.products {
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
        match &self.products {
            Products::Coded(products) => products.multiply(product, added, output),
            Products::Plain(products) => {
                let (_, plan) = products.iter().find(|(planned, _)| *planned == product).expect("it was wanted");
                match added {
                    Some(added) => plan.enqueue_with_added(left, right, added, output),
                    None => plan.enqueue(left, right, output),
                }
            }
        }
    }

    /// Which kernels run, and what cuBLASLt chose.
    pub fn algorithm(&self) -> String {
        match &self.products {
            Products::Plain(products) => {
                let each: Vec<String> = products.iter().map(|(_, product)| product.algorithm()).collect();
                each.join("; then ")
            }
            Products::Coded(products) => products.algorithm(),
        }
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

/// How a recipe stores operands; the error says which have kernels.
fn form(recipe: TrainingRecipe, element: Element, LinearShape { m, k, n }: LinearShape) -> Result<TrainedForm, String> {
    if element != Element::Float(Dtype::Bf16) || [m, k, n].iter().any(|side| !side.is_multiple_of(16)) {
        let what = "`native` multiplies codes of training in bf16, for sizes that are multiples of 16";
        return Err(format!("{what}, not {element} of m = {m}, k = {k}, n = {n}; `eager` runs it"));
    }
    let sums = Float8Sums::Promoted;
    match recipe {
        TrainingRecipe::TENSORWISE => {
            let gradient = Float8Codes::E5m2;
            Ok(TrainedForm { shared: SharedScale::Tensor, power_of_two: false, gradient, sums })
        }
        TrainingRecipe::ROWWISE => {
            let gradient = Float8Codes::E4m3;
            Ok(TrainedForm { shared: SharedScale::Row, power_of_two: true, gradient, sums })
        }
        _ => Err("`native` trains by the baseline, tensorwise and rowwise in this version; `eager` by all".into()),
    }
}
