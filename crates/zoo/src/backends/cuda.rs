//! NVIDIA GPUs, through CubeCL.

use crate::burn_workload::{self, Traits};
use crate::{Implementation, Problem, Tensors, Workload, ZooError};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cuda::{Cuda, CudaDevice};
use calorimeter_recipes::Treatment;
use cubecl::cuda::CudaRuntime;

type Eager = CubeBackend<CudaRuntime, f32, i32, u8>;
type Fused = Cuda<f32, i32>;

pub(super) fn open(
    problem: &Problem,
    tensors: &Tensors,
    treatment: &Treatment,
    implementation: Implementation,
    index: u16,
) -> Result<Box<dyn Workload>, ZooError> {
    let device = CudaDevice::new(usize::from(index));
    match implementation {
        Implementation::Fused => {
            burn_workload::build::<Fused>(problem, tensors, treatment, device, Traits { drain, tf32: true })
        }
        _ => burn_workload::build::<Eager>(problem, tensors, treatment, device, Traits { drain: |_| (), tf32: true }),
    }
}

fn drain(output: &Tensor<Fused, 2>) {
    output.clone().into_primitive().tensor().client.sync(|| ());
}
