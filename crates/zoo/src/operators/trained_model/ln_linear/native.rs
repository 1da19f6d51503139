//! Forward and backward pass of `ln_linear_<activation>` on CUDA.

use super::LnLinear;
use crate::ZooError;
use crate::operators::native_plans;
use crate::operators::trained_linear::native_layer::{Back, NativeLayer};
use crate::operators::trained_model::native::{From, Gradients, NativeArchitecture, PLANNED, Plans, Ways};
use calorimeter_kernels::native::{
    Activation, Buffer, Elementwise, ElementwiseFunction, LayerNorm, LayerNormGradient, LinearShape, NativeError,
};

/// Planned passes.
pub struct Steps {
    layer: NativeLayer,
    /// Bytes of the saved tensors: normalized rows and the input of the activation.
    kept: [usize; 2],
    there: Option<WayThere>,
    back: Option<WayBack>,
}

struct WayThere {
    norm: LayerNorm,
    activation: Activation,
}

struct WayBack {
    slope: Elementwise,
    norm: LayerNormGradient,
    /// Gradients of the saved tensors.
    of_kept: [Buffer; 2],
}

impl NativeArchitecture for LnLinear {
    type Ways = Steps;

    fn ways(&self, plans: &Plans<'_>) -> Result<Steps, ZooError> {
        let (Plans { machine, spec, .. }, Self(activation)) = (plans, *self);
        let (LinearShape { m, k, n }, kind) = (native_plans::shape(spec), spec.dtype());
        let forward = || {
            let norm = LayerNorm::new(machine, kind, m, k)?;
            Ok(WayThere { norm, activation: Activation::new(machine, kind, activation, m * n)? })
        };
        let backward = || {
            Ok(WayBack {
                slope: Elementwise::new(machine, kind, ElementwiseFunction::Gradient(activation), m * n)?,
                norm: LayerNormGradient::new(machine, kind, m, k)?,
                of_kept: [plans.between(m * k)?, plans.between(m * n)?],
            })
        };
        Ok(Steps {
            layer: plans.layer(m, k, n)?,
            kept: [m * k, m * n].map(|elements| plans.bytes(elements)),
            there: plans.there(forward)?,
            back: plans.back(backward)?,
        })
    }
}

impl Ways for Steps {
    fn kept(&self) -> Vec<usize> {
        self.kept.into()
    }

    fn forward(
        &mut self,
        From { input, parameters }: &From<'_>,
        saved: &mut [Buffer],
        output: &mut Buffer,
    ) -> Result<(), NativeError> {
        let WayThere { norm, activation } = self.there.as_ref().expect(PLANNED);
        let [normalized, before] = saved else { unreachable!("two saved buffers") };
        norm.enqueue(input, normalized)?;
        self.layer.output(normalized, parameters[0], None, before)?;
        activation.enqueue(before, output)
    }

    fn backward(
        &mut self,
        From { input, parameters }: &From<'_>,
        saved: &[Buffer],
        gradient: &Buffer,
        mut gradients: Gradients<'_>,
    ) -> Result<(), NativeError> {
        let WayBack { slope, norm, of_kept: [grad_normalized, grad_before] } = self.back.as_mut().expect(PLANNED);
        let [normalized, before] = saved else { unreachable!("two saved buffers") };
        slope.enqueue(&[before, gradient], grad_before)?;
        let layer_gradients = Back { input: (grad_normalized, None), weight: gradients.parameters[0] };
        self.layer.back(grad_before, normalized, parameters[0], layer_gradients)?;
        norm.enqueue(input, grad_normalized, gradients.input)
    }

    fn kernels(&self) -> Vec<String> {
        let forward =
            self.there.iter().flat_map(|WayThere { norm, activation }| [norm.algorithm(), activation.algorithm()]);
        let backward = self.back.iter().flat_map(|WayBack { slope, norm, .. }| [slope.algorithm(), norm.algorithm()]);
        [self.layer.algorithm()].into_iter().chain(forward.chain(backward).map(str::to_owned)).collect()
    }
}
