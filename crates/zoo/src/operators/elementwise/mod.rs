//! Element by element: what stands between the products of a model in training (`add`) and in inference (the others).

#[cfg(feature = "cuda")]
use super::native_pass;
use super::number_types::{BF16, FLOATS, allow};
use crate::gate::Tolerance;
use crate::operator::{Operation, Spec, Suite, burn_alone, burn_or_cube};
use crate::{Counts, Device, Implementation, Matrix, Operand, Pass, Sample, Slot, Value, ZooError};
use burn::tensor::{activation, backend::Backend};

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Inference {
    /// `add`
    TrainingAdd,
    /// `inference_add`
    Add,
    /// `inference_silu_mul`: silu(x) y.
    SiluMul,
    /// `inference_sigmoid`
    Sigmoid,
}

/// 1 / (1 + e^-x).
pub(super) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Bytes of a number as accelerator-microbenchmarks counts them: two of bf16, one of anything else.
pub(super) fn published_width(spec: &Spec) -> u64 {
    if spec.element == BF16 { 2 } else { 1 }
}

impl Inference {
    fn operands(self) -> u64 {
        if self == Self::Sigmoid { 1 } else { 2 }
    }
}

impl Operation for Inference {
    const ABOUT: &'static str = "one operation on every number of one matrix or two";
    const SUITE: Suite = Suite::Gemm;

    fn all() -> Vec<Self> {
        vec![Self::TrainingAdd, Self::Add, Self::SiluMul, Self::Sigmoid]
    }

    fn name(&self) -> &'static str {
        match self {
            Self::TrainingAdd => "add",
            Self::Add => "inference_add",
            Self::SiluMul => "inference_silu_mul",
            Self::Sigmoid => "inference_sigmoid",
        }
    }

    fn products(&self) -> u32 {
        0
    }

    fn axes(&self) -> &'static [&'static str] {
        &["m", "n"]
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        allow(self.name(), spec, FLOATS, &[])
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let one = Operand::normal(spec.axis("m"), spec.axis("n"), spec.element);
        (0..self.operands()).map(|_| one).collect()
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        vec![Slot::new(spec.axis("m"), spec.axis("n"), spec.element)]
    }

    // A sigmoid is a sign, an exponential, a sum and a quotient.
    fn flops(&self, spec: &Spec) -> u64 {
        let each = match self {
            Self::TrainingAdd | Self::Add => 1,
            Self::SiluMul => 6,
            Self::Sigmoid => 4,
        };
        each * spec.axis("m") * spec.axis("n")
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let numbers = spec.axis("m") * spec.axis("n");
        match self {
            Self::TrainingAdd | Self::Add => 0,
            // The sigmoid is computed in f32.
            Self::Sigmoid => 4 * numbers,
            Self::SiluMul => (4 + 2 * spec.dtype().bytes()) * numbers,
        }
    }

    fn published(&self, spec: &Spec) -> Option<Counts> {
        let numbers = spec.axis("m") * spec.axis("n");
        let bytes = match self {
            Self::TrainingAdd if spec.element != BF16 => return None,
            Self::TrainingAdd => 6 * numbers,
            _ => (self.operands() + 1) * numbers * published_width(spec),
        };
        Some(Counts { flops: None, bytes: Some(bytes) })
    }

    fn depth(&self, _: &Spec, _: usize) -> u64 {
        4
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let at = |input: usize, row: usize, col: usize| f64::from(inputs[input].row(row)[col]);
        sample.by_elements(|row, col| match self {
            Self::TrainingAdd | Self::Add => at(0, row, col) + at(1, row, col),
            Self::SiluMul => at(0, row, col) * sigmoid(at(0, row, col)) * at(1, row, col),
            Self::Sigmoid => sigmoid(at(0, row, col)),
        })
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        let roundings = match self {
            Self::TrainingAdd | Self::Add => 1,
            Self::SiluMul => 3,
            Self::Sigmoid => 2,
        };
        Tolerance::new(spec.dtype(), roundings, 4)
    }

    fn supported(&self, _: &Spec, implementation: Implementation, device: Device) -> Result<(), String> {
        match (self, implementation, device) {
            (Self::TrainingAdd | Self::Add, Implementation::Native, Device::Cuda(_)) => Ok(()),
            (Self::TrainingAdd | Self::Add | Self::SiluMul, ..) => burn_or_cube(self.name(), implementation, device),
            (Self::Sigmoid, ..) => burn_alone(self.name(), implementation, device),
        }
    }

    fn pass<B: Backend>(&self, _: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let inputs: Vec<_> = inputs.into_iter().map(Value::float).collect();
        let operation = *self;
        Box::new(move || {
            let x = inputs[0].clone();
            let y = || inputs[1].clone();
            vec![Value::Float(match operation {
                Self::TrainingAdd | Self::Add => x + y(),
                Self::SiluMul => activation::silu(x) * y(),
                Self::Sigmoid => activation::sigmoid(x),
            })]
        })
    }

    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    fn cube<R: burn_cubecl::CubeRuntime>(
        &self,
        _: &Spec,
        inputs: Vec<Value<crate::CubeOf<R>>>,
    ) -> Result<Pass<crate::CubeOf<R>>, ZooError> {
        use calorimeter_kernels::cube;
        match self {
            Self::TrainingAdd | Self::Add => {
                super::cubed::pass(inputs, |client, size, [x, y], [out]| cube::add(client, size, x, y, out))
            }
            Self::SiluMul => {
                super::cubed::pass(inputs, |client, size, [x, y], [out]| cube::swiglu(client, size, x, y, out))
            }
            Self::Sigmoid => Err(crate::operator::no_cube(self.name())),
        }
    }

    #[cfg(feature = "cuda")]
    fn native(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: std::sync::Arc<calorimeter_kernels::native::Machine>,
        sets: u32,
    ) -> Result<Box<dyn crate::Workload>, ZooError> {
        use calorimeter_kernels::native::ElementwiseFunction::Add;
        match self {
            Self::TrainingAdd | Self::Add => {
                native_pass::elementwise(&machine, spec, Add, spec.axis("m") * spec.axis("n"))?
                    .open(self, spec, inputs, machine, sets)
            }
            Self::SiluMul | Self::Sigmoid => {
                Err(ZooError::Unsupported(format!("{} has no native kernel", self.name())))
            }
        }
    }
}
