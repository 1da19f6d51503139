//! What other programs measure on other machines: it can be named and planned, and is recorded as unsupported.

mod reference;

use crate::registry::table::Zoo;
use crate::{Operand, Operation, Slot, Spec, Suite, ZooError};

/// `tokamax_splash_attention`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NotComputed;

/// Registers it; nothing runs it.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators([NotComputed]);
}

impl Operation for NotComputed {
    fn name(&self) -> &'static str {
        "tokamax_splash_attention"
    }

    fn about(&self) -> &'static str {
        "measured by other programs on other machines; recorded as unsupported here"
    }

    fn suite(&self) -> Suite {
        Suite::Elsewhere
    }

    fn axes(&self) -> &'static [&'static str] {
        &["batch_size", "q_seq_len", "kv_seq_len", "q_heads", "kv_heads", "qk_head_dim", "v_head_dim"]
    }

    fn check(&self, _: &Spec) -> Result<(), ZooError> {
        let name = self.name();
        Err(ZooError::Unsupported(format!("{name} is a kernel for TPUs; `attention` computes the same elsewhere")))
    }

    fn inputs(&self, _: &Spec) -> Vec<Operand> {
        Vec::new()
    }

    fn outputs(&self, _: &Spec) -> Vec<Slot> {
        Vec::new()
    }

    fn flops(&self, _: &Spec) -> u64 {
        0
    }
}
