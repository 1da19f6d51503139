//! Files with `mode: training`: each layer is measured pass by pass.

use super::file::{File, OperandScaling, Optimizer, ScalingGranularity};
use crate::entries::Entry;
use calorimeter_recipes::training::TrainingOperand;
use calorimeter_recipes::{Recipe, RecipeError, TrainingRecipe};
use calorimeter_zoo::operators::trained_linear::TrainedLinear;
use calorimeter_zoo::{Operator, Subject, Suite};

/// Splits an entry into one entry per pass of its model.
pub(super) fn passes(entry: Entry, optimizer: Optimizer) -> Result<Vec<Entry>, String> {
    if let Some(sparsity) = entry.sparsities.first() {
        return Err(format!("mode: training: {sparsity}: training does not support sparsity"));
    }
    let model = entry.subject.to_string();
    let pass = |pass: &TrainedLinear| {
        let mut entry = Entry { subject: training_operator(*pass, &model)?, ..entry.clone() };
        if pass.is_optimizer() {
            entry.recipes = vec![Recipe::BASELINE];
        }
        Ok(entry)
    };
    use TrainedLinear::{Adamw, AdamwStep, Backward, Forward, ForwardBackward, Sgd, SgdStep};
    let [update, step] = match optimizer {
        Optimizer::Adamw => [Adamw, AdamwStep],
        Optimizer::Sgd => [Sgd, SgdStep],
    };
    [Forward, Backward, ForwardBackward, update, step].iter().map(pass).collect()
}

/// Operator for a training pass of a model; the error lists the models with passes.
fn training_operator(pass: TrainedLinear, model: &str) -> Result<Subject, String> {
    let found = training_operators().find(|operator| operator.name() == pass.model_pass_name(model));
    found
        .map(Subject::Operator)
        .ok_or_else(|| format!("mode: training: {model} cannot be trained; available: {}", trained_models().join(", ")))
}

/// Names of the models with training passes.
pub(crate) fn trained_models() -> Vec<String> {
    let of_any = TrainedLinear::Forward.model_pass_name("");
    training_operators().filter_map(|operator| Some(operator.name().strip_suffix(&*of_any)?.to_owned())).collect()
}

fn training_operators() -> impl Iterator<Item = Operator> {
    Operator::all().into_iter().filter(|operator| operator.suite() == Suite::Training)
}

/// Recipes of a file, with fast accumulation and unscaled operands as its keys request.
pub(super) fn recipes(file: &File) -> Result<Vec<Recipe>, String> {
    let scalings = [
        (TrainingOperand::Input, file.scaling_type_input),
        (TrainingOperand::Weight, file.scaling_type_weight),
        (TrainingOperand::GradOutput, file.scaling_type_grad_output),
    ];
    let disabled = scalings.into_iter().filter(|(_, scaling)| *scaling == Some(OperandScaling::Disabled));
    let disabled: Vec<TrainingOperand> = disabled.map(|(operand, _)| operand).collect();
    let fast = file.use_fast_accum == Some(true);
    let partly = |recipe: &Recipe| match recipe.training() {
        Ok(Some(training)) if fast || !disabled.is_empty() => {
            let training = if fast { training.with_fast_accumulation().unwrap_or(training) } else { training };
            let partly = disabled.iter().try_fold(training, |training, operand| training.with_unquantized(*operand));
            let partly = partly.ok_or_else(|| {
                format!(
                    "scaling_type_input, _weight and _grad_output: all disabled, which leaves nothing of {recipe}; use baseline"
                )
            })?;
            partly.to_string().parse().map_err(|error: RecipeError| error.to_string())
        }
        // Recipes without training support are recorded as such.
        _ => Ok(*recipe),
    };
    file.recipes.iter().map(partly).collect()
}

/// Notes on the training keys; fails if they contradict the recipes.
pub(super) fn notes(file: &File) -> Result<Vec<String>, String> {
    // As in torchao, rowwise recipes ignore this key.
    let is_tensorwise =
        |recipe: &&Recipe| matches!(recipe.training(), Ok(Some(recipe)) if recipe == TrainingRecipe::TENSORWISE);
    if let (Some(ScalingGranularity::Rowwise), Some(recipe)) =
        (file.scaling_granularity, file.recipes.iter().find(is_tensorwise))
    {
        return Err(format!(
            "scaling_granularity: {recipe} has one scale per tensor; use the recipe float8dq-row, or tensorwise"
        ));
    }
    let repeated =
        file.repeat_n.map(|_| "repeat_n has no effect: passes are repeated until the requested precision is reached");
    Ok(repeated.into_iter().map(str::to_owned).collect())
}
