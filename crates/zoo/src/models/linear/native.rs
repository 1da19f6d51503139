//! `linear` on CUDA.

use super::LinearModel;
use crate::native::linear;
use crate::{NativeModel, Problem, Tensors, Workload, ZooError};
use calorimeter_kernels::native::CudaDevice;
use calorimeter_recipes::QuantConfig;
use std::sync::Arc;

impl NativeModel for LinearModel {
    fn open(
        &self,
        problem: &Problem,
        tensors: &Tensors,
        treatment: &QuantConfig,
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        linear::open(problem, tensors, treatment, None, machine, sets)
    }
}
