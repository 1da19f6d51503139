//! Dtypes, scales, layouts and epilogue of a cuBLASLt matmul.

use std::fmt;

use super::{
    Epilogue, Float8Accumulation, InputLayout, LinearShape, WeightLayout,
    quantize_blocks::{BLOCK_SIZE, SCALE_ALIGNMENT},
};
use crate::Dtype;

/// Dtypes of the multiplied operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperandTypes {
    /// Floats of one dtype.
    Float(Dtype),
    /// f32 rounded to TF32 by the tensor cores.
    Tf32,
    /// e4m3 times e4m3.
    E4m3(Float8Accumulation),
    /// e5m2 times e4m3.
    E5m2ByE4m3(Float8Accumulation),
    /// int8 with i32 accumulators.
    Int8,
}

/// Dtype of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GemmOutput {
    /// Float.
    Float(Dtype),
    /// 32-bit integer.
    Int32,
}

impl GemmOutput {
    /// Bytes per element.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Float(kind) => kind.width(),
            Self::Int32 => 4,
        }
    }
}

/// Scales that the accumulators are multiplied by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GemmScales {
    /// No scales.
    None,
    /// Scale per row and per column of the output.
    RowsCols,
    /// Scale per operand.
    Tensors,
    /// Scale per 128 elements of a row of x and per 128 x 128 block of w, as
    /// [`super::CudaKernel::quantize_square_blocks`] writes them.
    Blocks,
}

impl GemmScales {
    /// Number of scales of x and of w.
    pub(super) fn counts(self, LinearShape { m, k, n }: LinearShape) -> [usize; 2] {
        match self {
            Self::None => [0; 2],
            Self::RowsCols => [m, n],
            Self::Tensors => [1; 2],
            Self::Blocks => {
                let [along, of_w] = [k, n].map(|size| size.div_ceil(BLOCK_SIZE));
                [along * m.next_multiple_of(SCALE_ALIGNMENT), along.next_multiple_of(SCALE_ALIGNMENT) * of_w]
            }
        }
    }
}

impl OperandTypes {
    /// Bytes per element.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Float(kind) => kind.width(),
            Self::Tf32 => Dtype::F32.width(),
            Self::E4m3(_) | Self::E5m2ByE4m3(_) | Self::Int8 => 1,
        }
    }
}

/// Matmul without its sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GemmSpec {
    pub(super) operands: OperandTypes,
    pub(super) output: GemmOutput,
    pub(super) scales: GemmScales,
    pub(super) input: InputLayout,
    pub(super) weight: WeightLayout,
    pub(super) epilogue: Epilogue,
}

impl GemmSpec {
    /// y = x · wᵀ without scales and epilogue.
    pub(super) fn plain(factors: OperandTypes, output: Dtype) -> Self {
        Self::unscaled(factors, GemmOutput::Float(output))
    }

    /// int8 matmul with i32 output.
    pub(super) fn int8() -> Self {
        Self::unscaled(OperandTypes::Int8, GemmOutput::Int32)
    }

    fn unscaled(operands: OperandTypes, output: GemmOutput) -> Self {
        let (input, weight) = (InputLayout::AlongK, WeightLayout::AlongK);
        Self { operands, output, scales: GemmScales::None, input, weight, epilogue: Epilogue::None }
    }
}

impl fmt::Display for GemmSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scaled = if self.scales == GemmScales::None { "" } else { "scaled " };
        let factors = match self.operands {
            OperandTypes::Float(kind) => kind.to_string(),
            OperandTypes::Tf32 => "TF32".into(),
            OperandTypes::E4m3(_) => "e4m3".into(),
            OperandTypes::E5m2ByE4m3(_) => "e5m2 by e4m3".into(),
            OperandTypes::Int8 => "int8".into(),
        };
        write!(f, "{scaled}{factors}")?;
        match (self.operands, self.output) {
            (OperandTypes::Float(kind), GemmOutput::Float(output)) if kind == output => Ok(()),
            (OperandTypes::Tf32, _) => Ok(()),
            (_, GemmOutput::Float(output)) => write!(f, " to {output}"),
            (_, GemmOutput::Int32) => write!(f, " to s32"),
        }?;
        f.write_str(match self.epilogue {
            Epilogue::None => "",
            Epilogue::Bias => " with bias",
            Epilogue::Relu => " with ReLU",
            Epilogue::BiasRelu => " with bias and ReLU",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_names_every_dtype() {
        let form = |factors, output, scaled| {
            let scales = if scaled { GemmScales::RowsCols } else { GemmScales::None };
            GemmSpec { scales, ..GemmSpec::plain(factors, output) }.to_string()
        };
        assert_eq!(form(OperandTypes::Float(Dtype::Bf16), Dtype::Bf16, false), "bf16");
        assert_eq!(form(OperandTypes::Float(Dtype::Bf16), Dtype::F32, false), "bf16 to f32");
        assert_eq!(form(OperandTypes::Tf32, Dtype::F32, false), "TF32");
        assert_eq!(form(OperandTypes::E4m3(Float8Accumulation::Fast), Dtype::F32, true), "scaled e4m3 to f32");
        assert_eq!(GemmSpec::int8().to_string(), "int8 to s32");
        let plain = GemmSpec::plain(OperandTypes::Float(Dtype::F16), Dtype::F16);
        assert_eq!(GemmSpec { epilogue: Epilogue::BiasRelu, ..plain }.to_string(), "f16 with bias and ReLU");
    }
}
