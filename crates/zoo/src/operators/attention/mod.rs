//! Attention: softmax(Q Kᵀ / √d) V, complete or its first steps.
//!
//! Q, K, V and the output are `[batch * heads * sequence, head_dim]`. Scores are `[batch * heads * sequence,
//! sequence]`.

mod burn;
#[cfg(feature = "native")]
mod native;
mod reference;

use crate::operators::dtypes::{FLOATS, check_dtypes};
use crate::operators::presets::{ATTENTION_SHAPES, Preset};
use crate::operators::{sequences, traffic};
use crate::registry::table::Zoo;
use crate::{
    Cost, Fill, FusionModel, Operand, Operation, OutputSlot, RotationAxis, SetRotation, Signature, Spec, Suite,
    ZooError, operation::require_floats,
};
use calorimeter_recipes::{Dtype, Element};
use calorimeter_shapes::Axes;

/// Attention operator: head layout, mask and last computed stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attention {
    name: &'static str,
    kind: AttentionKind,
    /// True if each position attends to itself and earlier positions only.
    causal: bool,
    stage: AttentionStage,
}

/// Head layout and precision of the softmax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttentionKind {
    /// Single head of the model width, as measured by branes-ai/graphs.
    SingleHead,
    /// Several heads; all steps in the dtype of the inputs.
    MultiHead,
    /// Several heads; softmax in f32, matmuls in the dtype of the inputs.
    MultiHeadF32Softmax,
}

/// Last computed stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AttentionStage {
    /// Scaled scores Q Kᵀ / √d.
    Scores,
    /// Softmax of the scores.
    Softmax,
    /// Product of the softmax with V.
    Output,
}

impl Attention {
    /// Fusion patterns: the stages of single-head attention, and multi-head attention with and without a causal mask.
    pub const PATTERNS: [Self; 5] = [
        Self { name: "qk_scores", kind: AttentionKind::SingleHead, causal: false, stage: AttentionStage::Scores },
        Self { name: "qk_softmax", kind: AttentionKind::SingleHead, causal: false, stage: AttentionStage::Softmax },
        Self { name: "full_attention", kind: AttentionKind::SingleHead, causal: false, stage: AttentionStage::Output },
        Self { name: "attention_4d", kind: AttentionKind::MultiHead, causal: false, stage: AttentionStage::Output },
        Self {
            name: "attention_4d_causal",
            kind: AttentionKind::MultiHead,
            causal: true,
            stage: AttentionStage::Output,
        },
    ];

    /// Attention variants of large language models.
    pub const LLM_VARIANTS: [Self; 2] = [
        Self {
            name: "attention",
            kind: AttentionKind::MultiHeadF32Softmax,
            causal: false,
            stage: AttentionStage::Output,
        },
        Self {
            name: "attention_causal",
            kind: AttentionKind::MultiHeadF32Softmax,
            causal: true,
            stage: AttentionStage::Output,
        },
    ];
}

/// Sizes of an attention operator.
#[derive(Debug, Clone, Copy)]
struct AttentionSize {
    batch: u64,
    heads: u64,
    sequence: u64,
    /// Elements of one position in one head (head_dim).
    width: u64,
}

impl AttentionSize {
    fn new(form: AttentionKind, spec: &Spec) -> Self {
        let (heads, width) = match form {
            AttentionKind::SingleHead => (1, spec.axis("dimension")),
            AttentionKind::MultiHead | AttentionKind::MultiHeadF32Softmax => {
                (spec.axis("heads"), spec.axis("head_dim"))
            }
        };
        Self { batch: spec.axis("batch"), heads, sequence: spec.axis("sequence"), width }
    }

    fn rows(&self) -> u64 {
        self.batch * self.heads * self.sequence
    }

    fn score_count(&self) -> u64 {
        self.rows() * self.sequence
    }
}

/// Registers the fusion patterns with their implementations.
pub(super) fn register_patterns(zoo: &Zoo) {
    for attention in Attention::PATTERNS {
        let ways = zoo.operators([attention]).burn();
        if attention.stage == AttentionStage::Output {
            ways.native_where(Attention::check_native);
        }
    }
}

/// Registers the variants of large language models with their implementations.
pub(super) fn register_llm_variants(zoo: &Zoo) {
    zoo.operators(Attention::LLM_VARIANTS).burn().native_where(Attention::check_native);
}

impl Attention {
    /// Checks that the CUDA kernel supports the dtype and head size.
    fn check_native(&self, spec: &Spec) -> Result<(), String> {
        let AttentionSize { width, .. } = AttentionSize::new(self.kind, spec);
        let halves = matches!(spec.element, Element::Float(Dtype::F16 | Dtype::Bf16));
        if halves && width.is_multiple_of(8) && width <= 128 {
            return Ok(());
        }
        Err(format!(
            "`native` runs {} in f16 and bf16 with head sizes up to 128 in multiples of 8, not {width} in {}",
            self.name, spec.element
        ))
    }
}

impl Signature for Attention {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        match self.kind {
            AttentionKind::SingleHead => "single-head attention: scores, softmax or output",
            AttentionKind::MultiHead => "multi-head attention, optionally with a causal mask",
            AttentionKind::MultiHeadF32Softmax => "multi-head attention with an f32 softmax, optionally causal",
        }
    }

    fn axes(&self) -> &'static [&'static str] {
        match self.kind {
            AttentionKind::SingleHead => sequences::AXES,
            AttentionKind::MultiHead | AttentionKind::MultiHeadF32Softmax => {
                &["batch", "heads", "sequence", "head_dim"]
            }
        }
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        match self.kind {
            AttentionKind::SingleHead | AttentionKind::MultiHead => require_floats(self.name, spec),
            AttentionKind::MultiHeadF32Softmax => check_dtypes(self.name, spec, FLOATS, &[]),
        }
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let size = AttentionSize::new(self.kind, spec);
        let values = Operand::normal(size.rows(), size.width, spec.element);
        let query_or_key = values.with_fill(Fill::NormalUnscaled);
        if self.stage == AttentionStage::Output {
            vec![query_or_key, query_or_key, values]
        } else {
            vec![query_or_key, query_or_key]
        }
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        let size = AttentionSize::new(self.kind, spec);
        let cols = if self.stage == AttentionStage::Output { size.width } else { size.sequence };
        vec![OutputSlot::new(size.rows(), cols, spec.element)]
    }
}

impl Cost for Attention {
    // Multiply-adds and the scale; for the softmax maximum, difference, exponential, sum and quotient. Only visible
    // query-key pairs count.
    fn flops(&self, spec: &Spec) -> u64 {
        let AttentionSize { batch, heads, sequence, width } = AttentionSize::new(self.kind, spec);
        let visible = if self.causal { sequence * (sequence + 1) / 2 } else { sequence.pow(2) };
        let per_score = match self.stage {
            AttentionStage::Scores => 2 * width + 1,
            AttentionStage::Softmax => 2 * width + 6,
            AttentionStage::Output => 4 * width + 6,
        };
        batch * heads * visible * per_score
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let bytes = traffic::element_bytes(spec);
        let per_score = match self.kind {
            // Raw, scaled, masked and normalized scores: at most three of these matrices are live at once.
            AttentionKind::SingleHead | AttentionKind::MultiHead => 3 * bytes,
            // Scores and softmax weights in the dtype of the inputs and in f32, with or without a mask.
            AttentionKind::MultiHeadF32Softmax => 2 * bytes + 2 * 4,
        };
        per_score * AttentionSize::new(self.kind, spec).score_count()
    }

    // The mask does not count: all heads share it, and it is small.
    fn fusion(&self, spec: &Spec) -> Option<FusionModel> {
        if self.kind == AttentionKind::MultiHeadF32Softmax {
            return None;
        }
        let size = AttentionSize::new(self.kind, spec);
        let (q, pairs) = (size.rows() * size.width, size.score_count());
        let mut kernels = vec![("matmul", 2 * q + pairs), ("scale", 2 * pairs)];
        if self.causal {
            kernels.push(("mask", 2 * pairs));
        }
        if self.stage >= AttentionStage::Softmax {
            kernels.push(("softmax", 2 * pairs));
        }
        if self.stage == AttentionStage::Output {
            kernels.push(("matmul", pairs + 2 * q));
        }
        Some(traffic::fusion_model(spec, &kernels, self.bytes(spec)))
    }

    fn matmuls(&self) -> u32 {
        2
    }
}

impl Operation for Attention {
    fn suite(&self) -> Suite {
        match self.kind {
            AttentionKind::SingleHead | AttentionKind::MultiHead => Suite::Fusion,
            AttentionKind::MultiHeadF32Softmax => Suite::Gemm,
        }
    }

    fn sizes(&self, preset: Preset) -> Vec<Axes> {
        match self.kind {
            AttentionKind::SingleHead => preset.first_shapes(self.axes(), ATTENTION_SHAPES),
            AttentionKind::MultiHead | AttentionKind::MultiHeadF32Softmax => preset.shapes_for_axes(self.axes()),
        }
    }

    // Heads are independent, so that buffer sets rotate by whole heads.
    fn set_rotation(&self, spec: &Spec) -> SetRotation {
        let AttentionSize { batch, heads, .. } = AttentionSize::new(self.kind, spec);
        SetRotation::new(batch * heads, &vec![RotationAxis::Rows; self.inputs(spec).len()], &[RotationAxis::Rows])
    }
}
