//! Configuration of a linear layer: formats of weight and input, and the order in which scales are applied.

use crate::block_sparse::BlockSparse;
use crate::format::{Format, Grouping, Method};
use crate::quantize::quantize;
use crate::quantized::Quantized;
use crate::stored::Stored;
use crate::{Dtype, RecipeError, Shortcut, Sparsity, TrainingRecipe, Weight};

/// Operands of the matmul.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Products {
    /// Dequantized values.
    Numbers,
    /// Quantized values. The result is rounded to this dtype, and again after each scale, input scale first.
    Codes(Dtype),
}

/// Quantization of a linear layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Treatment {
    /// Dtype of the model.
    pub dtype: Dtype,
    /// Format of a quantized weight.
    pub weight: Option<Format>,
    /// Format of a quantized input.
    pub input: Option<Format>,
    /// Operands of the matmul.
    pub products: Products,
    /// An input of a single row is not quantized.
    pub spares_single_rows: bool,
    /// Pruning of the weight before it is quantized.
    pub sparsity: Option<Sparsity>,
    /// Reduced precision that kernels are allowed to use.
    pub shortcut: Option<Shortcut>,
    /// Float8 training recipe; `None` for training in the dtype of the model.
    pub training: Option<TrainingRecipe>,
}

/// Weight that is ready for upload to a device.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Prepared {
    /// Unquantized.
    Dense(Weight),
    /// Quantized or 2:4 sparse, packed.
    Stored(Stored<Vec<u32>>),
    /// Nonzero blocks.
    Blocks(BlockSparse),
}

impl Treatment {
    /// Unquantized weight and input.
    pub fn none(dtype: Dtype) -> Self {
        Self {
            dtype,
            weight: None,
            input: None,
            products: Products::Numbers,
            spares_single_rows: false,
            sparsity: None,
            shortcut: None,
            training: None,
        }
    }

    /// Quantized weight, dequantized for the matmul with an unquantized input.
    pub fn weight_only(dtype: Dtype, weight: Format) -> Self {
        Self { weight: Some(weight), ..Self::none(dtype) }
    }

    /// Quantized weight and dynamically quantized input.
    pub fn dynamic(dtype: Dtype, weight: Format, input: Format, products: Products) -> Self {
        Self { weight: Some(weight), input: Some(input), products, ..Self::none(dtype) }
    }

    /// True if neither weight, input nor training are changed; the precision hint is ignored.
    pub fn is_plain(&self) -> bool {
        Self { shortcut: None, ..*self } == Self::none(self.dtype)
    }

    /// Returns the format of an input of `rows` rows, if it is quantized.
    pub fn input(&self, rows: usize) -> Option<Format> {
        self.input.filter(|_| !(self.spares_single_rows && rows == 1))
    }

    /// Checks that a weight of this size can be stored; the error names a supported size.
    pub fn check(&self, n: usize, k: usize) -> Result<(), RecipeError> {
        if let Some(sparsity) = self.sparsity {
            sparsity.check(n, k)?;
        }
        for format in self.weight.iter().chain(&self.input) {
            let Grouping::Block(group) = format.grouping else { continue };
            if !(u64::from(group) * u64::from(format.bits())).is_multiple_of(32) {
                return Err(RecipeError::Unsupported(format!(
                    "group size {group} with {}-bit values does not fill whole words; use a multiple of 32",
                    format.bits()
                )));
            }
            if matches!(format.method, Method::Hqq(_)) && !group.is_multiple_of(16) {
                return Err(RecipeError::Unsupported(format!(
                    "half-quadratic quantization needs a group size divisible by 16, not {group}; use a multiple of 32"
                )));
            }
            // Rows are padded to whole groups; tinygemm pads them to a multiple of 1024.
            if group as usize > k.next_multiple_of(1024) {
                return Err(RecipeError::Unsupported(format!(
                    "group size {group} exceeds the row length {k}; use at most {k}"
                )));
            }
        }
        Ok(())
    }

    /// Format of a packed weight; `None` for unquantized and block-sparse weights.
    fn stored_as(&self) -> Option<Format> {
        let two_of_four = self.sparsity == Some(Sparsity::SemiStructured);
        let plain = two_of_four.then(|| Format::plain(self.dtype));
        self.weight.or(plain).map(|format| Format { two_of_four, ..format })
    }

    /// Bytes of the stored weight.
    pub fn weight_bytes(&self, n: usize, k: usize) -> u64 {
        match (self.stored_as(), self.sparsity) {
            (Some(format), _) => format.bytes(n, k),
            (None, Some(Sparsity::Block { percent, side })) => BlockSparse::bytes(n, k, percent, side, self.dtype),
            (None, _) => (n * k) as u64 * self.dtype.bytes(),
        }
    }

    /// Maximum bytes of the weight that a forward pass dequantizes at once.
    pub fn unpacked_bytes(&self, n: usize, k: usize) -> u64 {
        self.stored_as().map_or(0, |_| (self.rows_at_once(n, k) * k) as u64 * self.read_as().bytes())
    }

    /// Dtype of dequantized weights: quantized values are exact in f32, also on tensor cores.
    pub(crate) fn read_as(&self) -> Dtype {
        if self.input.is_some() { Dtype::F32 } else { self.dtype }
    }

    /// Rows of a weight that are dequantized at once: a quarter of them, or a mebibyte, so that the weight never exists
    /// whole in a float dtype.
    pub(crate) fn rows_at_once(&self, n: usize, k: usize) -> usize {
        let mebibyte = (1 << 20) / (k * self.read_as().bytes() as usize);
        mebibyte.max(n.div_ceil(4)).clamp(1, n)
    }

    /// Prunes a weight, if a sparsity is configured.
    fn pruned(&self, weight: &Weight) -> Weight {
        self.sparsity.map_or_else(|| weight.clone(), |sparsity| sparsity.prune(weight))
    }

    /// Quantizes a weight; `None` if weights are not quantized.
    pub fn quantize(&self, weight: &Weight) -> Result<Option<Quantized>, RecipeError> {
        let Some(format) = self.weight else { return Ok(None) };
        let quantized = quantize(self.pruned(weight).values(), weight.k(), format);
        match quantized.not_finite() {
            Some((row, group)) => Err(RecipeError::NotFinite { row, group }),
            None => Ok(Some(quantized)),
        }
    }

    /// Prunes, quantizes and packs a weight.
    pub fn prepare(&self, weight: &Weight) -> Result<Prepared, RecipeError> {
        self.check(weight.n(), weight.k())?;
        let stored = match self.quantize(weight)? {
            Some(quantized) => quantized.stored(),
            None => match self.sparsity {
                None => return Ok(Prepared::Dense(weight.clone())),
                Some(blocks @ Sparsity::Block { side, .. }) => {
                    return Ok(Prepared::Blocks(BlockSparse::new(weight, blocks, side.into())));
                }
                Some(Sparsity::SemiStructured) => Stored::plain(&self.pruned(weight)),
            },
        };
        let two_of_four = self.sparsity == Some(Sparsity::SemiStructured);
        Ok(Prepared::Stored(if two_of_four { stored.two_of_four(&self.pruned(weight)) } else { stored }))
    }

    /// Returns the dequantized weight: the operand of a correct kernel.
    pub fn effective_weight(&self, weight: &Weight) -> Result<Weight, RecipeError> {
        Ok(match self.quantize(weight)? {
            // A quantized value times its scale needs more precision than the dtype, so it stays in f32.
            Some(quantized) => Weight::new(weight.n(), weight.k(), quantized.dequantize(), Dtype::F32),
            None => self.pruned(weight),
        })
    }

    /// Returns the dequantized input, row by row; `None` if inputs are not quantized.
    pub fn effective_input(&self, values: &[f32], k: usize) -> Option<Vec<f32>> {
        self.input(values.len() / k.max(1)).map(|format| quantize(values, k, format).dequantize())
    }

    /// Consecutive roundings to the dtype within the layer; sets the tolerance of the gate.
    pub fn roundings(&self) -> u32 {
        match (self.weight, self.products) {
            (None, _) => 1,
            // The weight itself is rounded when it is dequantized to the dtype.
            (Some(_), Products::Numbers) => 2 + u32::from(self.input.is_some()),
            (Some(_), Products::Codes(Dtype::F32)) => 1,
            (Some(_), Products::Codes(_)) => 2 + u32::from(self.input.is_some()),
        }
    }
}
