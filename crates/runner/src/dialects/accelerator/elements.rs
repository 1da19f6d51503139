//! The number types of that program's benchmarks.

use calorimeter_recipes::{Dtype, Element};
use calorimeter_zoo::Operator;

/// What the inputs are where the file does not say.
pub fn default_element(operator: Operator) -> Element {
    match operator.info().name {
        "gemm" | "gemm_accum" | "gemm_simple" | "gemm_multiple_run" | "gemm_throttling" => Element::E4m3,
        "host_device" | "tokamax_splash_attention" => Element::Float(Dtype::F32),
        _ => Element::Float(Dtype::Bf16),
    }
}
