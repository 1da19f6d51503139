//! Attention of several heads, all positions or the earlier ones alone.

use super::attention_core::{Attention, Stage};
use crate::gate::Tolerance;
use crate::operator::{Operation, Spec};
use crate::{FusionModel, Matrix, Operand, Pass, Sample, Slot, Value};
use burn::tensor::backend::Backend;
use calorimeter_case::Suite;

/// What a position sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Attention4d {
    /// Every position.
    All,
    /// Itself and those before it.
    Causal,
}

impl Attention4d {
    fn core(self, spec: &Spec) -> Attention {
        Attention {
            batch: spec.axis("batch"),
            heads: spec.axis("heads"),
            sequence: spec.axis("sequence"),
            width: spec.axis("head_dim"),
            causal: self == Self::Causal,
            stage: Stage::Mixed,
        }
    }
}

impl Operation for Attention4d {
    const ABOUT: &'static str = "attention of several heads, without or with a causal mask";
    const SUITE: Suite = Suite::Fusion;

    fn all() -> Vec<Self> {
        vec![Self::All, Self::Causal]
    }

    fn name(&self) -> &'static str {
        match self {
            Self::All => "attention_4d",
            Self::Causal => "attention_4d_causal",
        }
    }

    fn products(&self) -> u32 {
        2
    }

    fn axes(&self) -> &'static [&'static str] {
        &["batch", "heads", "sequence", "head_dim"]
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        self.core(spec).inputs(spec)
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        vec![self.core(spec).output(spec)]
    }

    fn flops(&self, spec: &Spec) -> u64 {
        self.core(spec).flops()
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        self.core(spec).intermediate(spec)
    }

    fn fusion(&self, spec: &Spec) -> Option<FusionModel> {
        Some(self.core(spec).fusion(spec, self.bytes(spec)))
    }

    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        self.core(spec).depth()
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        self.core(spec).reference(inputs, sample)
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        self.core(spec).tolerance(spec)
    }

    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        self.core(spec).pass(inputs)
    }
}
