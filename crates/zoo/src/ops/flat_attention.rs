//! Attention without heads, whole and its first steps, as branes-ai/graphs measures it.

use super::attention_core::{Attention, Stage};
use super::{fusion_counts, rows};
use crate::gate::Tolerance;
use crate::operator::{Operation, Spec};
use crate::{Counts, FusionModel, Matrix, Operand, Operator, Pass, Sample, Slot, Value};
use burn::tensor::backend::Backend;
use calorimeter_case::Suite;

/// How far it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FlatAttention {
    /// Scaled scores.
    Scores,
    /// Their softmax.
    Softmax,
    /// The mixture of values.
    Full,
}

impl FlatAttention {
    fn core(self, spec: &Spec) -> Attention {
        let stage = match self {
            Self::Scores => Stage::Scores,
            Self::Softmax => Stage::Softmax,
            Self::Full => Stage::Mixed,
        };
        let (batch, sequence, width) = (spec.axis("batch"), spec.axis("sequence"), spec.axis("dimension"));
        Attention { batch, heads: 1, sequence, width, causal: false, stage }
    }
}

impl Operation for FlatAttention {
    const ABOUT: &'static str = "attention of one head as wide as the model: its scores, their softmax, or all of it";
    const SUITE: Suite = Suite::Fusion;

    fn all() -> Vec<Self> {
        vec![Self::Scores, Self::Softmax, Self::Full]
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Scores => "qk_scores",
            Self::Softmax => "qk_softmax",
            Self::Full => "full_attention",
        }
    }

    fn products(&self) -> u32 {
        2
    }

    fn axes(&self) -> &'static [&'static str] {
        rows::AXES
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

    fn published(&self, spec: &Spec) -> Option<Counts> {
        fusion_counts::published(Operator::FlatAttention(*self), spec)
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
