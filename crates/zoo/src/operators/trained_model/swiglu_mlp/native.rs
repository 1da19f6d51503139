//! By CUDA's libraries and kernels of ours.

use super::SwigluMlp;
use super::parameters::{DOWN, GATE, UP};
use crate::ZooError;
use crate::operators::native_plans;
use crate::operators::trained_linear::native_layer::{Back, NativeLayer};
use crate::operators::trained_model::native::{From, Gradients, NativeArchitecture, Plans, Ways};
use calorimeter_kernels::native::{
    Buffer, Elementwise, ElementwiseFunction, LinearShape, NativeError, SiluMulGradient,
};

/// The steps of both ways.
pub struct Steps {
    gate: NativeLayer,
    up: NativeLayer,
    gated: Elementwise,
    down: NativeLayer,
    gated_gradient: SiluMulGradient,
    /// Bytes of the gate, of what it lets through and of the hidden layer, each of which is kept.
    kept: usize,
    /// The gradients of the three.
    of_kept: [Buffer; 3],
    /// What comes back of the input through the gate.
    through_gate: Buffer,
}

impl NativeArchitecture for SwigluMlp {
    type Ways = Steps;

    fn ways(&self, plans: &Plans<'_>) -> Result<Steps, ZooError> {
        let Plans { machine, spec, .. } = plans;
        let (LinearShape { m, k, n }, kind) = (native_plans::shape(spec), spec.dtype());
        Ok(Steps {
            gate: plans.layer(m, k, n)?,
            up: plans.layer(m, k, n)?,
            gated: Elementwise::new(machine, kind, ElementwiseFunction::SiluMul, m * n)?,
            down: plans.layer(m, n, k)?,
            gated_gradient: SiluMulGradient::new(machine, kind, m * n)?,
            kept: plans.bytes(m * n),
            of_kept: [plans.between(m * n)?, plans.between(m * n)?, plans.between(m * n)?],
            through_gate: plans.between(m * k)?,
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
        self.gated.enqueue(&[gate, up], hidden)?;
        self.down.output(hidden, parameters[DOWN], None, output)
    }

    fn backward(
        &mut self,
        From { input, parameters }: &From<'_>,
        kept: &[Buffer],
        gradient: &Buffer,
        made: Gradients<'_>,
    ) -> Result<(), NativeError> {
        let Self { gate: of_gate, up: of_up, down, gated_gradient, of_kept, through_gate, .. } = self;
        let [gate, up, hidden] = kept else { unreachable!("three buffers are kept") };
        let [gate_gradient, up_gradient, hidden_gradient] = of_kept;
        let Ok([weight_of_gate, weight_of_up, weight_of_down]) = <[&mut Buffer; 3]>::try_from(made.parameters) else {
            unreachable!("three parameters are declared")
        };
        let back = Back { input: (hidden_gradient, None), weight: weight_of_down };
        down.back(gradient, hidden, parameters[DOWN], back)?;
        gated_gradient.enqueue([gate, up, hidden_gradient], gate_gradient, up_gradient)?;
        let back = Back { input: (through_gate, None), weight: weight_of_gate };
        of_gate.back(gate_gradient, input, parameters[GATE], back)?;
        let back = Back { input: (made.input, Some(through_gate)), weight: weight_of_up };
        of_up.back(up_gradient, input, parameters[UP], back)
    }

    fn kernels(&self) -> Vec<String> {
        let Self { gate, up, gated, down, gated_gradient, .. } = self;
        let (gated, gradient) = (gated.algorithm().to_owned(), gated_gradient.algorithm().to_owned());
        vec![gate.algorithm(), up.algorithm(), gated, down.algorithm(), gradient]
    }
}
