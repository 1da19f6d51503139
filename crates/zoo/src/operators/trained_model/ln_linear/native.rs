//! By CUDA's libraries and kernels of ours.

use super::LnLinear;
use crate::ZooError;
use crate::operators::native_plans;
use crate::operators::trained_linear::native_layer::{Back, NativeLayer};
use crate::operators::trained_model::native::{From, Gradients, NativeArchitecture, PLANNED, Plans, Ways};
use calorimeter_kernels::native::{
    Activation, Buffer, Elementwise, ElementwiseFunction, LayerNorm, LayerNormGradient, LinearShape, NativeError,
};

/// The steps of both ways.
pub struct Steps {
    layer: NativeLayer,
    /// Bytes of the normalized rows and of what goes into the activation, which are kept.
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
    /// The gradients of what is kept.
    of_kept: [Buffer; 2],
}

impl NativeArchitecture for LnLinear {
    type Ways = Steps;

    fn ways(&self, plans: &Plans<'_>) -> Result<Steps, ZooError> {
        let (Plans { machine, spec, .. }, Self(activation)) = (plans, *self);
        let (LinearShape { m, k, n }, kind) = (native_plans::shape(spec), spec.dtype());
        let there = || {
            let norm = LayerNorm::new(machine, kind, m, k)?;
            Ok(WayThere { norm, activation: Activation::new(machine, kind, activation, m * n)? })
        };
        let back = || {
            Ok(WayBack {
                slope: Elementwise::new(machine, kind, ElementwiseFunction::Gradient(activation), m * n)?,
                norm: LayerNormGradient::new(machine, kind, m, k)?,
                of_kept: [plans.between(m * k)?, plans.between(m * n)?],
            })
        };
        Ok(Steps {
            layer: plans.layer(m, k, n)?,
            kept: [m * k, m * n].map(|numbers| plans.bytes(numbers)),
            there: plans.there(there)?,
            back: plans.back(back)?,
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
        let WayThere { norm, activation } = self.there.as_ref().expect(PLANNED);
        let [normalized, before] = kept else { unreachable!("two buffers are kept") };
        norm.enqueue(input, normalized)?;
        self.layer.output(normalized, parameters[0], None, before)?;
        activation.enqueue(before, output)
    }

    fn backward(
        &mut self,
        From { input, parameters }: &From<'_>,
        kept: &[Buffer],
        gradient: &Buffer,
        mut made: Gradients<'_>,
    ) -> Result<(), NativeError> {
        let WayBack { slope, norm, of_kept: [of_normalized, of_before] } = self.back.as_mut().expect(PLANNED);
        let [normalized, before] = kept else { unreachable!("two buffers are kept") };
        slope.enqueue(&[before, gradient], of_before)?;
        let back = Back { input: (of_normalized, None), weight: made.parameters[0] };
        self.layer.back(of_before, normalized, parameters[0], back)?;
        norm.enqueue(input, of_normalized, made.input)
    }

    fn kernels(&self) -> Vec<String> {
        let there =
            self.there.iter().flat_map(|WayThere { norm, activation }| [norm.algorithm(), activation.algorithm()]);
        let back = self.back.iter().flat_map(|WayBack { slope, norm, .. }| [slope.algorithm(), norm.algorithm()]);
        [self.layer.algorithm()].into_iter().chain(there.chain(back).map(str::to_owned)).collect()
    }
}
