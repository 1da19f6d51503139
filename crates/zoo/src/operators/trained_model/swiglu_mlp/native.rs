//! Forward and backward pass of `swiglu_mlp` on CUDA.

use super::TrainedSwigluMlp;
use super::parameters::{DOWN, GATE, UP};
use crate::ZooError;
use crate::operators::native_plans;
use crate::operators::trained_linear::native_layer::{LayerGradients, NativeLayer};
use crate::operators::trained_model::native::{
    GradientBuffers, NativeArchitecture, NativePasses, PASS_IS_PLANNED, PassOperands, PassPlanner,
};
use calorimeter_kernels::native::{CudaKernel, DeviceBuffer, ElementwiseFunction, LinearShape, NativeError};

/// Planned passes.
pub(crate) struct SwigluMlpPasses {
    gate: NativeLayer,
    up: NativeLayer,
    down: NativeLayer,
    /// Bytes of each saved tensor: gate, up and hidden layer.
    saved_bytes: usize,
    /// Kernel for silu(gate) * up.
    silu_mul: Option<CudaKernel>,
    backward: Option<SwigluMlpBackward>,
}

struct SwigluMlpBackward {
    silu_mul: CudaKernel,
    /// Gradients of the saved tensors.
    saved_gradients: [DeviceBuffer; 3],
    /// Part of the input gradient that comes from the gate.
    gate_input_gradient: DeviceBuffer,
}

impl NativeArchitecture for TrainedSwigluMlp {
    type ModelPasses = SwigluMlpPasses;

    fn plan_passes(&self, plans: &PassPlanner<'_>) -> Result<SwigluMlpPasses, ZooError> {
        let PassPlanner { machine, spec, .. } = plans;
        let (LinearShape { m, k, n }, kind) = (native_plans::shape(spec), spec.dtype());
        let silu_mul = || Ok(CudaKernel::elementwise(machine, kind, ElementwiseFunction::SiluMul, m * n)?);
        let backward = || {
            Ok(SwigluMlpBackward {
                silu_mul: CudaKernel::silu_mul_gradient(machine, kind, m * n)?,
                saved_gradients: [plans.scratch(m * n)?, plans.scratch(m * n)?, plans.scratch(m * n)?],
                gate_input_gradient: plans.scratch(m * k)?,
            })
        };
        Ok(SwigluMlpPasses {
            gate: plans.layer(m, k, n)?,
            up: plans.layer(m, k, n)?,
            down: plans.layer(m, n, k)?,
            saved_bytes: plans.bytes(m * n),
            silu_mul: plans.forward_plan(silu_mul)?,
            backward: plans.backward_plan(backward)?,
        })
    }
}

impl NativePasses for SwigluMlpPasses {
    fn saved_bytes(&self) -> Vec<usize> {
        vec![self.saved_bytes; 3]
    }

    fn forward(
        &mut self,
        PassOperands { input, parameters }: &PassOperands<'_>,
        saved: &mut [DeviceBuffer],
        output: &mut DeviceBuffer,
    ) -> Result<(), NativeError> {
        let [gate, up, hidden] = saved else { unreachable!("three saved buffers") };
        self.gate.forward(input, parameters[GATE], None, gate)?;
        self.up.forward(input, parameters[UP], None, up)?;
        self.silu_mul.as_ref().expect(PASS_IS_PLANNED).enqueue([&*gate, &*up], [&mut *hidden])?;
        self.down.forward(hidden, parameters[DOWN], None, output)
    }

    fn backward(
        &mut self,
        PassOperands { input, parameters }: &PassOperands<'_>,
        saved: &[DeviceBuffer],
        gradient: &DeviceBuffer,
        gradients: GradientBuffers<'_>,
    ) -> Result<(), NativeError> {
        let SwigluMlpBackward { silu_mul: gated, saved_gradients: of_kept, gate_input_gradient: through_gate } =
            self.backward.as_mut().expect(PASS_IS_PLANNED);
        let [gate, up, hidden] = saved else { unreachable!("three saved buffers") };
        let [grad_gate, grad_up, grad_hidden] = of_kept;
        let Ok([grad_gate_weight, grad_up_weight, grad_down_weight]) =
            <[&mut DeviceBuffer; 3]>::try_from(gradients.parameters)
        else {
            unreachable!("three parameters are declared")
        };
        let layer_gradients = LayerGradients { input: (grad_hidden, None), weight: grad_down_weight };
        self.down.backward(gradient, hidden, parameters[DOWN], layer_gradients)?;
        gated.enqueue([gate, up, grad_hidden], [&mut *grad_gate, &mut *grad_up])?;
        let layer_gradients = LayerGradients { input: (through_gate, None), weight: grad_gate_weight };
        self.gate.backward(grad_gate, input, parameters[GATE], layer_gradients)?;
        let layer_gradients = LayerGradients { input: (gradients.input, Some(through_gate)), weight: grad_up_weight };
        self.up.backward(grad_up, input, parameters[UP], layer_gradients)
    }

    fn kernels(&self) -> Vec<String> {
        let layers = [&self.gate, &self.up, &self.down].map(NativeLayer::algorithm);
        let forward = self.silu_mul.iter().map(CudaKernel::algorithm);
        let backward = self.backward.iter().map(|backward| backward.silu_mul.algorithm());
        layers.into_iter().chain(forward).chain(backward).collect()
    }
}
