//! Matrix products A B of operands that are multiplied as they are given; A is (m, k), B is (k, n), both row-major.
//!
//! All of them write bf16, but `gemm_accum` f32, and `gemm_simple_with_dtype` what [`Spec::output`] says, bf16 if nothing.

use super::minifloat::{self, Decoded};
#[cfg(feature = "cuda")]
use super::native_pass::{self, shape};
use super::number_types::{BF16, F16, F32, allow, burn_alone_if_stored};
use super::product::{AXES, column, in_sixteens, products, size};
use crate::gate::Tolerance;
#[cfg(feature = "cuda")]
use crate::native_operator::{NativePass, Set};
use crate::operator::{Operation, Spec, Suite};
use crate::{Counts, Device, Fill, Implementation, Matrix, Operand, Pass, Sample, Slot, Value, ZooError};
use burn::tensor::{DType, backend::Backend};
use calorimeter_recipes::{Dtype, Element, FloatType};

/// A product by what is given and what is done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Gemm {
    /// `gemm_multiple_run`: of any type.
    MultipleRun,
    /// `gemm_simple`: of e4m3 or bf16.
    Simple,
    /// `gemm_simple_with_dtype`: of any type to any type.
    SimpleWithDtype,
    /// `gemm_throttling`: of any type, to be run for long.
    Throttling,
    /// `gemm`: of e4m3, each row of A and column of B with a scale.
    Scaled,
    /// `gemm_accum`: the same added to C.
    Accumulated,
}

impl Gemm {
    fn output(self, spec: &Spec) -> Element {
        match self {
            Self::Accumulated => F32,
            _ => spec.output.unwrap_or(BF16),
        }
    }

    fn scaled(self) -> bool {
        matches!(self, Self::Scaled | Self::Accumulated)
    }

    /// The type that burn multiplies in. It rounds the product to it, so that is no coarser than the output, and f32 where
    /// scales follow.
    fn multiplied(self, spec: &Spec) -> Dtype {
        match (spec.element, self.output(spec)) {
            _ if self.scaled() => Dtype::F32,
            // Every e4m3 number is one of f16 and of bf16 too.
            (Element::E4m3, Element::Float(output)) => output,
            (Element::Float(input), Element::Float(output)) if input.unit_roundoff() <= output.unit_roundoff() => input,
            _ => Dtype::F32,
        }
    }
}

impl Operation for Gemm {
    const ABOUT: &'static str = "product of two matrices in a type of one's choice";
    const SUITE: Suite = Suite::Gemm;

    fn all() -> Vec<Self> {
        use Gemm::*;
        vec![MultipleRun, Simple, SimpleWithDtype, Throttling, Scaled, Accumulated]
    }

    fn name(&self) -> &'static str {
        match self {
            Self::MultipleRun => "gemm_multiple_run",
            Self::Simple => "gemm_simple",
            Self::SimpleWithDtype => "gemm_simple_with_dtype",
            Self::Throttling => "gemm_throttling",
            Self::Scaled => "gemm",
            Self::Accumulated => "gemm_accum",
        }
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        let (inputs, outputs): (&[Element], &[Element]) = match self {
            Self::MultipleRun | Self::Throttling => (&[F32, F16, BF16, Element::E4m3, Element::E2m1], &[BF16]),
            Self::Simple => (&[Element::E4m3, BF16], &[BF16]),
            Self::SimpleWithDtype => (&[F32, F16, BF16, Element::E4m3], &[F32, F16, BF16, Element::E4m3]),
            Self::Scaled => (&[Element::E4m3], &[BF16]),
            Self::Accumulated => (&[Element::E4m3], &[F32]),
        };
        allow(self.name(), spec, inputs, outputs)
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (m, k, n) = size(spec);
        let mut inputs = vec![Operand::normal(m, k, spec.element), Operand::normal(k, n, spec.element)];
        if self.scaled() {
            // Scales of one size: the errors of a row are compared with the whole output's numbers.
            let scales = Fill::Uniform(0.5, 1.5);
            inputs.push(Operand::normal(m, 1, F32).filled(scales));
            inputs.push(Operand::normal(1, n, F32).filled(scales));
        }
        if *self == Self::Accumulated {
            inputs.push(Operand::normal(m, n, F32));
        }
        inputs
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let (m, _, n) = size(spec);
        vec![Slot::new(m, n, self.output(spec))]
    }

    fn flops(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        let after = match self {
            // The product of both scales, and with it.
            Self::Scaled => 2,
            Self::Accumulated => 3,
            _ => 0,
        };
        2 * m * k * n + after * m * n
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        let (multiplied, output) = (self.multiplied(spec), self.output(spec));
        let operands =
            if spec.element == Element::Float(multiplied) { 0 } else { (m * k + k * n) * multiplied.bytes() };
        let product = if output == Element::Float(multiplied) { 0 } else { m * n * multiplied.bytes() };
        let scaling = if self.scaled() { 2 * m * n * 4 } else { 0 };
        operands + product + scaling
    }

    fn published(&self, spec: &Spec) -> Option<Counts> {
        let (m, k, n) = size(spec);
        let flops = match self {
            Self::SimpleWithDtype => (2 * k - 1) * m * n,
            Self::Accumulated => 2 * m * k * n + m * n,
            _ => 2 * m * k * n,
        };
        Some(Counts { flops: Some(flops), bytes: None })
    }

    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        spec.axis("k")
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let mut values = products(sample, |row| inputs[0].row(row).to_vec(), |col| column(&inputs[1], col));
        for (i, value) in values.iter_mut().enumerate() {
            let (row, col) = sample.position(i);
            if self.scaled() {
                *value *= f64::from(inputs[2].row(row)[0]) * f64::from(inputs[3].row(0)[col]);
            }
            if *self == Self::Accumulated {
                *value += f64::from(inputs[4].row(row)[col]);
            }
            if self.output(spec) == Element::E4m3 {
                *value = value.clamp(-f64::from(minifloat::LARGEST), f64::from(minifloat::LARGEST));
            }
        }
        values
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        let depth = spec.axis("k");
        match self.output(spec) {
            // Hopper's tensor cores keep 14 bits of a sum of e4m3 products, and 128 of them go into one: that errs by about
            // as much as a rounding to f16.
            Element::Float(Dtype::F32) if spec.element == Element::E4m3 => Tolerance::new(Dtype::F16, 1, depth),
            Element::Float(output) => Tolerance::new(output, 1, depth),
            // e4m3 rounds sixteen times as coarsely as bf16.
            _ => {
                let Tolerance { rel_l2, element } = Tolerance::new(Dtype::Bf16, 1, depth);
                Tolerance { rel_l2: 16.0 * rel_l2, element: 16.0 * element }
            }
        }
    }

    fn factors(&self, spec: &Spec, implementation: Implementation) -> Element {
        match implementation {
            Implementation::Native => spec.element,
            _ => Element::Float(self.multiplied(spec)),
        }
    }

    fn supported(&self, spec: &Spec, implementation: Implementation, device: Device) -> Result<(), String> {
        match (implementation, device, spec.element, self.output(spec)) {
            (Implementation::Native, Device::Cuda(_), Element::E4m3, Element::Float(_)) => in_sixteens(spec),
            (Implementation::Native, Device::Cuda(_), Element::Float(_), Element::Float(_)) => Ok(()),
            (Implementation::Native, Device::Cuda(_), from, to) => {
                Err(format!("`native` multiplies floats and e4m3 to floats in this version, not {from} to {to}"))
            }
            _ => burn_alone_if_stored(self, spec, implementation, device),
        }
    }

    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let (element, multiplied) = (spec.element, self.multiplied(spec).burn());
        let output = self.output(spec);
        let mut inputs = inputs.into_iter();
        let mut operand = || Decoded::new(inputs.next().expect("two operands"), element, multiplied);
        let (a, b) = (operand(), operand());
        let others: Vec<_> = inputs.map(Value::float).collect();
        Box::new(move || {
            let mut y = a.read().matmul(b.read());
            if let [rows, cols, ..] = &others[..] {
                y = y * (rows.clone() * cols.clone());
            }
            if let [_, _, c] = &others[..] {
                y = c.clone() + y;
            }
            vec![match output {
                Element::Float(output) => Value::Float(y.cast(output.burn())),
                _ => Value::Codes(minifloat::encode(y.cast(DType::F32))),
            }]
        })
    }

    #[cfg(feature = "cuda")]
    fn native(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: std::sync::Arc<calorimeter_kernels::native::Machine>,
        sets: u32,
    ) -> Result<Box<dyn crate::Workload>, ZooError> {
        use calorimeter_kernels::native::{
            Buffer, Epilogue, Float8Linear, Float8Output, Float8Sums, LinearForm, TransposeBytes, WeightLayout,
        };
        let Element::Float(output) = self.output(spec) else {
            return Err(ZooError::Unsupported(format!("`native` multiplies to floats, not {}", self.output(spec))));
        };
        let pass = if let Element::Float(dtype) = spec.element {
            let (weight, epilogue) = (WeightLayout::AlongN, Epilogue::Nothing);
            native_pass::product(&machine, spec, LinearForm { kind: dtype, output, weight, epilogue })?
        } else {
            let shape = shape(spec);
            let output = match self {
                Self::Scaled => Float8Output::Scaled(output),
                Self::Accumulated => Float8Output::Added,
                _ => Float8Output::Plain(output),
            };
            // cuBLASLt takes only codes that run along k: B is turned in every pass. Sums that are not promoted would be
            // off by more than a rounding to bf16 where k is in the thousands.
            let turn = TransposeBytes::new(&machine, shape.k, shape.n)?;
            let linear = Float8Linear::new(&machine, shape, output, Float8Sums::Promoted)?;
            NativePass {
                kernels: vec![turn.algorithm().into(), linear.algorithm()],
                between: vec![turn.bytes()],
                enqueue: Box::new(move |Set { inputs, between, outputs }| {
                    turn.enqueue(&inputs[1], &mut between[0])?;
                    let mut factors: Vec<&Buffer> = inputs.iter().collect();
                    factors[1] = &between[0];
                    linear.enqueue(&factors, &mut outputs[0])
                }),
            }
        };
        pass.open(self, spec, inputs, machine, sets)
    }
}
