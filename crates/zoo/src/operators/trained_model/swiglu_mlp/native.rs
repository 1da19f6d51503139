//! Forward and backward pass of `swiglu_mlp` on CUDA.

use super::SwigluMlp;
use super::parameters::{DOWN, GATE, UP};
use crate::ZooError;
use crate::operators::native_plans;
use crate::operators::trained_linear::native_layer::{Back, NativeLayer};
use crate::operators::trained_model::native::{From, Gradients, NativeArchitecture, PLANNED, Plans, Ways};
use calorimeter_kernels::native::{
    Buffer, Elementwise, ElementwiseFunction, LinearShape, NativeError, SiluMulGradient,
};

/// Planned passes.
pub struct Steps {
    gate: NativeLayer,
    up: NativeLayer,
    down: NativeLayer,
    /// Bytes of each saved tensor: gate, up and hidden layer.
    kept: usize,
    /// Kernel for silu(gate) * up.
    gated: Option<Elementwise>,
    back: Option<WayBack>,
}

struct WayBack {
    gated: SiluMulGradient,
    /// Gradients of the saved tensors.
    of_kept: [Buffer; 3],
    /// Part of the input gradient that comes from the gate.
    through_gate: Buffer,
}

impl NativeArchitecture for SwigluMlp {
    type Ways = Steps;

    fn ways(&self, plans: &Plans<'_>) -> Result<Steps, ZooError> {
        let Plans { machine, spec, .. } = plans;
        let (LinearShape { m, k, n }, kind) = (native_plans::shape(spec), spec.dtype());
        let silu_mul = || Ok(Elementwise::new(machine, kind, ElementwiseFunction::SiluMul, m * n)?);
        let backward = || {
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
            gated: plans.there(silu_mul)?,
            back: plans.back(backward)?,
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
        saved: &mut [Buffer],
        output: &mut Buffer,
    ) -> Result<(), NativeError> {
        let [gate, up, hidden] = saved else { unreachable!("three saved buffers") };
        self.gate.output(input, parameters[GATE], None, gate)?;
        self.up.output(input, parameters[UP], None, up)?;
        self.gated.as_ref().expect(PLANNED).enqueue(&[gate, up], hidden)?;
        self.down.output(hidden, parameters[DOWN], None, output)
    }

    fn backward(
        &mut self,
        From { input, parameters }: &From<'_>,
        saved: &[Buffer],
        gradient: &Buffer,
        gradients: Gradients<'_>,
    ) -> Result<(), NativeError> {
        let WayBack { gated, of_kept, through_gate } = self.back.as_mut().expect(PLANNED);
        let [gate, up, hidden] = saved else { unreachable!("three saved buffers") };
        let [grad_gate, grad_up, grad_hidden] = of_kept;
        let Ok([grad_gate_weight, grad_up_weight, grad_down_weight]) =
            <[&mut Buffer; 3]>::try_from(gradients.parameters)
        else {
            unreachable!("three parameters are declared")
        };
        let layer_gradients = Back { input: (grad_hidden, None), weight: grad_down_weight };
        self.down.back(gradient, hidden, parameters[DOWN], layer_gradients)?;
        gated.enqueue([gate, up, grad_hidden], grad_gate, grad_up)?;
        let layer_gradients = Back { input: (through_gate, None), weight: grad_gate_weight };
        self.gate.back(grad_gate, input, parameters[GATE], layer_gradients)?;
        let layer_gradients = Back { input: (gradients.input, Some(through_gate)), weight: grad_up_weight };
        self.up.back(grad_up, input, parameters[UP], layer_gradients)
    }

    fn kernels(&self) -> Vec<String> {
        let layers = [&self.gate, &self.up, &self.down].map(NativeLayer::algorithm);
        let forward = self.gated.iter().map(|kernel| kernel.algorithm().to_owned());
        let backward = self.back.iter().map(|backward| backward.gated.algorithm().to_owned());
        layers.into_iter().chain(forward).chain(backward).collect()
    }
}
