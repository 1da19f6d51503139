//! Quantising bf16 matrices: codes of e4m3, or of e2m1 where [`Spec::output`] says so, and f32 scales that numbers are divided
//! by. Codes times scales are about the numbers.
//!
//! Scales and quotients are rounded to bf16. burn has no tensors of e2m1.

use super::absmax::{self, FIXED, code, magnitude, magnitudes, quotients, scales};
use super::minifloat::encode;
use super::number_types::{BF16, F32, allow, burn_alone_if_stored};
use super::product::column;
use crate::gate::Tolerance;
#[cfg(feature = "cuda")]
use crate::native_operator::{NativePass, Set};
use crate::operator::{Operation, Spec, Suite};
use crate::{Counts, Device, Fill, Implementation, Matrix, Operand, Pass, Sample, Slot, Value, ZooError};
use burn::tensor::{DType, Tensor, backend::Backend};
use calorimeter_recipes::{Dtype, Element};

/// A quantisation by where its scales come from, and whether the matrix is transposed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Quantization {
    /// `quantization`: a scale for each row.
    Rows,
    /// `quantization_static_scaling`: one scale, which takes 224 to the format's largest number.
    Static,
    /// `transpose_quantization`: columns become rows, and each has a scale.
    Transposed,
    /// `transpose_quantization_static_scaling`
    TransposedStatic,
}

/// Of the codes, how many a correct kernel may have one step off: one that does not round the quotient has three in a
/// hundred.
const CROSSED: f64 = 1.0 / 32.0;

impl Quantization {
    fn is_transposed(self) -> bool {
        matches!(self, Self::Transposed | Self::TransposedStatic)
    }

    fn is_static(self) -> bool {
        matches!(self, Self::Static | Self::TransposedStatic)
    }

    fn output(self, spec: &Spec) -> Element {
        spec.output.unwrap_or(Element::E4m3)
    }

    /// Rows and columns of the codes.
    fn size(self, spec: &Spec) -> (u64, u64) {
        let (m, n) = (spec.axis("m"), spec.axis("n"));
        if self.is_transposed() { (n, m) } else { (m, n) }
    }

    /// The numbers of a row of codes.
    fn row(self, matrix: &Matrix, row: usize) -> Vec<f32> {
        if self.is_transposed() { column(matrix, row) } else { matrix.row(row).to_vec() }
    }

    fn scale(self, spec: &Spec, row: &[f32]) -> f32 {
        let magnitude = if self.is_static() { FIXED } else { magnitude(row) };
        absmax::scale(magnitude, self.output(spec), Dtype::Bf16)
    }
}

impl Operation for Quantization {
    const ABOUT: &'static str = "codes and scales of a bf16 matrix";
    const SUITE: Suite = Suite::Gemm;

    fn all() -> Vec<Self> {
        vec![Self::Rows, Self::Static, Self::Transposed, Self::TransposedStatic]
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Rows => "quantization",
            Self::Static => "quantization_static_scaling",
            Self::Transposed => "transpose_quantization",
            Self::TransposedStatic => "transpose_quantization_static_scaling",
        }
    }

    fn products(&self) -> u32 {
        0
    }

    fn axes(&self) -> &'static [&'static str] {
        &["m", "n"]
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        allow(self.name(), spec, &[BF16], &[Element::E4m3, Element::E2m1])
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let input = Operand::normal(spec.axis("m"), spec.axis("n"), BF16);
        // Some numbers are beyond what a fixed scale is made for.
        vec![if self.is_static() { input.filled(Fill::Uniform(-256.0, 256.0)) } else { input }]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let (rows, cols) = self.size(spec);
        let scales = if self.is_static() { 1 } else { rows };
        vec![Slot::new(rows, cols, self.output(spec)), Slot::new(scales, 1, F32)]
    }

    // A comparison, a division, a clip and a rounding for each number; a division for each scale.
    fn flops(&self, spec: &Spec) -> u64 {
        let (rows, cols) = self.size(spec);
        if self.is_static() { 3 * rows * cols } else { 4 * rows * cols + rows }
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let (rows, cols) = self.size(spec);
        (2 + 4) * rows * cols
    }

    fn published(&self, spec: &Spec) -> Option<Counts> {
        let (m, n) = (spec.axis("m"), spec.axis("n"));
        let bytes = match (self, self.output(spec)) {
            // The input counts twice.
            (Self::Rows, output) => 4 * m * n + (m * n * u64::from(output.bits())).div_ceil(8) + 4 * m,
            (_, Element::E4m3) => 5 * m * n + 4 * m,
            _ => return None,
        };
        Some(Counts { flops: None, bytes: Some(bytes) })
    }

    fn depth(&self, spec: &Spec, output: usize) -> u64 {
        match output {
            0 => 16,
            _ => self.size(spec).1,
        }
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], output: usize, sample: &Sample) -> Vec<f64> {
        sample.by_rows(|row| {
            let row = self.row(&inputs[0], row);
            let scale = self.scale(spec, &row);
            match output {
                0 => {
                    let code = |&col: &usize| f64::from(code(row[col], scale, self.output(spec), Dtype::Bf16));
                    sample.cols.iter().map(code).collect()
                }
                _ => vec![f64::from(scale)],
            }
        })
    }

    fn tolerance(&self, spec: &Spec, output: usize) -> Tolerance {
        if output == 1 {
            return Tolerance::new(Dtype::F32, 1, 1);
        }
        let (rows, cols) = self.size(spec);
        // The widest step, relative to the number below it; a matrix of few codes may have a single one off.
        let step = if self.output(spec) == Element::E4m3 { 1.0 / 8.0 } else { 1.0 / 2.0 };
        let crossed = CROSSED.sqrt() + 1.0 / ((rows * cols) as f64).sqrt();
        Tolerance { rel_l2: step * crossed, element: 1.01 * step }
    }

    fn supported(&self, spec: &Spec, implementation: Implementation, device: Device) -> Result<(), String> {
        match (implementation, device) {
            (Implementation::Native, Device::Cuda(_)) => match self.output(spec) {
                Element::E4m3 => Ok(()),
                other => Err(format!("`native` writes codes of e4m3 in this version, not {other}")),
            },
            _ => burn_alone_if_stored(self, spec, implementation, device),
        }
    }

    fn pass<B: Backend>(&self, _: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let [x] = inputs.try_into().map(|inputs: [Value<B>; 1]| inputs.map(Value::float)).expect("one input");
        let ([m, n], device) = (x.dims(), x.device());
        let quantization = *self;
        Box::new(move || {
            let mut x = x.clone();
            if quantization.is_transposed() {
                // A transposed tensor is a view; the reshape writes it out.
                x = x.transpose().reshape([n * m]).reshape([n, m]);
            }
            let (quotients, scales) = if quantization.is_static() {
                let scale = absmax::scale(FIXED, Element::E4m3, Dtype::Bf16);
                (x.cast(DType::F32).div_scalar(scale), Tensor::full([1, 1], scale, (&device, DType::F32)))
            } else {
                let scales = scales(magnitudes(&x, &[1]), Dtype::Bf16);
                (quotients(x, scales.clone(), Dtype::Bf16), scales)
            };
            vec![Value::Codes(encode(quotients)), Value::Float(scales)]
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
        use calorimeter_kernels::native::{QuantiseColumns, QuantiseRows, ScaleSource};
        let (m, n) = (spec.axis("m") as usize, spec.axis("n") as usize);
        let scales = if self.is_static() { ScaleSource::Static } else { ScaleSource::Largest };
        let pass = if self.is_transposed() {
            let plan = QuantiseColumns::new(&machine, scales, m, n)?;
            NativePass::single(plan.algorithm().to_owned(), move |Set { inputs, outputs, .. }| {
                let [codes, scales] = outputs.as_mut_slice() else { unreachable!("two outputs") };
                plan.enqueue(&inputs[0], codes, scales)
            })
        } else {
            let plan = QuantiseRows::new(&machine, scales, m, n)?;
            NativePass::single(plan.algorithm().to_owned(), move |Set { inputs, outputs, .. }| {
                let [codes, scales] = outputs.as_mut_slice() else { unreachable!("two outputs") };
                plan.enqueue(&inputs[0], codes, scales)
            })
        };
        pass.open(self, spec, inputs, machine, sets)
    }
}
