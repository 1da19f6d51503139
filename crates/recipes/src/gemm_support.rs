//! Layers that GPUs compute without dequantizing the weight first.

use crate::QuantConfig;
use calorimeter_kernels::LinearShape;
use calorimeter_kernels::cube::{CubeCapability, layer_kernels};
use calorimeter_kernels::layer::{Rejection, candidates};
use cubecl::Runtime;

impl QuantConfig {
    /// Checks that a CubeCL kernel multiplies inputs by the packed weight. Inputs with too many rows for the kernels are
    /// accepted: for these, burn's operations are faster.
    pub fn check_packed_gemm<R: Runtime>(&self, shape: LinearShape) -> Result<(), Rejection> {
        match candidates(layer_kernels::<R>(), &self.layer_spec(shape.m), shape, &CubeCapability::COMPLETE) {
            Ok(_) | Err(Rejection::Size { .. }) => Ok(()),
            // Each kernel names only the layers that it computes itself.
            Err(Rejection::Spec(_)) => Err(Rejection::Spec(
                "a quantized, dense weight, with an unquantized input or with weight and input in int8",
            )),
            Err(reason) => Err(reason),
        }
    }
}
