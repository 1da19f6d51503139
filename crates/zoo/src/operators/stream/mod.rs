//! The four kernels of STREAM: traffic with next to no arithmetic.

use super::native_pass;
use crate::gate::Tolerance;
use crate::operator::{Operation, Spec, Suite, burn_alone};
use crate::{Device, Implementation, Matrix, Operand, Pass, Sample, Slot, Value};
use burn::tensor::backend::Backend;
use calorimeter_recipes::Dtype;
#[cfg(feature = "cuda")]
use calorimeter_recipes::FloatType;

/// One of the four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    /// `c = a`.
    Copy,
    /// `b = q c`.
    Scale,
    /// `c = a + b`.
    Add,
    /// `a = b + q c`.
    Triad,
}

const FACTOR: f32 = std::f32::consts::PI;

impl Operation for Stream {
    const ABOUT: &'static str = "a kernel of STREAM over so many elements";
    const SUITE: Suite = Suite::Calibration;

    fn all() -> Vec<Self> {
        vec![Self::Copy, Self::Scale, Self::Add, Self::Triad]
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Copy => "stream_copy",
            Self::Scale => "stream_scale",
            Self::Add => "stream_add",
            Self::Triad => "stream_triad",
        }
    }

    fn products(&self) -> u32 {
        0
    }

    fn axes(&self) -> &'static [&'static str] {
        &["elements"]
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let one = Operand::normal(1, spec.axis("elements"), spec.element);
        match self {
            Self::Copy | Self::Scale => vec![one],
            Self::Add | Self::Triad => vec![one, one],
        }
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        vec![Slot::new(1, spec.axis("elements"), spec.element)]
    }

    fn flops(&self, spec: &Spec) -> u64 {
        let each = match self {
            Self::Copy => 0,
            Self::Scale | Self::Add => 1,
            Self::Triad => 2,
        };
        each * spec.axis("elements")
    }

    fn depth(&self, _: &Spec, _: usize) -> u64 {
        2
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let factor = f64::from(spec.dtype().round(FACTOR));
        let at = |input: usize, row: usize, col: usize| f64::from(inputs[input].row(row)[col]);
        sample.by_elements(|row, col| match self {
            Self::Copy => at(0, row, col),
            Self::Scale => factor * at(0, row, col),
            Self::Add => at(0, row, col) + at(1, row, col),
            Self::Triad => at(0, row, col) + factor * at(1, row, col),
        })
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 2, 2)
    }

    fn supported(&self, spec: &Spec, implementation: Implementation, device: Device) -> Result<(), String> {
        match (implementation, device) {
            (Implementation::Native, Device::Cuda(_)) => Ok(()),
            (Implementation::Native, Device::Cpu) if spec.dtype() == Dtype::F32 => Ok(()),
            (Implementation::Native, Device::Cpu) => {
                Err(format!("{} has a `native` kernel on the CPU in f32 alone", self.name()))
            }
            _ => burn_alone(self.name(), implementation, device),
        }
    }

    fn pass<B: Backend>(&self, _: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let inputs: Vec<_> = inputs.into_iter().map(Value::float).collect();
        let kernel = *self;
        Box::new(move || {
            let first = inputs[0].clone();
            let second = || inputs[1].clone();
            vec![Value::Float(match kernel {
                // burn has no copy: the value is the same, and so is the traffic.
                Stream::Copy => first.mul_scalar(1.0),
                Stream::Scale => first.mul_scalar(FACTOR),
                Stream::Add => first.add(second()),
                Stream::Triad => first.add(second().mul_scalar(FACTOR)),
            })]
        })
    }

    fn host(&self, _: &Spec, inputs: &[Matrix], sets: u32) -> Result<Box<dyn crate::Workload>, crate::ZooError> {
        Ok(super::stream_host::open(*self, FACTOR, inputs, sets))
    }

    #[cfg(feature = "cuda")]
    fn native(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: std::sync::Arc<calorimeter_kernels::native::Machine>,
        sets: u32,
    ) -> Result<Box<dyn crate::Workload>, crate::ZooError> {
        use calorimeter_kernels::native::ElementwiseFunction as Function;
        let function = match self {
            Self::Copy => Function::Copy,
            Self::Scale => Function::Scale(spec.dtype().round(FACTOR)),
            Self::Add => Function::Add,
            Self::Triad => Function::Triad(spec.dtype().round(FACTOR)),
        };
        native_pass::elementwise(&machine, spec, function, spec.axis("elements"))?
            .open(self, spec, inputs, machine, sets)
    }
}
