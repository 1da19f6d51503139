//! The products of a linear layer that is trained, of codes of 8 bits.

use std::sync::Arc;

use super::{
    Buffer, Float8Codes, Float8Sums, LineFormat, LinearShape, Machine, NativeError,
    cublaslt::{Operands, Product},
    driver::Memory,
    form::{Factors, Form, Scales},
    line_codes::{Coded, LineCodes, Sides},
    sizes::checked_shape,
};
use crate::{Dtype, SharedScale};

/// One of a layer's products.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrainedProduct {
    /// y[m, n] of the input and the weight.
    Output,
    /// Gradient of the input [m, k], of the gradient of y and the weight.
    GradInput,
    /// Gradient of the weight [n, k], of the gradient of y and the input.
    GradWeight,
}

/// How operands are stored: all share scales in one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TrainedForm {
    /// Which numbers share a scale.
    pub shared: SharedScale,
    /// Whether scales are powers of two.
    pub power_of_two: bool,
    /// What the gradient of y is stored as; the input and the weight are e4m3.
    pub gradient: Float8Codes,
    /// Whether the weight has one scale where it is multiplied with gradients, whatever it has on the way there.
    pub whole_weight_back: bool,
    /// How the products of the output are added up; those of gradients are promoted.
    pub sums: Float8Sums,
}

/// A plan of some of a layer's products in bf16: each operand is made codes of once, of its rows for one product and of its
/// columns for another, and cuBLASLt multiplies them and applies the scales.
///
/// x[m, k], w[n, k] and the gradient of y[m, n] are in bf16; m, k and n are multiples of 16: tensor cores multiply in sixteens.
#[derive(Debug)]
pub struct TrainedProducts {
    input: Option<LineCodes>,
    weight: Option<LineCodes>,
    /// The weight's for products with gradients, where they have another scale.
    weight_back: Option<LineCodes>,
    gradient: Option<LineCodes>,
    products: Vec<(TrainedProduct, Product)>,
    machine: Arc<Machine>,
}

impl TrainedProducts {
    /// Chooses and compiles.
    pub fn new(
        machine: &Arc<Machine>,
        form: TrainedForm,
        shape: LinearShape,
        wanted: &[TrainedProduct],
    ) -> Result<Self, NativeError> {
        use TrainedProduct::{GradInput, GradWeight, Output};
        let LinearShape { m, k, n } = checked_shape(shape)?;
        let is = |product| wanted.contains(&product);
        let TrainedForm { shared, power_of_two, whole_weight_back, .. } = form;
        let made = |format: LineFormat, plain, turned, size| -> Result<Option<LineCodes>, NativeError> {
            (plain || turned).then(|| LineCodes::new(machine, format, Sides { plain, turned }, size)).transpose()
        };
        let format = |codes| LineFormat { codes, shared, power_of_two, scale_per_line: false };
        let e4m3 = format(Float8Codes::E4m3);
        let whole = LineFormat { shared: SharedScale::Tensor, scale_per_line: shared == SharedScale::Row, ..e4m3 };
        let product = |&product: &TrainedProduct| -> Result<_, NativeError> {
            let (left, shape) = match product {
                Output => (Float8Codes::E4m3, LinearShape { m, k, n }),
                GradInput => (form.gradient, LinearShape { m, k: n, n: k }),
                GradWeight => (form.gradient, LinearShape { m: n, k: m, n: k }),
            };
            let sums = if product == Output { form.sums } else { Float8Sums::Promoted };
            let factors = match left {
                Float8Codes::E4m3 => Factors::E4m3(sums),
                Float8Codes::E5m2 => Factors::E5m2ByE4m3(sums),
            };
            let scales = match form.shared {
                SharedScale::Row => Scales::Lines,
                SharedScale::Tensor => Scales::Tensors,
            };
            let form = Form { scales, ..Form::plain(factors, Dtype::Bf16) };
            Ok((product, Product::plan(machine, form, shape)?))
        };
        Ok(Self {
            input: made(e4m3, is(Output), is(GradWeight), (m, k))?,
            weight: made(e4m3, is(Output), is(GradInput) && !whole_weight_back, (n, k))?,
            weight_back: made(whole, false, is(GradInput) && whole_weight_back, (n, k))?,
            gradient: made(format(form.gradient), is(GradInput), is(GradWeight), (m, n))?,
            products: wanted.iter().map(product).collect::<Result<_, _>>()?,
            machine: machine.clone(),
        })
    }

    /// Enqueues what makes codes of the input and of the weight, for every product that reads them.
    pub fn code_operands(&mut self, input: &Buffer, weight: &Buffer) -> Result<(), NativeError> {
        let Self { input: of_input, weight: of_weight, weight_back, .. } = self;
        let coded = [(of_input, input), (of_weight, weight), (weight_back, weight)].into_iter();
        coded
            .filter_map(|(codes, of)| Some((codes.as_mut()?, of)))
            .try_for_each(|(codes, of)| codes.enqueue(&of.memory))
    }

    /// Enqueues what makes codes of the gradient of the output.
    pub fn code_gradient(&mut self, gradient: &Buffer) -> Result<(), NativeError> {
        self.gradient.as_mut().map_or(Ok(()), |codes| codes.enqueue(&gradient.memory))
    }

    /// Enqueues one of the products that were wanted, of the codes that were made last, with a matrix like the output
    /// added before it is rounded.
    pub fn multiply(
        &self,
        product: TrainedProduct,
        added: Option<&Buffer>,
        output: &mut Buffer,
    ) -> Result<(), NativeError> {
        let Self { input, weight, weight_back, gradient, .. } = self;
        let (left, right) = match product {
            TrainedProduct::Output => (plain(input), plain(weight)),
            TrainedProduct::GradInput => {
                (plain(gradient), turned(if weight_back.is_some() { weight_back } else { weight }))
            }
            TrainedProduct::GradWeight => (turned(gradient), turned(input)),
        };
        let scales: Option<[&Memory; 2]> = Some([&left.scales, &right.scales]);
        let added = added.map(|added| &added.memory);
        let operands = Operands { x: &left.codes, w: &right.codes, y: &output.memory, scales, added, bias: None };
        let (_, plan) = self.products.iter().find(|(planned, _)| *planned == product).expect(MADE);
        plan.enqueue(&self.machine, operands)
    }

    /// Which kernels run, and what cuBLASLt chose.
    pub fn algorithm(&self) -> String {
        let products = self.products.iter().map(|(_, product)| product.describe());
        let operands = [&self.input, &self.weight, &self.weight_back, &self.gradient].into_iter().flatten().count();
        let codes = format!("largest magnitudes and codes of operands {operands} times");
        [codes].into_iter().chain(products).collect::<Vec<_>>().join("; then ")
    }
}

const MADE: &str = "a product was wanted when the plan was made";

fn plain(codes: &Option<LineCodes>) -> &Coded {
    codes.as_ref().and_then(|codes| codes.plain.as_ref()).expect(MADE)
}

fn turned(codes: &Option<LineCodes>) -> &Coded {
    codes.as_ref().and_then(|codes| codes.turned.as_ref()).expect(MADE)
}
