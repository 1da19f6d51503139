//! What CUDA's kernels make of a layer under a recipe.

use crate::dynamic::dynamic_form;
use crate::packed::packed_form;
use crate::two_of_four::sparse_form;
use crate::{Layout, Problem};
use calorimeter_kernels::{DynamicCodes, DynamicForm, PackedForm, SparseForm};
use calorimeter_recipes::{Dtype, Recipe, Shortcut, Sparsity, Treatment};

/// What a linear layer is to `native` on CUDA.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum NativeForm {
    /// Of floats.
    Plain,
    /// Of f32, cut to TF32.
    Tf32,
    /// With a weight in codes.
    Packed(PackedForm),
    /// With weight and input in codes.
    Dynamic(DynamicForm),
    /// With a weight of which two of every four numbers are kept.
    TwoOfFour(SparseForm),
    /// Of floats, with a weight of which whole blocks are zero.
    Blocks(Sparsity),
}

/// The form of a layer for an input of so many rows, if there is a kernel for its treatment.
pub fn native_form(treatment: &Treatment, rows: usize) -> Option<NativeForm> {
    if treatment.is_plain() {
        return Some(if treatment.shortcut == Some(Shortcut::Tf32) { NativeForm::Tf32 } else { NativeForm::Plain });
    }
    if let Some(blocks @ Sparsity::Block { .. }) = treatment.sparsity {
        let alone = Treatment { sparsity: None, ..*treatment } == Treatment::none(treatment.dtype);
        return alone.then_some(NativeForm::Blocks(blocks));
    }
    let packed = packed_form(treatment, rows).map(NativeForm::Packed);
    let dynamic = || dynamic_form(treatment, rows).map(NativeForm::Dynamic);
    packed.or_else(dynamic).or_else(|| sparse_form(treatment, rows).map(NativeForm::TwoOfFour))
}

/// Whether a model's layers are run; the error says which are.
pub fn taken(problem: &Problem, treatment: &Treatment) -> Result<(), String> {
    let Layout { input: (m, _), linears, .. } = problem.layout();
    let longest = linears.iter().map(|&(_, k)| k).max().unwrap_or(0);
    match native_form(treatment, m as usize) {
        Some(NativeForm::Dynamic(form)) => sums_are_kept(form, longest),
        Some(NativeForm::TwoOfFour(form)) => form.dynamic().map_or(Ok(()), |form| sums_are_kept(form, longest)),
        Some(_) => Ok(()),
        None => Err(format!(
            "{}; `eager` runs it",
            match treatment.sparsity {
                None => "`native` has no kernel for this recipe".to_owned(),
                Some(_) => format!(
                    "`native` keeps two of every four numbers of {} and leaves blocks of zeros out of {}",
                    recipes(problem.dtype, Sparsity::SemiStructured),
                    recipes(problem.dtype, Sparsity::BLOCK),
                ),
            }
        )),
    }
}

/// Whether tensor cores add up products of codes as finely as the output is judged.
fn sums_are_kept(form: DynamicForm, k: u64) -> Result<(), String> {
    match form.codes {
        DynamicCodes::E4m3 if form.kind == Dtype::F32 => Err(
            "tensor cores add up products of e4m3 in about 14 bits, too few for an output in f32: `native` runs it in \
             bf16 and f16, and `eager` in f32"
                .into(),
        ),
        codes => match codes.longest_row() {
            Some(longest) if k > longest as u64 => {
                Err(format!("`native` adds up products of codes in 32 bits, which hold rows of {longest}; k is {k}"))
            }
            _ => Ok(()),
        },
    }
}

/// The typical recipes that have a form with a sparsity, by their names.
fn recipes(dtype: Dtype, sparsity: Sparsity) -> String {
    let has_form = |recipe: &Recipe| {
        let treatment = recipe.treatment(dtype, Some(sparsity));
        treatment.is_ok_and(|treatment| native_form(&treatment, 2).is_some())
    };
    let names: Vec<String> = Recipe::typical().into_iter().filter(has_form).map(|recipe| recipe.to_string()).collect();
    names.join(", ")
}
