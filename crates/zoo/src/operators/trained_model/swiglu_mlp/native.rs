//! By CUDA's libraries and kernels of ours.

use super::SwigluMlp;
use super::parameters::{DOWN, GATE, UP};
use crate::ZooError;
use crate::operators::native_plans;
use crate::operators::trained_linear::native_layer::{Back, NativeLayer};
use crate::operators::trained_model::native::{From, Gradients, NativeArchitecture, PLANNED, Plans, Ways};
use calorimeter_kernels::native::{
    Buffer, Elementwise, ElementwiseFunction, LinearShape, NativeError, SiluMulGradient,
};

/// The steps of both ways.
pub struct Steps {
    gate: NativeLayer,
    up: NativeLayer,
    down: NativeLayer,
    /// Bytes of the gate, of what it lets through and of the hidden layer, each of which is kept.
    kept: usize,
    /// What the gate lets through of the other.
    gated: Option<Elementwise>,
    back: Option<WayBack>,
}

struct WayBack {
    gated: SiluMulGradient,
    /// The gradients of what is kept.
    of_kept: [Buffer; 3],
    /// What comes back of the input through the gate.
    through_gate: Buffer,
}

impl NativeArchitecture for SwigluMlp {
    type Ways = Steps;

    fn ways(&self, plans: &Plans<'_>) -> Result<Steps, ZooError> {
        let Plans { machine, spec, .. } = plans;
        let (LinearShape { m, k, n }, kind) = (native_plans::shape(spec), spec.dtype());
        let gated = || Ok(Elementwise::new(machine, kind, ElementwiseFunction::SiluMul, m * n)?);
        let back = || {
            Ok(WayBack {
                gated: SiluMulGradient::new(machine, kind, m * n)?,
                of_kept: [plans.between(m * n)?, plans.between(m * n)?, plans.between(m * n)?],
                through_gate: plans.between(m * k)?,
            })
        };
        Ok(Steps {
            gate: plans.layer(m, k, n)?,
            up: plans.layer(m, k, n)?,
            down: plans.layer(m, n, k)?,
            kept: plans.bytes(m * n),
            gated: plans.there(gated)?,
            back: plans.back(back)?,
        })
    }
}

impl Ways for Steps {
    fn kept(&self) -> Vec<usize> {
        vec![self.kept; 3]
    }

    fn forward(
        &mut self,
        From { input, parameters }: &From<'_>,
        kept: &mut [Buffer],
        output: &mut Buffer,
    ) -> Result<(), NativeError> {
        let [gate, up, hidden] = kept else { unreachable!("three buffers are kept") };
        self.gate.output(input, parameters[GATE], None, gate)?;
        self.up.output(input, parameters[UP], None, up)?;
        self.gated.as_ref().expect(PLANNED).enqueue(&[gate, up], hidden)?;
        self.down.output(hidden, parameters[DOWN], None, output)
    }

    fn backward(
        &mut self,
        From { input, parameters }: &From<'_>,
        kept: &[Buffer],
        gradient: &Buffer,
        made: Gradients<'_>,
    ) -> Result<(), NativeError> {
        let WayBack { gated, of_kept, through_gate } = self.back.as_mut().expect(PLANNED);
        let [gate, up, hidden] = kept else { unreachable!("three buffers are kept") };
        let [of_gate, of_up, of_hidden] = of_kept;
        let Ok([weight_of_gate, weight_of_up, weight_of_down]) = <[&mut Buffer; 3]>::try_from(made.parameters) else {
            unreachable!("three parameters are declared")
        };
        let back = Back { input: (of_hidden, None), weight: weight_of_down };
        self.down.back(gradient, hidden, parameters[DOWN], back)?;
        gated.enqueue([gate, up, of_hidden], of_gate, of_up)?;
        let back = Back { input: (through_gate, None), weight: weight_of_gate };
        self.gate.back(of_gate, input, parameters[GATE], back)?;
        let back = Back { input: (made.input, Some(through_gate)), weight: weight_of_up };
        self.up.back(of_up, input, parameters[UP], back)
    }

    fn kernels(&self) -> Vec<String> {
        let layers = [&self.gate, &self.up, &self.down].map(NativeLayer::algorithm);
        let there = self.gated.iter().map(|gated| gated.algorithm().to_owned());
        let back = self.back.iter().map(|back| back.gated.algorithm().to_owned());
        layers.into_iter().chain(there).chain(back).collect()
    }
}
