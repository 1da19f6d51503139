//! BLAS routines on CUDA: kernels for `dot`, `axpy` and `gemv`, cuBLASLt for `matmul`.

use super::{ALPHA, Blas};
use crate::native::{BufferSet, NativePass};
use crate::operators::native_plans;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{
    CudaDevice, CudaKernel, ElementwiseFunction, LinearSpec, MatVecPlan, PairReduction, WeightLayout,
};
use std::sync::Arc;

impl NativePlanner for Blas {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        Ok(match self {
            Self::Dot => {
                let n = spec.axis("n") as usize;
                NativePass::of(CudaKernel::pair_reduction(device, spec.dtype(), PairReduction::Dot, n)?)
            }
            Self::Axpy => {
                let function = ElementwiseFunction::Triad(ALPHA);
                let kernel = CudaKernel::elementwise(device, spec.dtype(), function, spec.axis("n") as usize)?;
                NativePass::single(kernel.algorithm(), move |BufferSet { inputs, outputs, .. }| {
                    kernel.enqueue(inputs.iter().rev(), outputs)
                })
            }
            Self::Gemv => {
                let (m, k) = (spec.axis("m") as usize, spec.axis("k") as usize);
                let plan = MatVecPlan::new(device, spec.dtype(), m, k)?;
                NativePass::single(plan.algorithm(), move |BufferSet { inputs, outputs, .. }| {
                    plan.enqueue(&inputs[0], &inputs[1], &mut outputs[0])
                })
            }
            Self::Matmul => {
                let form = LinearSpec { weight: WeightLayout::AlongN, ..LinearSpec::plain(spec.dtype()) };
                native_plans::matmul(device, spec, form)?
            }
        })
    }
}
