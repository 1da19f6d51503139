//! What CUDA's kernels make of a layer under a recipe.

use crate::dynamic::dynamic_form;
use crate::packed::packed_form;
use crate::{Layout, Problem};
use calorimeter_kernels::{DynamicCodes, DynamicForm, PackedForm};
use calorimeter_recipes::{Dtype, Recipe, Shortcut, Treatment};

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
}

/// The form of a layer for an input of so many rows, if there is a kernel for its treatment.
pub fn native_form(treatment: &Treatment, rows: usize) -> Option<NativeForm> {
    if treatment.is_plain() {
        return Some(if treatment.shortcut == Some(Shortcut::Tf32) { NativeForm::Tf32 } else { NativeForm::Plain });
    }
    let packed = packed_form(treatment, rows).map(NativeForm::Packed);
    packed.or_else(|| dynamic_form(treatment, rows).map(NativeForm::Dynamic))
}

/// Whether a model's layers are run; the error says which are.
pub fn taken(problem: &Problem, treatment: &Treatment) -> Result<(), String> {
    let Layout { input: (m, _), linears, .. } = problem.layout();
    let longest = linears.iter().map(|&(_, k)| k).max().unwrap_or(0);
    match native_form(treatment, m as usize) {
        Some(NativeForm::Dynamic(form)) => sums_are_kept(form, longest),
        Some(_) => Ok(()),
        None => Err(format!(
            "`native` runs the baseline and {} in this version, without sparsity; `eager` runs the others",
            recipes(problem.dtype).join(", ")
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
        DynamicCodes::Int8 if k > DynamicCodes::MOST_INT8 as u64 => Err(format!(
            "`native` adds up products of codes in 32 bits, which hold rows of {}; k is {k}",
            DynamicCodes::MOST_INT8
        )),
        _ => Ok(()),
    }
}

/// The typical recipes that have a form, by their names.
fn recipes(dtype: Dtype) -> Vec<String> {
    let has_form = |recipe: &Recipe| {
        let form = recipe.treatment(dtype, None).ok().and_then(|treatment| native_form(&treatment, 2));
        form.is_some_and(|form| form != NativeForm::Plain)
    };
    Recipe::typical().into_iter().filter(has_form).map(|recipe| recipe.to_string()).collect()
}
