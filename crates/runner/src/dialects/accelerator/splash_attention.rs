//! Operators that these files name but no implementation computes. They can be planned and listed, and are recorded as
//! unsupported.

use calorimeter_zoo::gate::Tolerance;
use calorimeter_zoo::{
    Cost, ExactReference, Matrix, Operand, Operation, OutputSample, OutputSlot, Signature, Spec, Suite, ZooError,
    register_operator,
};
use std::sync::Once;

/// `tokamax_splash_attention`, without implementations.
#[derive(Debug)]
struct SplashAttention;

/// Registers the operator without an implementation.
pub(crate) fn register() {
    static NAMED: Once = Once::new();
    // Fails if the program has registered an operator of this name itself, which then takes precedence.
    NAMED.call_once(|| drop(register_operator(SplashAttention)));
}

impl Signature for SplashAttention {
    fn name(&self) -> &'static str {
        "tokamax_splash_attention"
    }

    fn description(&self) -> &'static str {
        "TPU kernel; recorded as unsupported"
    }

    fn axes(&self) -> &'static [&'static str] {
        &["batch_size", "q_seq_len", "kv_seq_len", "q_heads", "kv_heads", "qk_head_dim", "v_head_dim"]
    }

    fn check(&self, _: &Spec) -> Result<(), ZooError> {
        let name = self.name();
        Err(ZooError::Unsupported(format!("{name} is a TPU kernel; use `attention` on other devices")))
    }

    fn inputs(&self, _: &Spec) -> Vec<Operand> {
        Vec::new()
    }

    fn outputs(&self, _: &Spec) -> Vec<OutputSlot> {
        Vec::new()
    }
}

impl Cost for SplashAttention {
    fn flops(&self, _: &Spec) -> u64 {
        0
    }
}

impl Operation for SplashAttention {
    fn suite(&self) -> Suite {
        Suite::Elsewhere
    }
}

/// Unreachable, since `check` rejects every size.
impl ExactReference for SplashAttention {
    fn depth(&self, _: &Spec, _: usize) -> u64 {
        1
    }

    fn reference(&self, _: &Spec, _: &[Matrix], _: usize, _: &OutputSample) -> Vec<f64> {
        Vec::new()
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 1, 1)
    }
}
