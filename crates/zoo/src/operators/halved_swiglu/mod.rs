//! SwiGLU: the columns are halved into a and b, and silu(a) b is computed in f32; and its gradient.

use super::inference::sigmoid;
use super::number_types::{BF16, FLOATS, allow};
use crate::gate::Tolerance;
use crate::operator::{Operation, Spec, Suite};
use crate::{Counts, Matrix, Operand, Pass, Sample, Slot, Value, ZooError};
use burn::tensor::{DType, Tensor, activation, backend::Backend};
use calorimeter_recipes::FloatType;

/// One direction. `n` is the width of the input, a and b together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SwigluPass {
    /// `swiglu_fwd`
    Forward,
    /// `swiglu_bwd`: the gradient of x, given x and that of the output.
    Backward,
}

impl Operation for SwigluPass {
    const ABOUT: &'static str = "SwiGLU of two halves, or its gradient alone";
    const SUITE: Suite = Suite::Gemm;

    fn all() -> Vec<Self> {
        vec![Self::Forward, Self::Backward]
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Forward => "swiglu_fwd",
            Self::Backward => "swiglu_bwd",
        }
    }

    fn products(&self) -> u32 {
        0
    }

    fn axes(&self) -> &'static [&'static str] {
        &["m", "n"]
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        allow(self.name(), spec, FLOATS, &[])?;
        match spec.axis("n") {
            n if n.is_multiple_of(2) => Ok(()),
            n => Err(ZooError::Shape(format!("{}: n is {n}; it has to be even, to be halved", self.name()))),
        }
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (m, n) = (spec.axis("m"), spec.axis("n"));
        let x = Operand::normal(m, n, spec.element);
        match self {
            Self::Forward => vec![x],
            Self::Backward => vec![x, Operand::normal(m, n / 2, spec.element)],
        }
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let (m, n) = (spec.axis("m"), spec.axis("n"));
        vec![match self {
            Self::Forward => Slot::new(m, n / 2, spec.element),
            Self::Backward => Slot::new(m, n, spec.element),
        }]
    }

    // A sigmoid is four operations. Forward two products more; backward silu(a) and its slope, and three products.
    fn flops(&self, spec: &Spec) -> u64 {
        let each = match self {
            Self::Forward => 6,
            Self::Backward => 11,
        };
        each * spec.axis("m") * spec.axis("n") / 2
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let halves = match self {
            Self::Forward => 4,
            Self::Backward => 8,
        };
        halves * 4 * spec.axis("m") * spec.axis("n") / 2
    }

    fn published(&self, spec: &Spec) -> Option<Counts> {
        let numbers = spec.axis("m") * spec.axis("n");
        let bytes = match self {
            Self::Forward => 3 * numbers,
            Self::Backward => 5 * numbers,
        };
        (spec.element == BF16).then_some(Counts { flops: None, bytes: Some(bytes) })
    }

    fn depth(&self, _: &Spec, _: usize) -> u64 {
        4
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let half = spec.axis("n") as usize / 2;
        sample.by_elements(|row, col| {
            let x = inputs[0].row(row);
            let (a, b) = (f64::from(x[col % half]), f64::from(x[col % half + half]));
            let gate = sigmoid(a);
            match self {
                Self::Forward => a * gate * b,
                Self::Backward => {
                    let dy = f64::from(inputs[1].row(row)[col % half]);
                    if col < half { dy * b * gate * (1.0 + a * (1.0 - gate)) } else { dy * a * gate }
                }
            }
        })
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 1, 16)
    }

    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let half = spec.axis("n") as usize / 2;
        let inputs: Vec<_> = inputs.into_iter().map(Value::float).collect();
        let direction = *self;
        Box::new(move || {
            let x = inputs[0].clone();
            let a = x.clone().narrow(1, 0, half).cast(DType::F32);
            let b = x.narrow(1, half, half).cast(DType::F32);
            let gate = activation::sigmoid(a.clone());
            let silu = a * gate.clone();
            vec![Value::Float(match direction {
                Self::Forward => (silu * b).cast(dtype),
                Self::Backward => {
                    let dy = inputs[1].clone().cast(DType::F32);
                    let slope = gate.clone() + silu.clone() * (1.0 - gate);
                    let (da, db): (Tensor<B, 2>, Tensor<B, 2>) = (dy.clone() * b * slope, dy * silu);
                    Tensor::cat(vec![da.cast(dtype), db.cast(dtype)], 1)
                }
            })]
        })
    }
}
