//! What a recipe does to a linear layer: how weight and input are stored, and where the scales are applied.

use crate::block_sparse::BlockSparse;
use crate::format::{Format, Grouping, Method};
use crate::quantize::quantize;
use crate::quantized::Quantized;
use crate::stored::Stored;
use crate::{Dtype, RecipeError, Shortcut, Sparsity, TrainingRecipe, Weight};

/// What is multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Products {
    /// The numbers that weight and input stand for.
    Numbers,
    /// Their codes; the product is rounded to this type, and again after each of the scales, the input's first.
    Codes(Dtype),
}

/// A linear layer under a recipe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Treatment {
    /// The type of the model.
    pub dtype: Dtype,
    /// How the weight is stored, if it is quantized.
    pub weight: Option<Format>,
    /// How each input is stored, if it is quantized.
    pub input: Option<Format>,
    /// What is multiplied.
    pub products: Products,
    /// An input of a single row is left as it is.
    pub spares_single_rows: bool,
    /// How the weight is pruned before anything else.
    pub sparsity: Option<Sparsity>,
    /// What its products may be coarser in than their numbers are.
    pub shortcut: Option<Shortcut>,
    /// How it is trained, if not in its own type.
    pub training: Option<TrainingRecipe>,
}

/// A weight ready to be taken to a device.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Prepared {
    /// As it is.
    Dense(Weight),
    /// In codes.
    Stored(Stored<Vec<u32>>),
    /// Some of its blocks.
    Blocks(BlockSparse),
}

impl Treatment {
    /// The weight and the input as they are.
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

    /// A quantized weight whose numbers are multiplied with an untouched input.
    pub fn weight_only(dtype: Dtype, weight: Format) -> Self {
        Self { weight: Some(weight), ..Self::none(dtype) }
    }

    /// A quantized weight and a quantized input.
    pub fn dynamic(dtype: Dtype, weight: Format, input: Format, products: Products) -> Self {
        Self { weight: Some(weight), input: Some(input), products, ..Self::none(dtype) }
    }

    /// Whether weight and input are left as they are, however they are multiplied.
    pub fn is_plain(&self) -> bool {
        Self { shortcut: None, ..*self } == Self::none(self.dtype)
    }

    /// How an input of so many rows is stored, if it is quantized.
    pub fn input(&self, rows: usize) -> Option<Format> {
        self.input.filter(|_| !(self.spares_single_rows && rows == 1))
    }

    /// Whether a weight of this size can be stored; the error says what would make it.
    pub fn check(&self, n: usize, k: usize) -> Result<(), RecipeError> {
        if let Some(sparsity) = self.sparsity {
            sparsity.check(n, k)?;
        }
        for format in self.weight.iter().chain(&self.input) {
            let Grouping::Block(group) = format.grouping else { continue };
            if !(u64::from(group) * u64::from(format.bits())).is_multiple_of(32) {
                return Err(RecipeError::Unsupported(format!(
                    "groups of {group} codes of {} bits do not fill whole words; a multiple of 32 would",
                    format.bits()
                )));
            }
            if matches!(format.method, Method::Hqq(_)) && !group.is_multiple_of(16) {
                return Err(RecipeError::Unsupported(format!(
                    "half-quadratic quantization adds up groups in sixteen parts, not groups of {group}; \
                     a multiple of 32 would run"
                )));
            }
            // Rows are filled up to whole groups: tinygemm's to 1024 at least.
            if group as usize > k.next_multiple_of(1024) {
                return Err(RecipeError::Unsupported(format!(
                    "groups of {group} are longer than rows of {k}; groups of {k} or less would run"
                )));
            }
        }
        Ok(())
    }

    /// How the weight is stored, if not as it is or in blocks.
    fn stored_as(&self) -> Option<Format> {
        let two_of_four = self.sparsity == Some(Sparsity::SemiStructured);
        let plain = two_of_four.then(|| Format::plain(self.dtype));
        self.weight.or(plain).map(|format| Format { two_of_four, ..format })
    }

    /// Bytes of a stored weight.
    pub fn weight_bytes(&self, n: usize, k: usize) -> u64 {
        match (self.stored_as(), self.sparsity) {
            (Some(format), _) => format.bytes(n, k),
            (None, Some(Sparsity::Block { percent, side })) => BlockSparse::bytes(n, k, percent, side, self.dtype),
            (None, _) => (n * k) as u64 * self.dtype.bytes(),
        }
    }

    /// The most bytes of a weight that a pass holds in a float type at once.
    pub fn unpacked_bytes(&self, n: usize, k: usize) -> u64 {
        self.stored_as().map_or(0, |_| (self.rows_at_once(n, k) * k) as u64 * self.read_as().bytes())
    }

    /// The type that stored numbers are read in: codes are exact in f32, also on tensor cores.
    pub(crate) fn read_as(&self) -> Dtype {
        if self.input.is_some() { Dtype::F32 } else { self.dtype }
    }

    /// Rows of a weight that are read together: a quarter of them, or a mebibyte, so that it is never whole in a float type.
    pub(crate) fn rows_at_once(&self, n: usize, k: usize) -> usize {
        let mebibyte = (1 << 20) / (k * self.read_as().bytes() as usize);
        mebibyte.max(n.div_ceil(4)).clamp(1, n)
    }

    /// The weight as it is before it is quantized.
    fn pruned(&self, weight: &Weight) -> Weight {
        self.sparsity.map_or_else(|| weight.clone(), |sparsity| sparsity.prune(weight))
    }

    /// Quantizes a weight, if it is quantized at all.
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

    /// The weight that the codes stand for: what a correct kernel multiplies with.
    pub fn effective_weight(&self, weight: &Weight) -> Result<Weight, RecipeError> {
        Ok(match self.quantize(weight)? {
            // A code times its scale is finer than the dtype: it must not be rounded to it.
            Some(quantized) => Weight::new(weight.n(), weight.k(), quantized.dequantize(), Dtype::F32),
            None => self.pruned(weight),
        })
    }

    /// The input that the codes stand for, row by row.
    pub fn effective_input(&self, values: &[f32], k: usize) -> Option<Vec<f32>> {
        self.input(values.len() / k.max(1)).map(|format| quantize(values, k, format).dequantize())
    }

    /// Values rounded to the dtype in a row on the way through the layer, for the tolerance of the gate.
    pub fn roundings(&self) -> u32 {
        match (self.weight, self.products) {
            (None, _) => 1,
            // The weight itself is rounded when its numbers are read in the dtype.
            (Some(_), Products::Numbers) => 2 + u32::from(self.input.is_some()),
            (Some(_), Products::Codes(Dtype::F32)) => 1,
            (Some(_), Products::Codes(_)) => 2 + u32::from(self.input.is_some()),
        }
    }
}
