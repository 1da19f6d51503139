//! What other programs measure on other machines: it can be named and planned, and is recorded as unsupported.

use crate::gate::Tolerance;
use crate::operator::{Operation, Spec, Suite};
use crate::{Matrix, Operand, Pass, Sample, Slot, Value, ZooError};
use burn::tensor::backend::Backend;

/// `tokamax_splash_attention`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Elsewhere;

impl Operation for Elsewhere {
    const ABOUT: &'static str = "measured by other programs on other machines; recorded as unsupported here";
    const SUITE: Suite = Suite::Elsewhere;

    fn all() -> Vec<Self> {
        vec![Self]
    }

    fn name(&self) -> &'static str {
        "tokamax_splash_attention"
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

    fn depth(&self, _: &Spec, _: usize) -> u64 {
        1
    }

    fn reference(&self, _: &Spec, _: &[Matrix], _: usize, _: &Sample) -> Vec<f64> {
        Vec::new()
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 1, 1)
    }

    // `check` refuses every size, so nobody gets as far as this.
    fn pass<B: Backend>(&self, _: &Spec, _: Vec<Value<B>>) -> Pass<B> {
        Box::new(Vec::new)
    }
}
