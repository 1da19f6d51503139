//! Attention: softmax(Q Kᵀ / √d) V, complete or its first steps.
//!
//! Q, K, V and the output are `[batch * heads * sequence, head_dim]`. Scores are `[batch * heads * sequence,
//! sequence]`.

mod burn;
#[cfg(feature = "cuda")]
mod native;
mod reference;

use crate::operators::number_types::{FLOATS, allow};
use crate::operators::presets::{FLAT_ATTENTION, Preset};
use crate::operators::{sequences, traffic};
use crate::registry::table::Zoo;
use crate::{
    Along, Cost, Fill, FusionModel, Moves, Operand, Operation, Signature, Slot, Spec, Suite, ZooError,
    operation::floats_alone,
};
use calorimeter_recipes::{Dtype, Element};
use calorimeter_shapes::Axes;

/// Attention operator: head layout, mask and last computed stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attention {
    name: &'static str,
    form: Form,
    /// True if each position attends to itself and earlier positions only.
    causal: bool,
    stage: Stage,
}

/// Head layout and precision of the softmax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Single head of the model width, as measured by branes-ai/graphs.
    Flat,
    /// Several heads; all steps in the dtype of the inputs.
    Heads,
    /// Several heads; softmax in f32, matmuls in the dtype of the inputs.
    HeadsInF32,
}

/// Last computed stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Scaled scores Q Kᵀ / √d.
    Scores,
    /// Softmax of the scores.
    Softmax,
    /// Product of the softmax with V.
    Mixed,
}

impl Attention {
    /// Fusion patterns: the stages of single-head attention, and multi-head attention with and without a causal mask.
    pub const PATTERNS: [Self; 5] = [
        Self { name: "qk_scores", form: Form::Flat, causal: false, stage: Stage::Scores },
        Self { name: "qk_softmax", form: Form::Flat, causal: false, stage: Stage::Softmax },
        Self { name: "full_attention", form: Form::Flat, causal: false, stage: Stage::Mixed },
        Self { name: "attention_4d", form: Form::Heads, causal: false, stage: Stage::Mixed },
        Self { name: "attention_4d_causal", form: Form::Heads, causal: true, stage: Stage::Mixed },
    ];

    /// Attention variants of large language models.
    pub const OF_MODELS: [Self; 2] = [
        Self { name: "attention", form: Form::HeadsInF32, causal: false, stage: Stage::Mixed },
        Self { name: "attention_causal", form: Form::HeadsInF32, causal: true, stage: Stage::Mixed },
    ];
}

/// Sizes of an attention operator.
#[derive(Debug, Clone, Copy)]
struct Size {
    batch: u64,
    heads: u64,
    sequence: u64,
    /// Elements of one position in one head (head_dim).
    width: u64,
}

impl Size {
    fn of(form: Form, spec: &Spec) -> Self {
        let (heads, width) = match form {
            Form::Flat => (1, spec.axis("dimension")),
            Form::Heads | Form::HeadsInF32 => (spec.axis("heads"), spec.axis("head_dim")),
        };
        Self { batch: spec.axis("batch"), heads, sequence: spec.axis("sequence"), width }
    }

    fn rows(&self) -> u64 {
        self.batch * self.heads * self.sequence
    }

    fn pairs(&self) -> u64 {
        self.rows() * self.sequence
    }
}

/// Registers the fusion patterns with their implementations.
pub(super) fn register_patterns(zoo: &Zoo) {
    for attention in Attention::PATTERNS {
        let ways = zoo.operators([attention]).burn();
        if attention.stage == Stage::Mixed {
            ways.native_where(Attention::natively);
        }
    }
}

/// Registers the variants of large language models with their implementations.
pub(super) fn register_of_models(zoo: &Zoo) {
    zoo.operators(Attention::OF_MODELS).burn().native_where(Attention::natively);
}

impl Attention {
    /// Checks that the CUDA kernel supports the dtype and head size.
    fn natively(&self, spec: &Spec) -> Result<(), String> {
        let Size { width, .. } = Size::of(self.form, spec);
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

    fn about(&self) -> &'static str {
        match self.form {
            Form::Flat => "single-head attention: scores, softmax or output",
            Form::Heads => "multi-head attention, optionally with a causal mask",
            Form::HeadsInF32 => "multi-head attention with an f32 softmax, optionally causal",
        }
    }

    fn axes(&self) -> &'static [&'static str] {
        match self.form {
            Form::Flat => sequences::AXES,
            Form::Heads | Form::HeadsInF32 => &["batch", "heads", "sequence", "head_dim"],
        }
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        match self.form {
            Form::Flat | Form::Heads => floats_alone(self.name, spec),
            Form::HeadsInF32 => allow(self.name, spec, FLOATS, &[]),
        }
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let size = Size::of(self.form, spec);
        let values = Operand::normal(size.rows(), size.width, spec.element);
        let query_or_key = values.filled(Fill::Even);
        if self.stage == Stage::Mixed {
            vec![query_or_key, query_or_key, values]
        } else {
            vec![query_or_key, query_or_key]
        }
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let size = Size::of(self.form, spec);
        let cols = if self.stage == Stage::Mixed { size.width } else { size.sequence };
        vec![Slot::new(size.rows(), cols, spec.element)]
    }
}

impl Cost for Attention {
    // Multiply-adds and the scale; for the softmax maximum, difference, exponential, sum and quotient. Only visible
    // query-key pairs count.
    fn flops(&self, spec: &Spec) -> u64 {
        let Size { batch, heads, sequence, width } = Size::of(self.form, spec);
        let visible = if self.causal { sequence * (sequence + 1) / 2 } else { sequence.pow(2) };
        let per_score = match self.stage {
            Stage::Scores => 2 * width + 1,
            Stage::Softmax => 2 * width + 6,
            Stage::Mixed => 4 * width + 6,
        };
        batch * heads * visible * per_score
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let bytes = traffic::number_bytes(spec);
        let per_score = match self.form {
            // Raw, scaled, masked and normalized scores: at most three of these matrices are live at once.
            Form::Flat | Form::Heads => 3 * bytes,
            // Scores and softmax weights in the dtype of the inputs and in f32, with or without a mask.
            Form::HeadsInF32 => 2 * bytes + 2 * 4,
        };
        per_score * Size::of(self.form, spec).pairs()
    }

    // The mask does not count: all heads share it, and it is small.
    fn fusion(&self, spec: &Spec) -> Option<FusionModel> {
        if self.form == Form::HeadsInF32 {
            return None;
        }
        let size = Size::of(self.form, spec);
        let (q, pairs) = (size.rows() * size.width, size.pairs());
        let mut kernels = vec![("matmul", 2 * q + pairs), ("scale", 2 * pairs)];
        if self.causal {
            kernels.push(("mask", 2 * pairs));
        }
        if self.stage >= Stage::Softmax {
            kernels.push(("softmax", 2 * pairs));
        }
        if self.stage == Stage::Mixed {
            kernels.push(("matmul", pairs + 2 * q));
        }
        Some(traffic::model(spec, &kernels, self.bytes(spec)))
    }

    fn products(&self) -> u32 {
        2
    }
}

impl Operation for Attention {
    fn suite(&self) -> Suite {
        match self.form {
            Form::Flat | Form::Heads => Suite::Fusion,
            Form::HeadsInF32 => Suite::Gemm,
        }
    }

    fn sizes(&self, preset: Preset) -> Vec<Axes> {
        match self.form {
            Form::Flat => preset.first(self.axes(), FLAT_ATTENTION),
            Form::Heads | Form::HeadsInF32 => preset.of_axes(self.axes()),
        }
    }

    // Heads are independent, so that buffer sets rotate by whole heads.
    fn moves(&self, spec: &Spec) -> Moves {
        let Size { batch, heads, .. } = Size::of(self.form, spec);
        Moves::new(batch * heads, &vec![Along::Rows; self.inputs(spec).len()], &[Along::Rows])
    }
}
