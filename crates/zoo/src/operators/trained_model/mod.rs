//! Training passes of models: forward, backward to the input and all parameters, and the optimizer step of the
//! parameters. A training recipe selects the matmuls of linear layers that run in float8.
//!
//! burn's autodiff runs forward-backward passes and whole steps. It consumes its graph in the backward pass, so the
//! backward pass alone is written out by hand, on tensors that a forward pass saved when the case was opened.

mod architecture;
mod burn;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod cube;
mod derivatives;
mod layers;
mod ln_linear;
mod matrix_f64;
#[cfg(test)]
mod mutants;
#[cfg(feature = "native")]
mod native;
mod norms;
mod output_gradient;
mod reference;
mod reference_layers;
mod swiglu_mlp;
mod transformer_block;

use crate::operators::dtypes::{BF16, F32, check_dtypes};
use crate::operators::trained_linear::{PassInput as LayerInput, PassOutput as LayerOutput, TrainedLinear as Pass};
use crate::outlier_rows::{self, GROUP_ROWS};
use crate::registry::table::Zoo;
use crate::{
    Activation, Cost, Fill, Implementation, Operand, Operation, OutputSlot, RotationAxis, SetRotation, Signature, Spec,
    Suite, ZooError,
};
use architecture::{Architecture, InnerRotation, ModelShape};
use calorimeter_recipes::Element;
use ln_linear::TrainedLnLinear;
use swiglu_mlp::TrainedSwigluMlp;
use transformer_block::TrainedTransformerBlock;

/// Training pass of a model.
#[derive(Debug, Clone, Copy)]
pub struct TrainedModel<A> {
    model: A,
    pass: Pass,
    name: &'static str,
    about: &'static str,
    /// Maximum multiply-adds of a reference.
    budget: u64,
}

/// Output of a pass; parameters are given by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ModelOutput {
    Output,
    GradInput,
    Gradient(usize),
    Parameter(usize),
    /// First (0) or second (1) moment, and the parameter.
    Moment(usize, usize),
}

/// Input of a pass; parameters are given by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ModelInput {
    Input,
    GradOutput,
    Parameter(usize),
    Gradient(usize),
    Moment(usize, usize),
}

/// Registers the training passes of all models with their implementations.
pub(super) fn register(zoo: &Zoo) {
    for activation in Activation::ALL {
        zoo.operators(passes(TrainedLnLinear(activation))).burn().cube_where(TrainedModel::check_cube).native();
    }
    zoo.operators(passes(TrainedSwigluMlp)).burn().cube_where(TrainedModel::check_cube).native();
    zoo.operators(passes(TrainedTransformerBlock)).burn().cube_where(TrainedModel::check_cube).native();
}

/// All training passes of a model.
fn passes<A: Architecture>(model: A) -> [TrainedModel<A>; 7] {
    // Leaked: registered operators live as long as the process.
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    Pass::ALL.map(|pass| {
        let about = pass.description().replace("a linear layer", model.name());
        TrainedModel {
            model,
            pass,
            name: leak(pass.model_pass_name(model.name())),
            about: leak(about),
            budget: MAX_REFERENCE_MULTIPLY_ADDS,
        }
    })
}

/// Maximum multiply-adds of a reference: seconds on a small machine.
const MAX_REFERENCE_MULTIPLY_ADDS: u64 = 1 << 31;
/// Minimum number of active row groups: the first and the last.
const MIN_ACTIVE_GROUPS: u64 = 2;

impl<A: Architecture> TrainedModel<A> {
    /// Parameters: weights, then gains.
    fn parameters(&self, spec: &Spec) -> Vec<Operand> {
        let weight = |[n, k]: [u64; 2]| crate::operators::matmul::weight(n, k, k, spec);
        self.model.layer_shapes(spec).into_iter().map(weight).chain(self.model.gains(spec)).collect()
    }

    fn pass_inputs(&self, spec: &Spec) -> Vec<ModelInput> {
        let count = self.parameters(spec).len();
        let for_all = |input: &dyn Fn(usize) -> ModelInput| (0..count).map(input).collect();
        let expand = |input: &LayerInput| match *input {
            LayerInput::Input => vec![ModelInput::Input],
            LayerInput::GradOutput => vec![ModelInput::GradOutput],
            LayerInput::Weight => for_all(&ModelInput::Parameter),
            LayerInput::GradWeight => for_all(&ModelInput::Gradient),
            LayerInput::Moment(moment) => for_all(&|parameter| ModelInput::Moment(moment, parameter)),
        };
        self.pass.pass_inputs().iter().flat_map(expand).collect()
    }

    fn pass_outputs(&self, spec: &Spec) -> Vec<ModelOutput> {
        let count = self.parameters(spec).len();
        let for_all = |output: &dyn Fn(usize) -> ModelOutput| (0..count).map(output).collect();
        let expand = |output: &LayerOutput| match *output {
            LayerOutput::Output => vec![ModelOutput::Output],
            LayerOutput::GradInput => vec![ModelOutput::GradInput],
            LayerOutput::GradWeight => for_all(&ModelOutput::Gradient),
            LayerOutput::Weight => for_all(&ModelOutput::Parameter),
            LayerOutput::Moment(moment) => for_all(&|parameter| ModelOutput::Moment(moment, parameter)),
        };
        self.pass.pass_outputs().iter().flat_map(expand).collect()
    }

    fn check_cube(&self, spec: &Spec) -> Result<(), String> {
        self.pass.check_cube(self.name, spec)
    }

    /// Multiply-adds of the forward pass.
    fn multiply_adds(&self, spec: &Spec) -> u64 {
        let ModelShape { rows, .. } = self.model.shape(spec);
        let weights: u64 = self.model.layer_shapes(spec).iter().map(|[n, k]| n * k).sum();
        rows * weights + self.model.unweighted_multiply_adds(spec)
    }

    /// Number of row groups with a significant output gradient: as many as a reference can afford.
    fn active_groups(&self, spec: &Spec) -> u64 {
        let ModelShape { rows, .. } = self.model.shape(spec);
        let groups = rows.div_ceil(GROUP_ROWS as u64);
        let of_group = (self.multiply_adds(spec) / groups).saturating_mul(3);
        (self.budget / of_group.max(1)).clamp(MIN_ACTIVE_GROUPS, groups.max(MIN_ACTIVE_GROUPS)).min(groups)
    }

    fn active_rows(&self, spec: &Spec) -> Vec<usize> {
        outlier_rows::select_rows(self.model.shape(spec).rows, self.active_groups(spec))
    }

    /// Number of active rows, computed without listing them because the shape may be too large for any machine. The
    /// last group may be smaller.
    fn active_row_count(&self, spec: &Spec) -> u64 {
        self.active_groups(spec).saturating_mul(GROUP_ROWS as u64).min(self.model.shape(spec).rows)
    }

    /// True if the reference computes all rows.
    fn covers_all_rows(&self, spec: &Spec) -> bool {
        self.active_groups(spec) == self.model.shape(spec).rows.div_ceil(GROUP_ROWS as u64)
    }
}

impl<A: Architecture> Signature for TrainedModel<A> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.about
    }

    fn axes(&self) -> &'static [&'static str] {
        crate::operators::matmul::AXES
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        check_dtypes(self.name(), spec, &[F32, BF16], &[])?;
        self.model.check(spec)
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (ModelShape { rows, input, output }, parameters) = (self.model.shape(spec), self.parameters(spec));
        let operand = |item: &ModelInput| match *item {
            ModelInput::Input => Operand::normal(rows, input, spec.element),
            ModelInput::GradOutput => {
                // Magnitude that makes weight gradients about as large as the moments; the factor 2 makes up for
                // derivatives and layers that shrink gradients.
                let active_rows = self.active_row_count(spec);
                let edge = 2.0 * (3.0 / active_rows.max(output) as f32).sqrt();
                let fill = match self.covers_all_rows(spec) {
                    true => Fill::Symmetric(edge),
                    false => Fill::OutlierRows { bound: edge, groups: self.active_groups(spec) },
                };
                Operand::normal(rows, output, spec.element).with_fill(fill)
            }
            ModelInput::Parameter(of) => parameters[of],
            ModelInput::Gradient(of) => Operand::normal(parameters[of].rows, parameters[of].cols, spec.element),
            ModelInput::Moment(0, of) => Operand::normal(parameters[of].rows, parameters[of].cols, F32),
            // The second moment is a mean of squares, hence positive.
            ModelInput::Moment(_, of) => {
                Operand::normal(parameters[of].rows, parameters[of].cols, F32).with_fill(Fill::Uniform(0.5, 1.5))
            }
        };
        self.pass_inputs(spec).iter().map(operand).collect()
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        let (ModelShape { rows, input, output }, parameters) = (self.model.shape(spec), self.parameters(spec));
        let slot = |item: &ModelOutput| match *item {
            ModelOutput::Output => OutputSlot::new(rows, output, spec.element),
            ModelOutput::GradInput => OutputSlot::new(rows, input, spec.element),
            ModelOutput::Gradient(of) | ModelOutput::Parameter(of) => {
                OutputSlot::new(parameters[of].rows, parameters[of].cols, spec.element)
            }
            ModelOutput::Moment(_, of) => OutputSlot::new(parameters[of].rows, parameters[of].cols, F32),
        };
        self.pass_outputs(spec).iter().map(slot).collect()
    }
}

impl<A: Architecture> Cost for TrainedModel<A> {
    // Two operations per multiply-add of the matmuls, as for inference models, and the optimizer.
    fn flops(&self, spec: &Spec) -> u64 {
        let elements: u64 = self.parameters(spec).iter().map(|parameter| parameter.rows * parameter.cols).sum();
        2 * self.pass.matmul_count() * self.multiply_adds(spec) + self.pass.optimizer_flops().unwrap_or(0) * elements
    }

    // Saved tensors and their gradients. In float8: quantized and f32 copies of the operands and f32 results of the
    // widest matmul. Optimizer: gradients and f32 intermediates.
    fn intermediate(&self, spec: &Spec) -> u64 {
        let ModelShape { rows, .. } = self.model.shape(spec);
        let bytes = u64::from(spec.element.bits()) / 8;
        let elements: u64 = self.parameters(spec).iter().map(|parameter| parameter.rows * parameter.cols).sum();
        let update = if self.pass.optimizer_flops().is_some() { elements * bytes + 3 * 4 * elements } else { 0 };
        if self.pass.is_optimizer() {
            return update;
        }
        let widest = self.model.layer_shapes(spec).into_iter().map(|[n, k]| rows * k + n * k + rows * n).max();
        let float8 = if spec.training.is_some() { 9 * widest.unwrap_or(0) } else { 0 };
        2 * self.model.saved_elements(spec) * bytes + float8 + update
    }

    fn matmuls(&self) -> u32 {
        if self.pass.is_optimizer() { 0 } else { self.model.chained_matmuls() }
    }

    fn matmul_element(&self, spec: &Spec, implementation: Implementation) -> Element {
        self.pass.matmul_element(spec, implementation)
    }
}

impl<A: Architecture> Operation for TrainedModel<A> {
    fn suite(&self) -> Suite {
        Suite::Training
    }

    fn tokens(&self, spec: &Spec) -> Option<u64> {
        (!self.pass.is_optimizer()).then(|| self.model.shape(spec).rows)
    }

    fn parts(&self) -> &'static [&'static str] {
        self.pass.parts()
    }

    // Elements that may share a scale rotate together, as do rows that depend on each other.
    fn set_rotation(&self, spec: &Spec) -> SetRotation {
        use RotationAxis::{Fixed, Rows};
        let parameters = self.parameters(spec);
        let groups = |side: u64| {
            (side.is_multiple_of(GROUP_ROWS as u64) && side > GROUP_ROWS as u64).then(|| side / GROUP_ROWS as u64)
        };
        let InnerRotation { width, parameters: inside, output } = self.model.inner_rotation(spec);
        if self.pass.is_optimizer() {
            let rows = parameters.iter().map(|parameter| parameter.rows).filter(|rows| *rows > 1);
            let each = parameters.iter().map(|parameter| if parameter.rows > 1 { Rows } else { Fixed }).collect();
            return self.set_rotation(spec, rows.reduce(gcd).unwrap_or(1), [Fixed, Fixed], each);
        }
        match (groups(self.model.shape(spec).rows), groups(width)) {
            (Some(parts), _) => self.set_rotation(spec, parts, [Rows, Rows], vec![Fixed; parameters.len()]),
            (None, Some(parts)) => self.set_rotation(spec, parts, [Fixed, output], inside),
            (None, None) => SetRotation::fixed(),
        }
    }
}

impl<A: Architecture> TrainedModel<A> {
    /// Rotation of all inputs and outputs, given the rotation of the input, the output and each parameter. Gradients
    /// and moments rotate like their tensor.
    fn set_rotation(
        &self,
        spec: &Spec,
        parts: u64,
        [along_input, along_output]: [RotationAxis; 2],
        parameters: Vec<RotationAxis>,
    ) -> SetRotation {
        let input_rotation = |input: &ModelInput| match *input {
            ModelInput::Input => along_input,
            ModelInput::GradOutput => along_output,
            ModelInput::Parameter(of) | ModelInput::Gradient(of) | ModelInput::Moment(_, of) => parameters[of],
        };
        let output_rotation = |output: &ModelOutput| match *output {
            ModelOutput::Output => along_output,
            ModelOutput::GradInput => along_input,
            ModelOutput::Parameter(of) | ModelOutput::Gradient(of) | ModelOutput::Moment(_, of) => parameters[of],
        };
        let inputs: Vec<RotationAxis> = self.pass_inputs(spec).iter().map(input_rotation).collect();
        SetRotation::new(parts, &inputs, &self.pass_outputs(spec).iter().map(output_rotation).collect::<Vec<_>>())
    }
}

/// Greatest common divisor.
fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
