//! By CUDA's libraries and kernels of ours.

use super::LnLinear;
use crate::ZooError;
use crate::operators::native_plans;
use crate::operators::trained_linear::native_layer::{Back, NativeLayer};
use crate::operators::trained_model::native::{From, Gradients, NativeArchitecture, Plans, Ways};
use calorimeter_kernels::native::{
    Activation, Buffer, Elementwise, ElementwiseFunction, LayerNorm, LayerNormGradient, LinearShape, NativeError,
};

/// The steps of both ways.
pub struct Steps {
    norm: LayerNorm,
    layer: NativeLayer,
    activation: Activation,
    slope: Elementwise,
    norm_gradient: LayerNormGradient,
    /// Bytes of the normalised rows and of what goes into the activation, which are kept.
    kept: [usize; 2],
    /// The gradients of both.
    of_kept: [Buffer; 2],
}

impl NativeArchitecture for LnLinear {
    type Ways = Steps;

    fn ways(&self, plans: &Plans<'_>) -> Result<Steps, ZooError> {
        let (Plans { machine, spec, .. }, Self(activation)) = (plans, *self);
        let (LinearShape { m, k, n }, kind) = (native_plans::shape(spec), spec.dtype());
        Ok(Steps {
            norm: LayerNorm::new(machine, kind, m, k)?,
            layer: plans.layer(m, k, n)?,
            activation: Activation::new(machine, kind, activation, m * n)?,
            slope: Elementwise::new(machine, kind, ElementwiseFunction::Gradient(activation), m * n)?,
            norm_gradient: LayerNormGradient::new(machine, kind, m, k)?,
            kept: [m * k, m * n].map(|numbers| plans.bytes(numbers)),
            of_kept: [plans.between(m * k)?, plans.between(m * n)?],
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
        kept: &mut [Buffer],
        output: &mut Buffer,
    ) -> Result<(), NativeError> {
        let [normalised, before] = kept else { unreachable!("two buffers are kept") };
        self.norm.enqueue(input, normalised)?;
        self.layer.output(normalised, parameters[0], None, before)?;
        self.activation.enqueue(before, output)
    }

    fn backward(
        &mut self,
        From { input, parameters }: &From<'_>,
        kept: &[Buffer],
        gradient: &Buffer,
        mut made: Gradients<'_>,
    ) -> Result<(), NativeError> {
        let Self { layer, slope, norm_gradient, of_kept: [of_normalised, of_before], .. } = self;
        let [normalised, before] = kept else { unreachable!("two buffers are kept") };
        slope.enqueue(&[before, gradient], of_before)?;
        let back = Back { input: (of_normalised, None), weight: made.parameters[0] };
        layer.back(of_before, normalised, parameters[0], back)?;
        norm_gradient.enqueue(input, of_normalised, made.input)
    }

    fn kernels(&self) -> Vec<String> {
        let Self { norm, layer, activation, slope, norm_gradient, .. } = self;
        let texts = [norm.algorithm(), &layer.algorithm(), activation.algorithm(), slope.algorithm()];
        texts.into_iter().chain([norm_gradient.algorithm()]).map(str::to_owned).collect()
    }
}
