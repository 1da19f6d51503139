//! Configuration of a linear layer: formats of weight and input, and the order in which scales are applied.

use crate::block_sparse::BlockSparse;
use crate::format::{Format, Grouping, QuantMethod};
use crate::packed_tensor::{compress_2to4, pack_unquantized};
use crate::prune::{check_size, prune};
use crate::quantize::quantize;
use crate::quantized_tensor::QuantizedTensor;
use crate::{Dtype, LayerSpec, MatmulMode, PackedTensor, PrecisionHint, RecipeError, Sparsity, TrainingRecipe, Weight};

/// Quantization of a linear layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantConfig {
    /// Dtype of the model.
    pub dtype: Dtype,
    /// Format of a quantized weight.
    pub weight: Option<Format>,
    /// Format of a quantized input.
    pub input: Option<Format>,
    /// Operands of the matmul.
    pub matmul: MatmulMode,
    /// An input of a single row is not quantized.
    pub skip_input_for_single_row: bool,
    /// Pruning of the weight before it is quantized.
    pub sparsity: Option<Sparsity>,
    /// Reduced precision that kernels are allowed to use.
    pub precision_hint: Option<PrecisionHint>,
    /// Float8 training recipe; `None` for training in the dtype of the model.
    pub training: Option<TrainingRecipe>,
    /// True if another library quantizes the inputs, which rounds scales and quotients in its own way. Its outputs are
    /// compared with wider tolerances.
    pub rounds_independently: bool,
}

/// Weight that is ready for upload to a device.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PreparedWeight {
    /// Unquantized.
    Dense(Weight),
    /// Quantized or 2:4 sparse, packed.
    Packed(PackedTensor<Vec<u32>>),
    /// Nonzero blocks.
    BlockSparse(BlockSparse),
}

impl QuantConfig {
    /// Unquantized weight and input.
    pub fn unquantized(dtype: Dtype) -> Self {
        Self {
            dtype,
            weight: None,
            input: None,
            matmul: MatmulMode::Values,
            skip_input_for_single_row: false,
            sparsity: None,
            precision_hint: None,
            training: None,
            rounds_independently: false,
        }
    }

    /// Quantized weight, dequantized for the matmul with an unquantized input.
    pub fn weight_only(dtype: Dtype, weight: Format) -> Self {
        Self { weight: Some(weight), ..Self::unquantized(dtype) }
    }

    /// Quantized weight and dynamically quantized input.
    pub fn dynamic(dtype: Dtype, weight: Format, input: Format, matmul: MatmulMode) -> Self {
        Self { weight: Some(weight), input: Some(input), matmul, ..Self::unquantized(dtype) }
    }

    /// True if neither weight, input nor training are changed; the precision hint is ignored.
    pub fn is_unmodified(&self) -> bool {
        Self { precision_hint: None, ..*self } == Self::unquantized(self.dtype)
    }

    /// Returns the format of an input of `rows` rows, if it is quantized.
    pub fn input_format(&self, rows: usize) -> Option<Format> {
        self.input.filter(|_| !(self.skip_input_for_single_row && rows == 1))
    }

    /// Returns the specification of the layer for an input of `rows` rows, without prologue and epilogue.
    pub fn layer_spec(&self, rows: usize) -> LayerSpec {
        let Self { dtype, weight, matmul, sparsity, precision_hint, .. } = *self;
        let input = self.input_format(rows);
        LayerSpec { weight, input, matmul, sparsity, precision_hint, ..LayerSpec::unquantized(dtype) }
    }

    /// Checks that a weight of this size can be stored; the error names a supported size.
    pub fn check(&self, n: usize, k: usize) -> Result<(), RecipeError> {
        if let Some(sparsity) = self.sparsity {
            check_size(sparsity, n, k)?;
        }
        for format in self.weight.iter().chain(&self.input) {
            let Grouping::Block(group) = format.grouping else { continue };
            let invalid = |expected| Err(RecipeError::GroupSize { group, expected });
            if !(u64::from(group) * u64::from(format.bits())).is_multiple_of(32) {
                return invalid(format!("a multiple of 32, so that {}-bit values fill whole words", format.bits()));
            }
            if matches!(format.method, QuantMethod::Hqq(_)) && !group.is_multiple_of(16) {
                return invalid("a multiple of 32 for half-quadratic quantization".to_owned());
            }
            // Rows are padded to whole groups; tinygemm pads them to a multiple of 1024.
            if group as usize > k.next_multiple_of(1024) {
                return invalid(format!("at most {k}, the row length"));
            }
        }
        Ok(())
    }

    /// Format of a packed weight; `None` for unquantized and block-sparse weights.
    fn packed_format(&self) -> Option<Format> {
        let two_of_four = self.sparsity == Some(Sparsity::SemiStructured);
        let plain = two_of_four.then(|| Format::unquantized(self.dtype));
        self.weight.or(plain).map(|format| Format { sparse_2to4: two_of_four, ..format })
    }

    /// Bytes of the stored weight.
    pub fn weight_bytes(&self, n: usize, k: usize) -> u64 {
        match (self.packed_format(), self.sparsity) {
            (Some(format), _) => format.bytes(n, k),
            (None, Some(blocks @ Sparsity::Block { block_size, .. })) => {
                let per_row = blocks.retained_blocks_per_row(k).unwrap_or_default();
                BlockSparse::bytes(n, block_size.into(), per_row, self.dtype)
            }
            (None, _) => (n * k) as u64 * self.dtype.bytes(),
        }
    }

    /// Maximum bytes of the weight that a forward pass dequantizes at once.
    pub fn dequantized_bytes(&self, n: usize, k: usize) -> u64 {
        self.packed_format().map_or(0, |_| (self.dequant_rows(n, k) * k) as u64 * self.dequant_dtype().bytes())
    }

    /// Dtype of dequantized weights: quantized values are exact in f32, also on tensor cores.
    pub(crate) fn dequant_dtype(&self) -> Dtype {
        if self.input.is_some() { Dtype::F32 } else { self.dtype }
    }

    /// Rows of a weight that are dequantized at once: a quarter of them, or a mebibyte, so that the weight never exists
    /// whole in a float dtype.
    pub(crate) fn dequant_rows(&self, n: usize, k: usize) -> usize {
        let mebibyte = (1 << 20) / (k * self.dequant_dtype().bytes() as usize);
        mebibyte.max(n.div_ceil(4)).clamp(1, n)
    }

    /// Prunes a weight, if a sparsity is configured.
    fn prune(&self, weight: &Weight) -> Weight {
        self.sparsity.map_or_else(|| weight.clone(), |sparsity| prune(sparsity, weight))
    }

    /// Quantizes a weight; `None` if weights are not quantized.
    pub fn quantize(&self, weight: &Weight) -> Result<Option<QuantizedTensor>, RecipeError> {
        let Some(format) = self.weight else { return Ok(None) };
        let quantized = quantize(self.prune(weight).values(), weight.k(), format);
        match quantized.first_non_finite() {
            Some((row, group)) => Err(RecipeError::NotFinite { row, group }),
            None => Ok(Some(quantized)),
        }
    }

    /// Prunes, quantizes and packs a weight.
    pub fn prepare(&self, weight: &Weight) -> Result<PreparedWeight, RecipeError> {
        self.check(weight.n(), weight.k())?;
        let stored = match self.quantize(weight)? {
            Some(quantized) => quantized.to_packed(),
            None => match self.sparsity {
                None => return Ok(PreparedWeight::Dense(weight.clone())),
                Some(blocks @ Sparsity::Block { block_size: side, .. }) => {
                    return Ok(PreparedWeight::BlockSparse(BlockSparse::new(weight, blocks, side.into())));
                }
                Some(Sparsity::SemiStructured) => pack_unquantized(&self.prune(weight)),
            },
        };
        let two_of_four = self.sparsity == Some(Sparsity::SemiStructured);
        Ok(PreparedWeight::Packed(if two_of_four { compress_2to4(stored, &self.prune(weight)) } else { stored }))
    }

    /// Returns the dequantized weight: the operand of a correct kernel.
    pub fn effective_weight(&self, weight: &Weight) -> Result<Weight, RecipeError> {
        Ok(match self.quantize(weight)? {
            // A quantized value times its scale needs more precision than the dtype, so it stays in f32.
            Some(quantized) => Weight::new(weight.n(), weight.k(), quantized.dequantize(), Dtype::F32),
            None => self.prune(weight),
        })
    }

    /// Returns the dequantized input, row by row; `None` if inputs are not quantized.
    pub fn effective_input(&self, values: &[f32], k: usize) -> Option<Vec<f32>> {
        self.input_format(values.len() / k.max(1)).map(|format| quantize(values, k, format).dequantize())
    }

    /// Consecutive roundings to the dtype within the layer; sets the tolerance of the gate.
    pub fn roundings(&self) -> u32 {
        match (self.weight, self.matmul) {
            (None, _) => 1,
            // The weight itself is rounded when it is dequantized to the dtype.
            (Some(_), MatmulMode::Values) => 2 + u32::from(self.input.is_some()),
            (Some(_), MatmulMode::QuantizedValues(Dtype::F32)) => 1,
            (Some(_), MatmulMode::QuantizedValues(_)) => 2 + u32::from(self.input.is_some()),
        }
    }
}
