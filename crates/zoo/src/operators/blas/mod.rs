//! One routine of each level of BLAS, and the second vector one.

use super::fusion_counts::number_bytes;
#[cfg(feature = "cuda")]
use super::native_pass;
use super::product::{size, weight};
use crate::gate::Tolerance;
use crate::operator::{Operation, Spec, Suite, burn_alone};
use crate::reference::dot;
use crate::{Counts, Device, Fill, Implementation, Matrix, Operand, Pass, Sample, Slot, Value};
use burn::tensor::{DType, backend::Backend};
use calorimeter_recipes::{Dtype, Element};

/// One of the four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Blas {
    /// The sum of `x y`, in f32 whatever the inputs are.
    Dot,
    /// `alpha x + y`, in new memory.
    Axpy,
    /// `A x` of a matrix `[m, k]`.
    Gemv,
    /// `A B` of matrices `[m, k]` and `[k, n]`.
    Matmul,
}

/// Exact in every float type.
const ALPHA: f32 = 2.5;

impl Operation for Blas {
    const ABOUT: &'static str = "a routine of BLAS on row-major operands";
    const SUITE: Suite = Suite::Calibration;

    fn all() -> Vec<Self> {
        vec![Self::Dot, Self::Axpy, Self::Gemv, Self::Matmul]
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Dot => "dot",
            Self::Axpy => "axpy",
            Self::Gemv => "gemv",
            Self::Matmul => "matmul",
        }
    }

    fn axes(&self) -> &'static [&'static str] {
        match self {
            Self::Dot | Self::Axpy => &["n"],
            Self::Gemv => &["m", "k"],
            Self::Matmul => &["m", "k", "n"],
        }
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (m, k, n) = size(spec);
        let vector = |length| Operand::normal(1, length, spec.element);
        match self {
            // Nothing cancels, so that the one number there is has a size to be judged by.
            Self::Dot => vec![vector(n).filled(Fill::Uniform(0.0, 1.0)); 2],
            Self::Axpy => vec![vector(n); 2],
            Self::Gemv => vec![weight(m, k, k, spec), vector(k)],
            Self::Matmul => vec![Operand::normal(m, k, spec.element), weight(k, n, k, spec)],
        }
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let (m, _, n) = size(spec);
        vec![match self {
            // The sum of a long vector is beyond the range of f16.
            Self::Dot => Slot::new(1, 1, Element::Float(Dtype::F32)),
            Self::Axpy => Slot::new(1, n, spec.element),
            Self::Gemv => Slot::new(1, m, spec.element),
            Self::Matmul => Slot::new(m, n, spec.element),
        }]
    }

    // A product and a sum each.
    fn flops(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        2 * match self {
            Self::Dot | Self::Axpy => n,
            Self::Gemv => m * k,
            Self::Matmul => m * k * n,
        }
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let (n, bytes) = (spec.axis("n"), number_bytes(spec));
        match self {
            // Half precision is widened first.
            Self::Dot if bytes < 4 => 3 * 4 * n,
            Self::Dot | Self::Axpy => n * bytes,
            Self::Gemv | Self::Matmul => 0,
        }
    }

    // branes-ai/graphs leaves out the result of a dot product; of the others its counts are ours.
    fn published(&self, spec: &Spec) -> Option<Counts> {
        let n = spec.axis("n");
        (*self == Self::Dot).then(|| Counts { flops: Some(2 * n), bytes: Some(2 * n * number_bytes(spec)) })
    }

    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        match self {
            Self::Dot => spec.axis("n"),
            Self::Axpy => 2,
            Self::Gemv | Self::Matmul => spec.axis("k"),
        }
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let (a, b) = (&inputs[0], &inputs[1]);
        match self {
            Self::Dot => vec![dot(&a.exact_row(0), b.row(0))],
            Self::Axpy => {
                sample.by_elements(|_, col| f64::from(ALPHA) * f64::from(a.row(0)[col]) + f64::from(b.row(0)[col]))
            }
            Self::Gemv => {
                let x = b.exact_row(0);
                sample.by_elements(|_, row| dot(&x, a.row(row)))
            }
            Self::Matmul => {
                let column = |&col: &usize| (0..b.rows).map(|row| b.row(row)[col]).collect();
                let columns: Vec<Vec<f32>> = sample.cols.iter().map(column).collect();
                sample.by_rows(|row| {
                    let x = a.exact_row(row);
                    columns.iter().map(|column| dot(&x, column)).collect()
                })
            }
        }
    }

    fn tolerance(&self, spec: &Spec, output: usize) -> Tolerance {
        let depth = self.depth(spec, output);
        match self {
            Self::Dot => Tolerance::new(Dtype::F32, 1, depth),
            Self::Axpy => Tolerance::new(spec.dtype(), 2, depth),
            Self::Gemv | Self::Matmul => Tolerance::new(spec.dtype(), 1, depth),
        }
    }

    fn supported(&self, _: &Spec, implementation: Implementation, device: Device) -> Result<(), String> {
        match (implementation, device) {
            (Implementation::Native, Device::Cuda(_)) if *self == Self::Matmul => Ok(()),
            _ => burn_alone(self.name(), implementation, device),
        }
    }

    fn pass<B: Backend>(&self, _: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let [a, b] = inputs.try_into().map(|inputs: [Value<B>; 2]| inputs.map(Value::float)).expect("two inputs");
        let routine = *self;
        Box::new(move || {
            let (a, b) = (a.clone(), b.clone());
            vec![Value::Float(match routine {
                Blas::Dot => (a.cast(DType::F32) * b.cast(DType::F32)).sum_dim(1),
                Blas::Axpy => a * ALPHA + b,
                // A row times the transposed matrix: a view of the same memory.
                Blas::Gemv => b.matmul(a.transpose()),
                Blas::Matmul => a.matmul(b),
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
        use calorimeter_kernels::native::{LinearForm, WeightLayout};
        if *self != Self::Matmul {
            return Err(crate::ZooError::Unsupported(format!("{} has no native kernel", self.name())));
        }
        let form = LinearForm { weight: WeightLayout::AlongN, ..LinearForm::plain(spec.dtype()) };
        native_pass::product(&machine, spec, form)?.open(self, spec, inputs, machine, sets)
    }
}
