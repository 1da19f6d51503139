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
}

/// What a layer multiplies: x[m, k], w[n, k] and the gradient of y[m, n], in bf16.
#[derive(Debug, Clone, Copy)]
pub struct TrainedOperands<'a> {
    /// The input.
    pub input: &'a Buffer,
    /// The weight.
    pub weight: &'a Buffer,
    /// The gradient of the output, where a product reads it.
    pub gradient: Option<&'a Buffer>,
}

/// A plan of some of a layer's products in bf16: each operand is made codes of once, of its rows for one product and of its
/// columns for another, and cuBLASLt multiplies them and applies the scales. Sums are promoted.
///
/// m, k and n are multiples of 16: tensor cores multiply in sixteens.
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
                Float8Codes::E4m3 => Factors::E4m3(Float8Sums::Promoted),
                Float8Codes::E5m2 => Factors::E5m2ByE4m3(Float8Sums::Promoted),
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

    /// Enqueues one run; the outputs are in the order of what was wanted.
    pub fn enqueue(
        &mut self,
        TrainedOperands { input, weight, gradient }: TrainedOperands<'_>,
        outputs: &mut [&mut Buffer],
    ) -> Result<(), NativeError> {
        let (needed, found) = (self.products.len(), outputs.len());
        if needed != found {
            return Err(NativeError::OutputCount { needed, found });
        }
        let coded = [(&mut self.input, Some(input)), (&mut self.weight, Some(weight)), (&mut self.gradient, gradient)];
        for (codes, operand) in coded {
            if let Some(codes) = codes {
                let operand = operand.ok_or(NativeError::InputCount { needed: 3, found: 2 })?;
                codes.enqueue(&operand.memory)?;
            }
        }
        let Self { input, weight, gradient, .. } = &*self;
        for ((product, plan), output) in self.products.iter().zip(outputs) {
            let (left, right) = match product {
                TrainedProduct::Output => (plain(input), plain(weight)),
                TrainedProduct::GradInput => (plain(gradient), turned(weight)),
                TrainedProduct::GradWeight => (turned(gradient), turned(input)),
            };
            let scales: Option<[&Memory; 2]> = Some([&left.scales, &right.scales]);
            let operands =
                Operands { x: &left.codes, w: &right.codes, y: &output.memory, scales, added: None, bias: None };
            plan.enqueue(&self.machine, operands)?;
        }
        Ok(())
    }

    /// Which kernels run, and what cuBLASLt chose.
    pub fn algorithm(&self) -> String {
        let products = self.products.iter().map(|(_, product)| product.describe());
        let operands = [&self.input, &self.weight, &self.gradient].into_iter().flatten().count();
        let codes = format!("largest magnitudes and codes of {operands} operands");
        [codes].into_iter().chain(products).collect::<Vec<_>>().join("; then ")
    }
}

const MADE: &str = "codes are made for every product that reads them";

fn plain(codes: &Option<LineCodes>) -> &Coded {
    codes.as_ref().and_then(|codes| codes.plain.as_ref()).expect(MADE)
}

fn turned(codes: &Option<LineCodes>) -> &Coded {
    codes.as_ref().and_then(|codes| codes.turned.as_ref()).expect(MADE)
}
