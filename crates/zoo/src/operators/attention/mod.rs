//! Attention: softmax(Q K^T / sqrt(d)) V, whole or its first steps.
//!
//! Queries, keys, values and mixtures are matrices `[batch * heads * sequence, width]`, scores are
//! `[batch * heads * sequence, sequence]`.

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

/// One kind of attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attention {
    name: &'static str,
    form: Form,
    /// Whether a position sees no later one.
    causal: bool,
    stage: Stage,
}

/// Which heads there are, and where the softmax is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// One head as wide as the model, as branes-ai/graphs measures it.
    Flat,
    /// Several heads, every step in the type of the inputs.
    Heads,
    /// Several heads; the softmax is in f32, the products are in the type of the inputs.
    HeadsInF32,
}

/// How far it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// To the scaled scores.
    Scores,
    /// To their softmax.
    Softmax,
    /// To the mixture of values.
    Mixed,
}

impl Attention {
    /// What is worth fusing: the steps of one head, and several heads without and with a mask.
    pub const PATTERNS: [Self; 5] = [
        Self { name: "qk_scores", form: Form::Flat, causal: false, stage: Stage::Scores },
        Self { name: "qk_softmax", form: Form::Flat, causal: false, stage: Stage::Softmax },
        Self { name: "full_attention", form: Form::Flat, causal: false, stage: Stage::Mixed },
        Self { name: "attention_4d", form: Form::Heads, causal: false, stage: Stage::Mixed },
        Self { name: "attention_4d_causal", form: Form::Heads, causal: true, stage: Stage::Mixed },
    ];

    /// What large models run.
    pub const OF_MODELS: [Self; 2] = [
        Self { name: "attention", form: Form::HeadsInF32, causal: false, stage: Stage::Mixed },
        Self { name: "attention_causal", form: Form::HeadsInF32, causal: true, stage: Stage::Mixed },
    ];
}

/// An attention's sizes.
#[derive(Debug, Clone, Copy)]
struct Size {
    batch: u64,
    heads: u64,
    sequence: u64,
    /// Numbers of a position in one head.
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

/// Registers what is worth fusing with the ways to run it.
pub(super) fn register_patterns(zoo: &Zoo) {
    for attention in Attention::PATTERNS {
        let ways = zoo.operators([attention]).burn();
        if attention.stage == Stage::Mixed {
            ways.native_where(Attention::natively);
        }
    }
}

/// Registers what large models run with the ways to run it.
pub(super) fn register_of_models(zoo: &Zoo) {
    zoo.operators(Attention::OF_MODELS).burn().native_where(Attention::natively);
}

impl Attention {
    /// What the kernel takes.
    fn natively(&self, spec: &Spec) -> Result<(), String> {
        let Size { width, .. } = Size::of(self.form, spec);
        let halves = matches!(spec.element, Element::Float(Dtype::F16 | Dtype::Bf16));
        if halves && width.is_multiple_of(8) && width <= 128 {
            return Ok(());
        }
        Err(format!(
            "`native` runs {} in f16 and bf16, with heads of up to 128 numbers in multiples of 8; these are {width} in {}",
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
            Form::Flat => "attention of one head as wide as the model: its scores, their softmax, or all of it",
            Form::Heads => "attention of several heads, without or with a causal mask",
            Form::HeadsInF32 => "attention of several heads, its softmax in f32",
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
        let scored = values.filled(Fill::Even);
        if self.stage == Stage::Mixed { vec![scored, scored, values] } else { vec![scored, scored] }
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let size = Size::of(self.form, spec);
        let cols = if self.stage == Stage::Mixed { size.width } else { size.sequence };
        vec![Slot::new(size.rows(), cols, spec.element)]
    }
}

impl Cost for Attention {
    // Products and sums, the scale, and for a softmax maximum, difference, exponential, sum, quotient: of the pairs that
    // see each other alone.
    fn flops(&self, spec: &Spec) -> u64 {
        let Size { batch, heads, sequence, width } = Size::of(self.form, spec);
        let seen = if self.causal { sequence * (sequence + 1) / 2 } else { sequence.pow(2) };
        let each = match self.stage {
            Stage::Scores => 2 * width + 1,
            Stage::Softmax => 2 * width + 6,
            Stage::Mixed => 4 * width + 6,
        };
        batch * heads * seen * each
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let bytes = traffic::number_bytes(spec);
        let each = match self.form {
            // Scores, scaled, masked and through the steps of a softmax: three matrices of them live at a time.
            Form::Flat | Form::Heads => 3 * bytes,
            // Scores and weights in the type of the inputs and in f32, whether they are masked or not.
            Form::HeadsInF32 => 2 * bytes + 2 * 4,
        };
        each * Size::of(self.form, spec).pairs()
    }

    // The mask is not counted: it is the same for all heads, and small.
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

    // No head knows of another.
    fn moves(&self, spec: &Spec) -> Moves {
        let Size { batch, heads, .. } = Size::of(self.form, spec);
        Moves::new(batch * heads, &vec![Along::Rows; self.inputs(spec).len()], &[Along::Rows])
    }
}
