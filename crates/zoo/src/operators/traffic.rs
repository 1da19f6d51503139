//! Traffic model of kernel fusion.

use crate::{FusionModel, Spec};

/// Traffic of separate kernels compared with one fused kernel. Each kernel reads its inputs once and writes its output
/// once, parameters included. `kernels` lists the elements that each moves, `fused` the bytes of the fused kernel.
pub(super) fn fusion_model(spec: &Spec, kernels: &[(&'static str, u64)], fused: u64) -> FusionModel {
    FusionModel {
        operators: kernels.iter().map(|(name, _)| (*name).to_owned()).collect(),
        unfused_bytes: element_bytes(spec) * kernels.iter().map(|(_, elements)| elements).sum::<u64>(),
        fused_bytes: fused,
    }
}

/// Bytes of one element.
pub(super) fn element_bytes(spec: &Spec) -> u64 {
    spec.dtype().bytes()
}
