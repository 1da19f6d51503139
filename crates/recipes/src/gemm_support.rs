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

#[cfg(all(test, feature = "full"))]
mod tests {
    use super::*;
    use crate::{Dtype, Recipe};
    use burn_wgpu::WgpuRuntime;

    #[test]
    fn unsupported_recipes_have_no_packed_gemm() {
        let check = |name: &str, m: usize| {
            let config = name.parse::<Recipe>().unwrap().quant_config(Dtype::F32, None).unwrap();
            config.check_packed_gemm::<WgpuRuntime>(LinearShape { m, k: 64, n: 64 })
        };
        for (name, rows) in [("int8wo", 1), ("int4wo-64", 4096), ("int8dq", 3), ("int8dq_prefill_wo_decode", 1)] {
            assert_eq!(check(name, rows), Ok(()), "{name}");
        }
        for name in ["baseline", "float8dq", "mxfp8", "nvfp4", "marlin-qqq"] {
            assert!(matches!(check(name, 2), Err(Rejection::Spec(_))), "{name}");
        }
    }
}
