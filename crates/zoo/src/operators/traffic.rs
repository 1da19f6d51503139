//! What fusing should save, by a count of traffic.

use crate::{FusionModel, Spec};

/// Every kernel reads each of its inputs once and writes its output once, parameters included. `kernels` says
/// how many numbers each one moves, `fused` how many bytes one kernel in place of all does.
pub(super) fn model(spec: &Spec, kernels: &[(&'static str, u64)], fused: u64) -> FusionModel {
    FusionModel {
        operators: kernels.iter().map(|(name, _)| (*name).to_owned()).collect(),
        unfused_bytes: number_bytes(spec) * kernels.iter().map(|(_, numbers)| numbers).sum::<u64>(),
        fused_bytes: fused,
    }
}

/// Bytes of one number.
pub(super) fn number_bytes(spec: &Spec) -> u64 {
    spec.dtype().bytes()
}
