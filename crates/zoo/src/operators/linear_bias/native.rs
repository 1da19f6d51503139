//! Linear layer on CUDA: cuBLASLt with a bias epilogue, then an activation kernel if the epilogue has none.

use super::LinearBias;
use crate::native::{BufferSet, NativePass};
use crate::operators::native_plans;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::CudaDevice;
use std::sync::Arc;

impl NativePlanner for LinearBias {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        use calorimeter_kernels::native::{CudaKernel, Epilogue, LinearPlan, LinearShape, LinearSpec};
        let (kind, shape) = (spec.dtype(), native_plans::shape(spec));
        // cuBLASLt has a GELU epilogue, but only the tanh approximation.
        let (epilogue, activation) = match self {
            Self::Plain => (Epilogue::Bias, None),
            Self::Relu => (Epilogue::BiasRelu, None),
            Self::Gelu | Self::Silu => (Epilogue::Bias, self.activation()),
        };
        let linear = LinearPlan::with_spec(device, LinearSpec { epilogue, ..LinearSpec::plain(kind) }, shape)?;
        let LinearShape { m, n, .. } = shape;
        let activation =
            activation.map(|activation| CudaKernel::activation(device, kind, activation, m * n)).transpose()?;
        let algorithms = activation.iter().map(CudaKernel::algorithm);
        Ok(NativePass::new(
            [linear.algorithm()].into_iter().chain(algorithms).collect(),
            Vec::new(),
            move |BufferSet { inputs, outputs, .. }| {
                linear.enqueue_with_bias(&inputs[0], &inputs[1], &inputs[2], &mut outputs[0])?;
                activation.iter().try_for_each(|activation| activation.enqueue_in_place(&mut outputs[0]))
            },
        ))
    }
}
