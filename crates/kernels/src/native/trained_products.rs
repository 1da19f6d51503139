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
    /// How the products are added up.
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
        let codes = |codes, plain, turned, size| -> Result<Option<LineCodes>, NativeError> {
            let format = LineFormat { codes, shared: form.shared, power_of_two: form.power_of_two };
            let sides = Sides { plain, turned };
            (plain || turned).then(|| LineCodes::new(machine, format, sides, size)).transpose()
        };
        let product = |&product: &TrainedProduct| -> Result<_, NativeError> {
            let (left, shape) = match product {
                Output => (Float8Codes::E4m3, LinearShape { m, k, n }),
                GradInput => (form.gradient, LinearShape { m, k: n, n: k }),
                GradWeight => (form.gradient, LinearShape { m: n, k: m, n: k }),
            };
            let factors = match left {
                Float8Codes::E4m3 => Factors::E4m3(form.sums),
                Float8Codes::E5m2 => Factors::E5m2ByE4m3(form.sums),
            };
            let scales = match form.shared {
                SharedScale::Row => Scales::Lines,
                SharedScale::Tensor => Scales::Tensors,
            };
            let form = Form { scales, ..Form::plain(factors, Dtype::Bf16) };
            Ok((product, Product::plan(machine, form, shape)?))
        };
        Ok(Self {
            input: codes(Float8Codes::E4m3, is(Output), is(GradWeight), (m, k))?,
            weight: codes(Float8Codes::E4m3, is(Output), is(GradInput), (n, k))?,
            gradient: codes(form.gradient, is(GradInput), is(GradWeight), (m, n))?,
            products: wanted.iter().map(product).collect::<Result<_, _>>()?,
            machine: machine.clone(),
        })
    }

    /// Enqueues what makes codes of the input and of the weight, for every product that reads them.
    pub fn code_operands(&mut self, input: &Buffer, weight: &Buffer) -> Result<(), NativeError> {
        let coded = [(&mut self.input, input), (&mut self.weight, weight)].into_iter();
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
        let Self { input, weight, gradient, .. } = self;
        let (left, right) = match product {
            TrainedProduct::Output => (plain(input), plain(weight)),
            TrainedProduct::GradInput => (plain(gradient), turned(weight)),
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
        let operands = [&self.input, &self.weight, &self.gradient].into_iter().flatten().count();
        let codes = format!("largest magnitudes and codes of {operands} operands");
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
