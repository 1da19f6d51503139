//! NVIDIA GPUs, through CubeCL.

use crate::burn_workload::{self, Traits};
use crate::{Implementation, Problem, Setup, Tensors, Workload, ZooError};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cuda::{Cuda, CudaDevice};
use calorimeter_recipes::Treatment;
use cubecl::Runtime;
use cubecl::client::ComputeClient;
use cubecl::cuda::CudaRuntime;

type Eager = CubeBackend<CudaRuntime, f32, i32, u8>;
type Fused = Cuda<f32, i32>;

pub(super) fn open(
    problem: &Problem,
    tensors: &Tensors,
    treatment: &Treatment,
    setup: Setup,
    index: u16,
) -> Result<Box<dyn Workload>, ZooError> {
    let device = CudaDevice::new(usize::from(index));
    let (tf32, sets) = (true, setup.sets);
    match setup.implementation {
        Implementation::Fused => {
            burn_workload::build::<Fused>(problem, tensors, treatment, device, Traits { drain, tf32, sets })
        }
        _ => burn_workload::build::<Eager>(problem, tensors, treatment, device, Traits { drain: |_| (), tf32, sets }),
    }
}

pub(super) fn client(index: u16) -> ComputeClient<CudaRuntime> {
    CudaRuntime::client(&CudaDevice::new(usize::from(index)))
}

pub(super) fn pool(index: u16) -> Box<dyn Fn() -> Option<super::PoolUsage> + Send> {
    super::of_client(client(index))
}

fn drain(output: &Tensor<Fused, 2>) {
    output.clone().into_primitive().tensor().client.sync(|| ());
}
