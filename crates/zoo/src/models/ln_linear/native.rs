//! `ln_linear_<activation>` on CUDA.

use super::LnLinearModel;
use crate::native::linear;
use crate::{NativeModel, Problem, Tensors, Workload, ZooError};
use calorimeter_kernels::native::CudaDevice;
use calorimeter_recipes::QuantConfig;
use std::sync::Arc;

impl NativeModel for LnLinearModel {
    fn open(
        &self,
        problem: &Problem,
        tensors: &Tensors,
        treatment: &QuantConfig,
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        linear::open(problem, tensors, treatment, Some(self.0), machine, sets)
    }
}
