//! Forward and backward pass of `ln_linear_<activation>` on CUDA.

use super::TrainedLnLinear;
use crate::ZooError;
use crate::operators::native_plans;
use crate::operators::trained_linear::native_layer::{LayerGradients, NativeLayer};
use crate::operators::trained_model::native::{
    GradientBuffers, NativeArchitecture, NativePasses, PASS_IS_PLANNED, PassOperands, PassPlanner,
};
use calorimeter_kernels::native::{CudaKernel, DeviceBuffer, ElementwiseFunction, LinearShape, NativeError};

/// Planned passes.
pub(crate) struct LnLinearPasses {
    layer: NativeLayer,
    /// Bytes of the saved tensors: normalized rows and the input of the activation.
    saved_bytes: [usize; 2],
    forward: Option<LnLinearForward>,
    backward: Option<LnLinearBackward>,
}

struct LnLinearForward {
    norm: CudaKernel,
    activation: CudaKernel,
}

struct LnLinearBackward {
    slope: CudaKernel,
    norm: CudaKernel,
    /// Gradients of the saved tensors.
    saved_gradients: [DeviceBuffer; 2],
}

impl NativeArchitecture for TrainedLnLinear {
    type ModelPasses = LnLinearPasses;

    fn plan_passes(&self, plans: &PassPlanner<'_>) -> Result<LnLinearPasses, ZooError> {
        let (PassPlanner { machine, spec, .. }, Self(activation)) = (plans, *self);
        let (LinearShape { m, k, n }, kind) = (native_plans::shape(spec), spec.dtype());
        let forward = || {
            let norm = CudaKernel::layer_norm(machine, kind, m, k)?;
            Ok(LnLinearForward { norm, activation: CudaKernel::activation(machine, kind, activation, m * n)? })
        };
        let backward = || {
            Ok(LnLinearBackward {
                slope: CudaKernel::elementwise(machine, kind, ElementwiseFunction::Gradient(activation), m * n)?,
                norm: CudaKernel::layer_norm_gradient(machine, kind, m, k)?,
                saved_gradients: [plans.scratch(m * k)?, plans.scratch(m * n)?],
            })
        };
        Ok(LnLinearPasses {
            layer: plans.layer(m, k, n)?,
            saved_bytes: [m * k, m * n].map(|elements| plans.bytes(elements)),
            forward: plans.forward_plan(forward)?,
            backward: plans.backward_plan(backward)?,
        })
    }
}

impl NativePasses for LnLinearPasses {
    fn saved_bytes(&self) -> Vec<usize> {
        self.saved_bytes.into()
    }

    fn forward(
        &mut self,
        PassOperands { input, parameters }: &PassOperands<'_>,
        saved: &mut [DeviceBuffer],
        output: &mut DeviceBuffer,
    ) -> Result<(), NativeError> {
        let LnLinearForward { norm, activation } = self.forward.as_ref().expect(PASS_IS_PLANNED);
        let [normalized, before] = saved else { unreachable!("two saved buffers") };
        norm.enqueue([*input], [&mut *normalized])?;
        self.layer.forward(normalized, parameters[0], None, before)?;
        activation.enqueue([&*before], [output])
    }

    fn backward(
        &mut self,
        PassOperands { input, parameters }: &PassOperands<'_>,
        saved: &[DeviceBuffer],
        gradient: &DeviceBuffer,
        mut gradients: GradientBuffers<'_>,
    ) -> Result<(), NativeError> {
        let LnLinearBackward { slope, norm, saved_gradients: [grad_normalized, grad_before] } =
            self.backward.as_mut().expect(PASS_IS_PLANNED);
        let [normalized, before] = saved else { unreachable!("two saved buffers") };
        slope.enqueue([before, gradient], [&mut *grad_before])?;
        let layer_gradients = LayerGradients { input: (grad_normalized, None), weight: gradients.parameters[0] };
        self.layer.backward(grad_before, normalized, parameters[0], layer_gradients)?;
        norm.enqueue([*input, grad_normalized], [gradients.input])
    }

    fn kernels(&self) -> Vec<String> {
        let forward = self
            .forward
            .iter()
            .flat_map(|LnLinearForward { norm, activation }| [norm.algorithm(), activation.algorithm()]);
        let backward =
            self.backward.iter().flat_map(|LnLinearBackward { slope, norm, .. }| [slope.algorithm(), norm.algorithm()]);
        [self.layer.algorithm()].into_iter().chain(forward).chain(backward).collect()
    }
}
