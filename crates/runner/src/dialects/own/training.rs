//! Files with `mode: training`: each layer is measured by its passes.

use super::file::{File, Granularity, Optimiser, Scaling};
use crate::entries::Entry;
use calorimeter_recipes::{Recipe, TrainingRecipe};
use calorimeter_zoo::operators::trained_linear::TrainedLinear;
use calorimeter_zoo::{Operator, Subject, Suite};

/// The passes of the model that an entry names, each an entry of its own.
pub fn passes(entry: Entry, optimiser: Optimiser) -> Result<Vec<Entry>, String> {
    if let Some(sparsity) = entry.sparsities.first() {
        return Err(format!("mode: training: {sparsity}: what is trained is not pruned"));
    }
    let model = entry.subject.to_string();
    let pass = |pass: &TrainedLinear| {
        let mut entry = Entry { subject: trained(*pass, &model)?, ..entry.clone() };
        if pass.is_optimiser() {
            entry.recipes = vec![Recipe::BASELINE];
        }
        Ok(entry)
    };
    use TrainedLinear::{Adamw, AdamwStep, Backward, Forward, ForwardBackward, Sgd, SgdStep};
    let [alone, step] = match optimiser {
        Optimiser::Adamw => [Adamw, AdamwStep],
        Optimiser::Sgd => [Sgd, SgdStep],
    };
    [Forward, Backward, ForwardBackward, alone, step].iter().map(pass).collect()
}

/// A pass of a model; the error says which models have any.
fn trained(pass: TrainedLinear, model: &str) -> Result<Subject, String> {
    let all = Operator::all().into_iter().filter(|operator| operator.suite() == Suite::Training);
    let all: Vec<Operator> = all.collect();
    let found = all.iter().find(|operator| operator.name() == pass.of_model(model));
    found.map(|operator| Subject::Operator(*operator)).ok_or_else(|| {
        let of_any = TrainedLinear::Forward.of_model("");
        let models: Vec<&str> = all.iter().filter_map(|operator| operator.name().strip_suffix(&*of_any)).collect();
        format!("mode: training: there are no passes of {model}; there are those of {}", models.join(", "))
    })
}

/// What the keys of training come to; the error says what contradicts the recipes.
pub fn notes(file: &File) -> Result<Vec<String>, String> {
    let scalings = [
        ("scaling_type_input", file.scaling_type_input),
        ("scaling_type_weight", file.scaling_type_weight),
        ("scaling_type_grad_output", file.scaling_type_grad_output),
    ];
    if let Some((key, _)) = scalings.into_iter().find(|(_, scaling)| *scaling == Some(Scaling::Disabled)) {
        return Err(format!(
            "{key}: disabled: every product has two operands in float8 or none in this version; write dynamic, or take \
             rowwise_with_gw_hp or baseline among the recipes"
        ));
    }
    // A recipe that names rows has them whatever this key says, as in torchao.
    let whole = |recipe: &&Recipe| matches!(recipe.training(), Ok(Some(TrainingRecipe::Tensorwise)));
    if let (Some(Granularity::Rowwise), Some(recipe)) = (file.scaling_granularity, file.recipes.iter().find(whole)) {
        return Err(format!(
            "scaling_granularity: {recipe} has one scale for a tensor; take float8dq-row among the recipes, or write tensorwise"
        ));
    }
    let without_effect = [
        (
            file.use_fast_accum.is_some(),
            "use_fast_accum has no effect: no float8 tensor cores are used in training in this version",
        ),
        (file.repeat_n.is_some(), "repeat_n has no effect: passes are repeated until their interval is narrow"),
    ];
    Ok(without_effect.into_iter().filter(|(given, _)| *given).map(|(_, note)| note.to_owned()).collect())
}
