//! Matrix products of bf16 operands that are quantised to e4m3 on the way; A is (m, k), B is (k, n), the output bf16.
//!
//! Quantising is part of the operator. Rows of A and columns of B are quantised as [`Quantization`] does. The program that
//! the names come from never ran the two families of blocks; here `b128` means what DeepSeek-V3 does: f32 scales for
//! 1 x 128 numbers of A along k and for 128 x 128 of B, both dequantised and summed in f32. `mxfp8_b32` is OCP
//! microscaling: blocks of 32 along k on both sides under powers of two, rounded up.
//!
//! [`Quantization`]: super::quantization::Quantization

use super::absmax::{self, FIXED, code, magnitude, magnitudes, powers, quotients, scales};
use super::minifloat::nearest;
use super::number_types::{BF16, allow};
use super::product::{AXES, column, in_sixteens, products, size};
use crate::gate::Tolerance;
#[cfg(feature = "cuda")]
use crate::native_operator::{NativePass, Set};
use crate::operator::{Operation, Spec, Suite, burn_alone};
use crate::{Counts, Device, Implementation, Matrix, Operand, Pass, Sample, Slot, Value, ZooError};
use burn::tensor::{DType, Tensor, backend::Backend};
use calorimeter_recipes::format::{Format, MxScaling};
use calorimeter_recipes::quantise::quantise;
use calorimeter_recipes::{Dtype, Element, FloatType};
use rayon::prelude::*;

/// Which numbers share a scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shared {
    /// A row of A, a column of B; the product is left in units of the scales.
    Line,
    /// The same, and the product is multiplied by the scales.
    LineDequantised,
    /// 128 of A along k, 128 x 128 of B.
    Block,
    /// 32 along k.
    Micro,
}

/// Where scales come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scaling {
    /// From the largest magnitude.
    Dynamic,
    /// Known before: one half, which takes 224 to the largest number of e4m3.
    Static,
}

/// A product by how its operands are quantised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GemmQuantised(Shared, Scaling);

impl GemmQuantised {
    /// Numbers along k that share a scale.
    fn along_k(self, k: u64) -> u64 {
        match self.0 {
            Shared::Line | Shared::LineDequantised => k,
            Shared::Block => 128,
            Shared::Micro => 32,
        }
    }

    /// The type that burn multiplies in, and rounds the product to.
    fn multiplied(self) -> Dtype {
        match self {
            // e4m3 numbers, also times a power of two, are numbers of bf16.
            Self(Shared::Line | Shared::Micro, _) | Self(_, Scaling::Static) => Dtype::Bf16,
            _ => Dtype::F32,
        }
    }

    fn steps(self) -> Dtype {
        match self.0 {
            Shared::Line | Shared::LineDequantised => Dtype::Bf16,
            Shared::Block | Shared::Micro => Dtype::F32,
        }
    }

    /// What a row of A or a column of B is multiplied as.
    fn line(self, line: &[f32]) -> Vec<f32> {
        match self {
            Self(Shared::Micro, Scaling::Dynamic) => {
                quantise(line, line.len(), Format::mx(Element::E4m3, MxScaling::Ceil)).dequantise()
            }
            _ => {
                let block = self.along_k(line.len() as u64) as usize;
                line.chunks(block).flat_map(|block| self.block(block, magnitude(block))).collect()
            }
        }
    }

    /// What some numbers are multiplied as that share a scale with others, all up to a magnitude.
    fn block(self, block: &[f32], magnitude: f32) -> Vec<f32> {
        let magnitude = if self.1 == Scaling::Static { FIXED } else { magnitude };
        let scale = absmax::scale(magnitude, Element::E4m3, self.steps());
        let unit = if self.0 == Shared::Line { 1.0 } else { scale };
        block.iter().map(|&x| unit * code(x, scale, Element::E4m3, self.steps())).collect()
    }

    /// What a column of B is multiplied as; `tops` are the magnitudes of its blocks, row by row.
    fn column(self, matrix: &Matrix, col: usize, tops: &[Vec<f32>]) -> Vec<f32> {
        let column = column(matrix, col);
        match self {
            Self(Shared::Block, Scaling::Dynamic) => {
                let blocks = column.chunks(128).zip(tops);
                blocks.flat_map(|(block, tops)| self.block(block, tops[col / 128])).collect()
            }
            _ => self.line(&column),
        }
    }

    /// A quantised operand whose blocks are some dimensions of a shape, and its scales if they are still to be applied.
    fn quantised<B: Backend, const D: usize>(
        self,
        x: &Tensor<B, 2>,
        shape: [usize; D],
        block: &[usize],
    ) -> (Tensor<B, 2>, Option<Tensor<B, D>>) {
        let (size, multiplied) = (x.dims(), self.multiplied().burn());
        let x = x.clone().reshape(shape);
        let (numbers, later) = match self {
            Self(shared, Scaling::Static) => {
                let scale = absmax::scale(FIXED, Element::E4m3, self.steps());
                let numbers = nearest(x.cast(DType::F32).div_scalar(scale));
                (if shared == Shared::Line { numbers } else { numbers.mul_scalar(scale) }, None)
            }
            Self(shared, Scaling::Dynamic) => {
                let tops = magnitudes(&x, block);
                let scales = if shared == Shared::Micro { powers(tops) } else { scales(tops, self.steps()) };
                let numbers = nearest(quotients(x, scales.clone(), self.steps()));
                match shared {
                    Shared::Line | Shared::LineDequantised => (numbers, Some(scales)),
                    Shared::Block | Shared::Micro => (numbers * scales, None),
                }
            }
        };
        (numbers.cast(multiplied).reshape(size), later)
    }
}

impl Operation for GemmQuantised {
    const ABOUT: &'static str = "product of two bf16 matrices that are quantised to e4m3 first";
    const SUITE: Suite = Suite::Gemm;

    fn all() -> Vec<Self> {
        use Scaling::{Dynamic, Static};
        use Shared::{Block, Line, LineDequantised, Micro};
        vec![
            Self(Line, Dynamic),
            Self(LineDequantised, Dynamic),
            Self(Line, Static),
            Self(Block, Dynamic),
            Self(Block, Static),
            Self(Micro, Dynamic),
            Self(Micro, Static),
        ]
    }

    fn name(&self) -> &'static str {
        match self {
            Self(Shared::Line, Scaling::Dynamic) => "gemm_fp8_rowwise",
            Self(Shared::Line, Scaling::Static) => "gemm_fp8_rowwise_static_scaling",
            Self(Shared::LineDequantised, _) => "gemm_fp8_rowwise_w_dequantize",
            Self(Shared::Block, Scaling::Dynamic) => "gemm_fp8_b128_fp32",
            Self(Shared::Block, Scaling::Static) => "gemm_fp8_b128_fp32_static_scaling",
            Self(Shared::Micro, Scaling::Dynamic) => "gemm_mxfp8_b32",
            Self(Shared::Micro, Scaling::Static) => "gemm_mxfp8_b32_static_scaling",
        }
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        allow(self.name(), spec, &[BF16], &[BF16])?;
        let (_, k, n) = size(spec);
        let (block, name) = (self.along_k(k), self.name());
        if !k.is_multiple_of(block) {
            return Err(ZooError::Shape(format!("{name}: k is {k}; it has to be a multiple of {block}")));
        }
        if self.0 == Shared::Block && !n.is_multiple_of(block) {
            return Err(ZooError::Shape(format!("{name}: n is {n}; it has to be a multiple of {block}")));
        }
        Ok(())
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (m, k, n) = size(spec);
        vec![Operand::normal(m, k, BF16), Operand::normal(k, n, BF16)]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let (m, _, n) = size(spec);
        vec![Slot::new(m, n, BF16)]
    }

    // To quantise a number: a comparison, a division, a clip, a rounding; and a division for each scale.
    fn flops(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        let (numbers, blocks) = (m * k + k * n, k / self.along_k(k));
        let scales_of_b = if self.0 == Shared::Block { n / 128 } else { n };
        let quantising = match self.1 {
            Scaling::Dynamic => 4 * numbers + blocks * (m + scales_of_b),
            Scaling::Static => 3 * numbers,
        };
        let dequantising = match self.0 {
            Shared::Line => 0,
            Shared::LineDequantised => 2 * m * n,
            Shared::Block | Shared::Micro => numbers,
        };
        2 * m * k * n + quantising + dequantising
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        let multiplied = self.multiplied().bytes();
        let product = if multiplied == 2 { 0 } else { 3 * m * n * 4 };
        (m * k + k * n) * (4 + multiplied) + product
    }

    fn published(&self, spec: &Spec) -> Option<Counts> {
        let (m, k, n) = size(spec);
        match self.0 {
            Shared::Line | Shared::LineDequantised => Some(Counts { flops: Some(2 * m * k * n), bytes: None }),
            // Never ran there.
            Shared::Block | Shared::Micro => None,
        }
    }

    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        spec.axis("k")
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let (a, b) = (&inputs[0], &inputs[1]);
        let tops = match self.0 {
            Shared::Block => tops(b),
            _ => Vec::new(),
        };
        products(sample, |row| self.line(a.row(row)), |col| self.column(b, col, &tops))
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(Dtype::Bf16, 1, spec.axis("k"))
    }

    fn factors(&self, _: &Spec, implementation: Implementation) -> Element {
        match implementation {
            Implementation::Native => Element::E4m3,
            _ => Element::Float(self.multiplied()),
        }
    }

    fn supported(&self, spec: &Spec, implementation: Implementation, device: Device) -> Result<(), String> {
        match (implementation, device, self.0) {
            (Implementation::Native, Device::Cuda(_), Shared::Line | Shared::LineDequantised) => in_sixteens(spec),
            _ => burn_alone(self.name(), implementation, device),
        }
    }

    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let (m, k, n) = size(spec);
        let along_k = self.along_k(k) as usize;
        let (m, blocks, n) = (m as usize, k as usize / along_k, n as usize);
        let [a, b] = inputs.try_into().map(|inputs: [Value<B>; 2]| inputs.map(Value::float)).expect("two inputs");
        let gemm = *self;
        Box::new(move || {
            let (a, scales_of_a) = gemm.quantised(&a, [m, blocks, along_k], &[2]);
            let (b, scales_of_b) = match gemm.0 {
                Shared::Block => (gemm.quantised(&b, [blocks, 128, n / 128, 128], &[1, 3]).0, None),
                _ => gemm.quantised(&b, [blocks, along_k, n], &[1]),
            };
            let mut y = a.matmul(b);
            if let (Shared::LineDequantised, Some(rows), Some(cols)) = (gemm.0, scales_of_a, scales_of_b) {
                y = y * (rows.reshape([m, 1]) * cols.reshape([1, n]));
            }
            vec![Value::Float(y.cast(DType::BF16))]
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
        use super::native_pass::shape;

        use calorimeter_kernels::native::{
            Float8Linear, Float8Output, Float8Sums, QuantiseColumns, QuantiseRows, ScaleSource,
        };
        let output = match self.0 {
            Shared::Line => Float8Output::Plain(Dtype::Bf16),
            Shared::LineDequantised => Float8Output::Scaled(Dtype::Bf16),
            Shared::Block | Shared::Micro => {
                return Err(ZooError::Unsupported(format!("{} has no native kernel", self.name())));
            }
        };
        let source = match self.1 {
            Scaling::Dynamic => ScaleSource::Largest,
            Scaling::Static => ScaleSource::Static,
        };
        let shape = shape(spec);
        let rows = QuantiseRows::new(&machine, source, shape.m, shape.k)?;
        let columns = QuantiseColumns::new(&machine, source, shape.k, shape.n)?;
        let linear = Float8Linear::new(&machine, shape, output, Float8Sums::Promoted)?;
        let pass = NativePass {
            kernels: vec![rows.algorithm().into(), columns.algorithm().into(), linear.algorithm()],
            between: vec![rows.codes_bytes(), columns.codes_bytes(), rows.scales_bytes(), columns.scales_bytes()],
            enqueue: Box::new(move |Set { inputs, between, outputs }| {
                let [a, b, scales_of_a, scales_of_b] = between.as_mut_slice() else { unreachable!("four buffers") };
                rows.enqueue(&inputs[0], a, scales_of_a)?;
                columns.enqueue(&inputs[1], b, scales_of_b)?;
                let factors = [&*a, b, scales_of_a, scales_of_b];
                linear.enqueue(&factors[..output.inputs()], &mut outputs[0])
            }),
        };
        pass.open(self, spec, inputs, machine, sets)
    }
}

/// The largest magnitudes of blocks of 128 x 128, row by row.
fn tops(matrix: &Matrix) -> Vec<Vec<f32>> {
    let top =
        |rows: &[f32], first: usize| magnitude(rows.chunks(matrix.cols).flat_map(|row| row[first..].iter().take(128)));
    let blocks = matrix.values.par_chunks(128 * matrix.cols);
    blocks.map(|rows| (0..matrix.cols).step_by(128).map(|first| top(rows, first)).collect()).collect()
}
