//! A linear layer with bias, alone or with an activation behind it.

use super::fusion_counts;
use super::product::{size, weight};
use crate::gate::Tolerance;
#[cfg(feature = "cuda")]
use crate::native_operator::{NativePass, Set};
use crate::operator::{Operation, Spec, Suite, burn_alone};
use crate::reference::dot;
use crate::{
    Activation, Counts, Device, FusionModel, Implementation, Matrix, Operand, Operator, Pass, Sample, Slot, Value,
};
use burn::tensor::backend::Backend;

/// What follows the bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LinearBias {
    /// Nothing.
    Plain,
    /// A ReLU.
    Relu,
    /// A GELU.
    Gelu,
    /// A SiLU.
    Silu,
}

/// Operations for one number: negation, exponential, sum, quotient.
pub(super) const SILU_FLOPS: u64 = 4;

impl LinearBias {
    fn activation(self) -> Option<Activation> {
        match self {
            Self::Plain => None,
            Self::Relu => Some(Activation::Relu),
            Self::Gelu => Some(Activation::Gelu),
            Self::Silu => Some(Activation::Silu),
        }
    }
}

impl Operation for LinearBias {
    const ABOUT: &'static str = "linear layer with bias, weights [n, k], then an activation or none";
    const SUITE: Suite = Suite::Fusion;

    fn all() -> Vec<Self> {
        vec![Self::Plain, Self::Relu, Self::Gelu, Self::Silu]
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Plain => "linear_bias",
            Self::Relu => "linear_bias_relu",
            Self::Gelu => "linear_bias_gelu",
            Self::Silu => "linear_bias_silu",
        }
    }

    fn axes(&self) -> &'static [&'static str] {
        &["m", "k", "n"]
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (m, k, n) = size(spec);
        vec![Operand::normal(m, k, spec.element), weight(n, k, k, spec), Operand::normal(1, n, spec.element)]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let (m, _, n) = size(spec);
        vec![Slot::new(m, n, spec.element)]
    }

    // Products and sums, the bias, and the activation: a GELU scales, takes the error function, adds, multiplies, halves.
    fn flops(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        let each = match self {
            Self::Plain => 0,
            Self::Relu => 1,
            Self::Gelu => 5,
            Self::Silu => SILU_FLOPS,
        };
        m * n * (2 * k + 1 + each)
    }

    // The product; with an activation, the sum and one of burn's steps beside it.
    fn intermediate(&self, spec: &Spec) -> u64 {
        let (m, _, n) = size(spec);
        let tensors = if *self == Self::Plain { 1 } else { 3 };
        tensors * m * n * fusion_counts::number_bytes(spec)
    }

    fn published(&self, spec: &Spec) -> Option<Counts> {
        fusion_counts::published(Operator::LinearBias(*self), spec)
    }

    fn fusion(&self, spec: &Spec) -> Option<FusionModel> {
        let (m, k, n) = size(spec);
        let mut kernels = vec![("matmul", m * k + n * k + m * n), ("add", 2 * m * n + n)];
        kernels.extend(self.activation().map(|activation| (activation.name(), 2 * m * n)));
        Some(fusion_counts::model(spec, &kernels, self.bytes(spec)))
    }

    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        spec.axis("k")
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let (x, weight, bias) = (&inputs[0], &inputs[1], inputs[2].row(0));
        let activate = |y: f64| self.activation().map_or(y, |activation| activation.exact(y));
        sample.by_rows(|row| {
            let x = x.exact_row(row);
            sample.cols.iter().map(|&col| activate(dot(&x, weight.row(col)) + f64::from(bias[col]))).collect()
        })
    }

    // The product, the sum, and burn's steps of the activation, each of which it rounds.
    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        let steps = match self {
            Self::Plain | Self::Relu => 0,
            Self::Gelu => 5,
            Self::Silu => 2,
        };
        Tolerance::new(spec.dtype(), 2 + steps, spec.axis("k"))
    }

    fn supported(&self, _: &Spec, implementation: Implementation, device: Device) -> Result<(), String> {
        match (implementation, device) {
            (Implementation::Native, Device::Cuda(_)) => Ok(()),
            _ => burn_alone(self.name(), implementation, device),
        }
    }

    fn pass<B: Backend>(&self, _: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let [x, weight, bias] =
            inputs.try_into().map(|inputs: [Value<B>; 3]| inputs.map(Value::float)).expect("three inputs");
        let activation = self.activation();
        Box::new(move || {
            let y = x.clone().matmul(weight.clone().transpose()) + bias.clone();
            vec![Value::Float(match activation {
                Some(activation) => activation.apply(y),
                None => y,
            })]
        })
    }

    #[cfg(feature = "cuda")]
    fn native(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: std::sync::Arc<calorimeter_kernels::native::Machine>,
        sets: u32,
    ) -> Result<Box<dyn crate::Workload>, crate::ZooError> {
        use crate::native_workload::function;
        use calorimeter_kernels::native::{Activation, Epilogue, Linear, LinearForm, LinearShape};
        let (kind, shape) = (spec.dtype(), super::native_pass::shape(spec));
        // cuBLASLt has a GELU too, but one by tanh.
        let (epilogue, after) = match self {
            Self::Plain => (Epilogue::Bias, None),
            Self::Relu => (Epilogue::BiasRelu, None),
            Self::Gelu | Self::Silu => (Epilogue::Bias, self.activation()),
        };
        let linear = Linear::of(&machine, LinearForm { epilogue, ..LinearForm::plain(kind) }, shape)?;
        let LinearShape { m, n, .. } = shape;
        let after = after.map(|after| Activation::new(&machine, kind, function(after), m * n)).transpose()?;
        let algorithms = after.iter().map(|after| after.algorithm().to_owned());
        let pass = NativePass {
            kernels: [linear.algorithm()].into_iter().chain(algorithms).collect(),
            between: Vec::new(),
            enqueue: Box::new(move |Set { inputs, outputs, .. }| {
                linear.enqueue_with_bias(&inputs[0], &inputs[1], &inputs[2], &mut outputs[0])?;
                after.iter().try_for_each(|after| after.enqueue_in_place(&mut outputs[0]))
            }),
        };
        pass.open(self, spec, inputs, machine, sets)
    }
}
