//! Files with `mode: training`: each layer is measured by its passes.

use super::file::{File, Granularity, Optimizer, Scaling};
use crate::entries::Entry;
use calorimeter_recipes::training::Operand;
use calorimeter_recipes::{Recipe, RecipeError, TrainingRecipe};
use calorimeter_zoo::operators::trained_linear::TrainedLinear;
use calorimeter_zoo::{Operator, Subject, Suite};

/// The passes of the model that an entry names, each an entry of its own.
pub fn passes(entry: Entry, optimizer: Optimizer) -> Result<Vec<Entry>, String> {
    if let Some(sparsity) = entry.sparsities.first() {
        return Err(format!("mode: training: {sparsity}: what is trained is not pruned"));
    }
    let model = entry.subject.to_string();
    let pass = |pass: &TrainedLinear| {
        let mut entry = Entry { subject: trained(*pass, &model)?, ..entry.clone() };
        if pass.is_optimizer() {
            entry.recipes = vec![Recipe::BASELINE];
        }
        Ok(entry)
    };
    use TrainedLinear::{Adamw, AdamwStep, Backward, Forward, ForwardBackward, Sgd, SgdStep};
    let [alone, step] = match optimizer {
        Optimizer::Adamw => [Adamw, AdamwStep],
        Optimizer::Sgd => [Sgd, SgdStep],
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

/// The recipes of a file, each with fast sums where they are asked for, and with the operands left as they are that are not
/// scaled.
pub fn recipes(file: &File) -> Result<Vec<Recipe>, String> {
    let scalings = [
        (Operand::Input, file.scaling_type_input),
        (Operand::Weight, file.scaling_type_weight),
        (Operand::GradOutput, file.scaling_type_grad_output),
    ];
    let disabled = scalings.into_iter().filter(|(_, scaling)| *scaling == Some(Scaling::Disabled));
    let disabled: Vec<Operand> = disabled.map(|(operand, _)| operand).collect();
    let fast = file.use_fast_accum == Some(true);
    let partly = |recipe: &Recipe| match recipe.training() {
        Ok(Some(training)) if fast || !disabled.is_empty() => {
            let training = if fast { training.fast().unwrap_or(training) } else { training };
            let partly = disabled.iter().try_fold(training, |training, operand| training.without(*operand));
            let partly = partly.ok_or_else(|| {
                format!(
                    "scaling_type_input, _weight and _grad_output: disabled: nothing of {recipe} is left; take baseline"
                )
            })?;
            partly.to_string().parse().map_err(|error: RecipeError| error.to_string())
        }
        // What does not train says so in its records.
        _ => Ok(*recipe),
    };
    file.recipes.iter().map(partly).collect()
}

/// What the keys of training come to; the error says what contradicts the recipes.
pub fn notes(file: &File) -> Result<Vec<String>, String> {
    // A recipe that names rows has them whatever this key says, as in torchao.
    let whole =
        |recipe: &&Recipe| matches!(recipe.training(), Ok(Some(recipe)) if recipe == TrainingRecipe::TENSORWISE);
    if let (Some(Granularity::Rowwise), Some(recipe)) = (file.scaling_granularity, file.recipes.iter().find(whole)) {
        return Err(format!(
            "scaling_granularity: {recipe} has one scale for a tensor; take float8dq-row among the recipes, or write tensorwise"
        ));
    }
    let repeated = file.repeat_n.map(|_| "repeat_n has no effect: passes are repeated until their interval is narrow");
    Ok(repeated.into_iter().map(str::to_owned).collect())
}
