//! By CUDA's libraries and kernels of ours: in bf16 under recipes, whose operands are made codes of before they are multiplied.

use super::native_layer::{Back, NativeLayer};
use super::{Given, Made, TrainedLinear, optimizers};
use crate::native::{NativePass, Set};
use crate::operators::native_plans;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError, parts};
use calorimeter_kernels::native::{
    Buffer, LinearShape, Machine, NativeError, OptimizerRule, OptimizerStep, TrainedProduct,
};
use std::sync::Arc;

impl NativeOpen for TrainedLinear {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let (pass, shape) = (*self, native_plans::shape(spec));
        let LinearShape { k, n, .. } = shape;
        let wanted = pass.products();
        let mut layer = if wanted.is_empty() { None } else { Some(NativeLayer::new(&machine, spec, shape, wanted)?) };
        let update = pass.update(spec, &machine, n * k)?;
        let kernels = [layer.as_ref().map(NativeLayer::algorithm), update.as_ref().map(|it| it.algorithm().to_owned())];
        // The gradient of the weight, where a step makes it for itself.
        let makes_it = layer.is_some() && update.is_some();
        let between = if makes_it { vec![n * k * spec.dtype().width()] } else { Vec::new() };
        let kernels = kernels.into_iter().flatten().collect();
        let device = machine.clone();
        let begin = move |part| parts::begin(part, || Ok(device.synchronize()?));
        let enqueue = move |Set { inputs, between, outputs }: &mut Set| {
            let at = |wanted: Given| pass.given().iter().position(|given| *given == wanted).map(|at| &inputs[at]);
            let get = |wanted| at(wanted).expect("a pass is given what it needs");
            let mut outputs = outputs.iter_mut();
            if let Some(layer) = &mut layer {
                let (input, weight) = (get(Given::Input), get(Given::Weight));
                if pass.results().contains(&Made::Output) {
                    begin(parts::FORWARD);
                    layer.output(input, weight, None, outputs.next().expect(DECLARED))?;
                }
                if let Some(gradient) = at(Given::GradOutput) {
                    let of_input = outputs.next().expect(DECLARED);
                    let of_weight = between.first_mut().or_else(|| outputs.next()).expect(DECLARED);
                    begin(parts::BACKWARD);
                    layer.back(gradient, input, weight, Back { input: (of_input, None), weight: of_weight })?;
                }
            }
            let Some(update) = &update else { return Ok(()) };
            begin(parts::OPTIMIZER);
            let gradient = at(Given::GradWeight).or(between.first());
            let read = [at(Given::Weight), gradient, at(Given::Moment(0)), at(Given::Moment(1))];
            let read: Vec<&Buffer> = read.into_iter().flatten().collect();
            update.enqueue(&read, &mut outputs.collect::<Vec<_>>())
        };
        NativePass::steps(kernels, between, enqueue).open(self, spec, inputs, machine, sets)
    }
}

const DECLARED: &str = "every result of a pass is declared";

impl TrainedLinear {
    /// What changes so many weights, if something does.
    pub fn update(
        self,
        spec: &Spec,
        machine: &Arc<Machine>,
        weights: usize,
    ) -> Result<Option<OptimizerStep>, NativeError> {
        let learning_rate = optimizers::LEARNING_RATE;
        let rule = match self {
            Self::Adamw | Self::AdamwStep => OptimizerRule::Adamw(optimizers::settings()),
            Self::Sgd | Self::SgdStep => OptimizerRule::Descent { learning_rate },
            Self::Forward | Self::Backward | Self::ForwardBackward => return Ok(None),
        };
        OptimizerStep::new(machine, spec.dtype(), rule, weights).map(Some)
    }

    /// What a layer multiplies in it.
    pub fn products(self) -> &'static [TrainedProduct] {
        use TrainedProduct::{GradInput, GradWeight, Output};
        match self {
            Self::Forward => &[Output],
            Self::Backward => &[GradInput, GradWeight],
            Self::ForwardBackward | Self::AdamwStep | Self::SgdStep => &[Output, GradInput, GradWeight],
            Self::Adamw | Self::Sgd => &[],
        }
    }
}
