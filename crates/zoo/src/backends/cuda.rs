//! NVIDIA GPUs, through CubeCL.

use crate::burn_workload::{self, Traits};
use crate::{Implementation, Matrix, OperatorProblem, Problem, Setup, Tensors, Value, Workload, ZooError};
use burn_cuda::{Cuda, CudaDevice};
use calorimeter_recipes::Treatment;
use cubecl::Runtime;
use cubecl::client::ComputeClient;
use cubecl::cuda::CudaRuntime;

type Eager = super::CubeOf<CudaRuntime>;
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

pub(super) fn open_operator(
    problem: &OperatorProblem,
    inputs: &[Matrix],
    setup: Setup,
    index: u16,
) -> Result<Box<dyn Workload>, ZooError> {
    let device = CudaDevice::new(usize::from(index));
    let (tf32, sets) = (true, setup.sets);
    super::operator_on::<CudaRuntime, Fused>(problem, inputs, setup, device, Traits { drain, tf32, sets })
}

/// Waits for the device; fusion drops what it has yet to drop.
pub(super) fn settle(index: u16) {
    // A device that cannot be waited for says so to whoever asks it next.
    let _ = <Fused as burn::tensor::backend::Backend>::sync(&CudaDevice::new(usize::from(index)));
}

fn drain(output: &Value<Fused>) {
    match output.clone() {
        Value::Float(tensor) => tensor.into_primitive().tensor().client.sync(|| ()),
        Value::Codes(tensor) => tensor.into_primitive().client.sync(|| ()),
    };
}
