//! Operators that these files name but no implementation computes. They can be planned and listed, and are recorded as
//! unsupported.

use calorimeter_zoo::gate::Tolerance;
use calorimeter_zoo::{
    Cost, ExactReference, Matrix, Operand, Operation, OutputSample, OutputSlot, Signature, Spec, Suite, ZooError,
    register_operator,
};
use std::sync::Once;

/// Operator without implementations.
#[derive(Debug, Clone, Copy)]
struct UnsupportedOperator {
    name: &'static str,
    axes: &'static [&'static str],
    /// Reason, after the name of the operator.
    reason: &'static str,
}

const COLLECTIVE: &[&str] = &["matrix_dim", "devices"];

const OPERATORS: [UnsupportedOperator; 11] = [
    UnsupportedOperator {
        name: "tokamax_splash_attention",
        axes: &["batch_size", "q_seq_len", "kv_seq_len", "q_heads", "kv_heads", "qk_head_dim", "v_head_dim"],
        reason: "is a TPU kernel; use `attention` on other devices",
    },
    UnsupportedOperator {
        name: "attention_flashed",
        axes: &["batch", "seq_len", "num_q_heads", "num_kv_heads", "head_dim"],
        reason: "requires mode fwd and as many key heads as query heads in this version",
    },
    UnsupportedOperator {
        name: "gemm_generalized",
        axes: &["m", "k", "n"],
        reason: "requires operands that are not transposed, alpha 1 and beta 0 in this version",
    },
    UnsupportedOperator {
        name: "hbm_bandwidth",
        axes: &["size"],
        reason: "requires device_id 0; select another device with --device",
    },
    UnsupportedOperator {
        name: "device_to_device",
        axes: &["data_size_mib"],
        reason: "requires direction bi in this version",
    },
    UnsupportedOperator { name: "pmax", axes: COLLECTIVE, reason: "requires reduce_op sum in this version" },
    UnsupportedOperator { name: "pmean", axes: COLLECTIVE, reason: "requires reduce_op sum in this version" },
    UnsupportedOperator { name: "pmin", axes: COLLECTIVE, reason: "requires reduce_op sum in this version" },
    UnsupportedOperator {
        name: "rope",
        axes: &["batch", "heads", "seq_len", "head_dim"],
        reason: "multiplies complex numbers, which no implementation supports in this version",
    },
    UnsupportedOperator { name: "sigmoid", axes: &["batch", "dim"], reason: "requires mode fwd in this version" },
    UnsupportedOperator {
        name: "transformer_layer_moe",
        axes: &["model_dim", "mslen"],
        reason: "has no implementation in this version",
    },
];

/// Registers the operators without an implementation.
pub(crate) fn register() {
    static NAMED: Once = Once::new();
    // Fails if the program has registered an operator of this name itself, which then takes precedence.
    NAMED.call_once(|| OPERATORS.into_iter().for_each(|operator| drop(register_operator(operator))));
}

impl Signature for UnsupportedOperator {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        "recorded as unsupported"
    }

    fn axes(&self) -> &'static [&'static str] {
        self.axes
    }

    fn check(&self, _: &Spec) -> Result<(), ZooError> {
        Err(ZooError::Unsupported(format!("{} {}", self.name, self.reason)))
    }

    fn inputs(&self, _: &Spec) -> Vec<Operand> {
        Vec::new()
    }

    fn outputs(&self, _: &Spec) -> Vec<OutputSlot> {
        Vec::new()
    }
}

impl Cost for UnsupportedOperator {
    fn flops(&self, _: &Spec) -> u64 {
        0
    }
}

impl Operation for UnsupportedOperator {
    fn suite(&self) -> Suite {
        Suite::Elsewhere
    }
}

/// Unreachable, since `check` rejects every size.
impl ExactReference for UnsupportedOperator {
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
