//! Maps linear layers and recipes to native CUDA kernels.

use crate::dynamic::dynamic_form;
use crate::packed::packed_form;
use crate::sparse::sparse_form;
use crate::{Layout, Problem};
use calorimeter_kernels::{DynamicFormat, DynamicLinearSpec, PackedLinearSpec, SparseLinearSpec};
use calorimeter_recipes::{Dtype, PrecisionHint, QuantConfig, Recipe, Sparsity};

/// Kernel family of a linear layer in `native` on CUDA.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum NativeForm {
    /// Float weight.
    Plain,
    /// f32 weight with operands rounded to TF32.
    Tf32,
    /// Quantized weight, float or rounded input.
    Packed(PackedLinearSpec),
    /// Quantized weight and dynamically quantized input.
    Dynamic(DynamicLinearSpec),
    /// 2:4 sparse weight.
    Sparse2to4(SparseLinearSpec),
    /// Block-sparse float weight.
    BlockSparse(Sparsity),
}

/// Returns the kernel form of a linear layer for an input of `rows` rows, if there is one.
pub fn native_form(treatment: &QuantConfig, rows: usize) -> Option<NativeForm> {
    if treatment.is_unmodified() {
        return Some(if treatment.precision_hint == Some(PrecisionHint::Tf32) {
            NativeForm::Tf32
        } else {
            NativeForm::Plain
        });
    }
    if let Some(blocks @ Sparsity::Block { .. }) = treatment.sparsity {
        let alone = QuantConfig { sparsity: None, ..*treatment } == QuantConfig::unquantized(treatment.dtype);
        return alone.then_some(NativeForm::BlockSparse(blocks));
    }
    let packed = packed_form(treatment, rows).map(NativeForm::Packed);
    let dynamic = || dynamic_form(treatment, rows).map(NativeForm::Dynamic);
    packed.or_else(dynamic).or_else(|| sparse_form(treatment, rows).map(NativeForm::Sparse2to4))
}

/// Checks that `native` supports the layers of a model; the error lists supported recipes.
pub fn check_support(problem: &Problem, treatment: &QuantConfig) -> Result<(), String> {
    let Layout { input: (m, _), linears, .. } = problem.layout();
    let longest = linears.iter().map(|&(_, k)| k).max().unwrap_or(0);
    match native_form(treatment, m as usize) {
        Some(NativeForm::Dynamic(form)) => check_accumulator(form, longest),
        Some(NativeForm::Sparse2to4(form)) => form.dynamic().map_or(Ok(()), |form| check_accumulator(form, longest)),
        Some(_) => Ok(()),
        None => Err(format!(
            "{}; `eager` runs it",
            match treatment.sparsity {
                None => "`native` has no kernel for this recipe".to_owned(),
                Some(_) => format!(
                    "`native` supports 2:4 sparsity with {} and block sparsity with {}",
                    supported_recipes(problem.dtype, Sparsity::SemiStructured),
                    supported_recipes(problem.dtype, Sparsity::DEFAULT_BLOCK),
                ),
            }
        )),
    }
}

/// Checks that the accumulators of the tensor cores are accurate enough for the output.
fn check_accumulator(form: DynamicLinearSpec, k: u64) -> Result<(), String> {
    match form.format {
        DynamicFormat::E4m3 if form.kind == Dtype::F32 => Err(
            "tensor cores accumulate e4m3 products in about 14 bits, too few for f32 outputs: use bf16 or f16 with \
             `native`, or f32 with `eager`"
                .into(),
        ),
        codes => match codes.max_exact_k() {
            Some(longest) if k > longest as u64 => Err(format!(
                "`native` accumulates quantized products in 32 bits, which limits k to {longest}; k is {k}"
            )),
            _ => Ok(()),
        },
    }
}

/// Names of the typical recipes that have a kernel form with this sparsity, comma-separated.
fn supported_recipes(dtype: Dtype, sparsity: Sparsity) -> String {
    let has_form = |recipe: &Recipe| {
        let treatment = recipe.quant_config(dtype, Some(sparsity));
        treatment.is_ok_and(|treatment| native_form(&treatment, 2).is_some())
    };
    let names: Vec<String> = Recipe::examples().into_iter().filter(has_form).map(|recipe| recipe.to_string()).collect();
    names.join(", ")
}
