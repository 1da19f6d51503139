//! Training passes on CUDA: float8 kernels for bf16 under a training recipe, otherwise cuBLASLt; and the optimizer
//! kernel.

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
        let matmuls = pass.products();
        let mut layer = if matmuls.is_empty() { None } else { Some(NativeLayer::new(&machine, spec, shape, matmuls)?) };
        let update = pass.update(spec, &machine, n * k)?;
        let kernels = [layer.as_ref().map(NativeLayer::algorithm), update.as_ref().map(|it| it.algorithm().to_owned())];
        // Weight gradient of a whole step: an intermediate, not an output.
        let has_intermediate = layer.is_some() && update.is_some();
        let between = if has_intermediate { vec![n * k * spec.dtype().width()] } else { Vec::new() };
        let kernels = kernels.into_iter().flatten().collect();
        let device = machine.clone();
        let begin = move |part| parts::begin(part, || Ok(device.synchronize()?));
        let enqueue = move |Set { inputs, between, outputs }: &mut Set| {
            let find = |input: Given| pass.given().iter().position(|other| *other == input).map(|index| &inputs[index]);
            let get = |input| find(input).expect("the pass has this input");
            let mut outputs = outputs.iter_mut();
            if let Some(layer) = &mut layer {
                let (input, weight) = (get(Given::Input), get(Given::Weight));
                if pass.results().contains(&Made::Output) {
                    begin(parts::FORWARD);
                    layer.output(input, weight, None, outputs.next().expect(DECLARED))?;
                }
                if let Some(gradient) = find(Given::GradOutput) {
                    let grad_input = outputs.next().expect(DECLARED);
                    let grad_weight = between.first_mut().or_else(|| outputs.next()).expect(DECLARED);
                    begin(parts::BACKWARD);
                    layer.back(gradient, input, weight, Back { input: (grad_input, None), weight: grad_weight })?;
                }
            }
            let Some(update) = &update else { return Ok(()) };
            begin(parts::OPTIMIZER);
            let gradient = find(Given::GradWeight).or(between.first());
            let read = [find(Given::Weight), gradient, find(Given::Moment(0)), find(Given::Moment(1))];
            let read: Vec<&Buffer> = read.into_iter().flatten().collect();
            update.enqueue(&read, &mut outputs.collect::<Vec<_>>())
        };
        NativePass::steps(kernels, between, enqueue).open(self, spec, inputs, machine, sets)
    }
}

const DECLARED: &str = "every output of the pass is declared";

impl TrainedLinear {
    /// Plans the optimizer step for `weights` weights; `None` for passes without an optimizer.
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

    /// Matmuls of the pass.
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
