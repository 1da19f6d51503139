//! Forward and backward pass of `transformer_block` on CUDA.

use super::TransformerBlock;
use super::parameters::{DOWN, FIRST, PROJECT, QKV, SECOND, UP};
use crate::models::transformer_block::{HEADS, TOKENS};
use crate::operators::trained_linear::native_layer::{Back, NativeLayer};
use crate::operators::trained_model::architecture::{Architecture, Sides};
use crate::operators::trained_model::native::{From, Gradients, NativeArchitecture, PLANNED, Plans, Ways};
use crate::{Activation as Function, ZooError, normalize};
use calorimeter_kernels::native::{
    Activation, Buffer, Elementwise, ElementwiseFunction, NativeError, Past, RmsForm, RmsNorm, RmsNormGradient,
    ShortAttention, ShortAttentionGradient,
};

/// Planned passes.
pub struct Steps {
    layers: Layers,
    /// Bytes of a `[rows, k]` tensor.
    width: usize,
    there: Option<WayThere>,
    back: Option<WayBack>,
}

struct WayThere {
    norm: RmsNorm,
    attention: ShortAttention,
    activation: Activation,
}

struct WayBack {
    slope: Elementwise,
    attention: ShortAttentionGradient,
    /// Each adds the residual gradient.
    norms: [RmsNormGradient; 2],
    of: Between,
}

struct Layers {
    qkv: NativeLayer,
    project: NativeLayer,
    up: NativeLayer,
    down: NativeLayer,
}

/// Gradients that stay within the backward pass.
struct Between {
    hidden: Buffer,
    up: Buffer,
    into_mlp: Buffer,
    attended: Buffer,
    mixed: Buffer,
    qkv: Buffer,
    into_attention: Buffer,
}

impl NativeArchitecture for TransformerBlock {
    type Ways = Steps;

    fn ways(&self, plans: &Plans<'_>) -> Result<Steps, ZooError> {
        let Plans { machine, spec, .. } = plans;
        let Sides { rows, input: k, .. } = self.sides(spec);
        let (rows, k, heads, kind) = (rows as usize, k as usize, HEADS as usize, spec.dtype());
        let (sequences, head, size) = (rows / TOKENS as usize, k / heads, (rows, k));
        let form = RmsForm { gain_is_f32: false, epsilon: normalize::EPSILON as f32 };
        let forward = || {
            Ok(WayThere {
                norm: RmsNorm::new(machine, kind, form, rows, k)?,
                attention: ShortAttention::new(machine, kind, sequences, heads, head)?,
                activation: Activation::new(machine, kind, Function::Gelu, 4 * rows * k)?,
            })
        };
        let norm = || RmsNormGradient::new(machine, kind, form, Past::Added, size);
        let between = |widths: usize| plans.between(widths * rows * k);
        let backward = || {
            Ok(WayBack {
                slope: Elementwise::new(machine, kind, ElementwiseFunction::Gradient(Function::Gelu), 4 * rows * k)?,
                attention: ShortAttentionGradient::new(machine, kind, sequences, heads, head)?,
                norms: [norm()?, norm()?],
                of: Between {
                    hidden: between(4)?,
                    up: between(4)?,
                    into_mlp: between(1)?,
                    attended: between(1)?,
                    mixed: between(1)?,
                    qkv: between(3)?,
                    into_attention: between(1)?,
                },
            })
        };
        Ok(Steps {
            layers: Layers {
                qkv: plans.layer(rows, k, 3 * k)?,
                project: plans.layer(rows, k, k)?,
                up: plans.layer(rows, k, 4 * k)?,
                down: plans.layer(rows, 4 * k, k)?,
            },
            width: plans.bytes(rows * k),
            there: plans.there(forward)?,
            back: plans.back(backward)?,
        })
    }
}

impl Ways for Steps {
    /// Input of the QKV projection; q, k and v; attention output; attention with residual; input of the MLP; hidden
    /// layer before and after GELU.
    fn kept(&self) -> Vec<usize> {
        [1, 3, 1, 1, 1, 4, 4].map(|widths| widths * self.width).into()
    }

    fn forward(
        &mut self,
        From { input, parameters }: &From<'_>,
        saved: &mut [Buffer],
        output: &mut Buffer,
    ) -> Result<(), NativeError> {
        let Self { layers, there, .. } = self;
        let WayThere { norm, attention, activation } = there.as_ref().expect(PLANNED);
        let [into_attention, qkv, mixed, attended, into_mlp, up, hidden] = saved else { unreachable!("{KEPT}") };
        norm.enqueue(input, parameters[FIRST], into_attention)?;
        layers.qkv.output(into_attention, parameters[QKV], None, qkv)?;
        attention.enqueue(qkv, mixed)?;
        layers.project.output(mixed, parameters[PROJECT], Some(input), attended)?;
        norm.enqueue(attended, parameters[SECOND], into_mlp)?;
        layers.up.output(into_mlp, parameters[UP], None, up)?;
        activation.enqueue(up, hidden)?;
        layers.down.output(hidden, parameters[DOWN], Some(attended), output)
    }

    fn backward(
        &mut self,
        From { input, parameters }: &From<'_>,
        saved: &[Buffer],
        gradient: &Buffer,
        gradients: Gradients<'_>,
    ) -> Result<(), NativeError> {
        let Self { layers, back, .. } = self;
        let WayBack { slope, attention, norms: [first_norm, second_norm], of } = back.as_mut().expect(PLANNED);
        let [into_attention, qkv, mixed, attended, into_mlp, up, hidden] = saved else { unreachable!("{KEPT}") };
        let Ok([grad_qkv, grad_project, grad_up, grad_down, grad_first, grad_second]) =
            <[&mut Buffer; 6]>::try_from(gradients.parameters)
        else {
            unreachable!("six parameters are declared")
        };
        let layer_gradients = Back { input: (&mut of.hidden, None), weight: grad_down };
        layers.down.back(gradient, hidden, parameters[DOWN], layer_gradients)?;
        slope.enqueue(&[up, &of.hidden], &mut of.up)?;
        let layer_gradients = Back { input: (&mut of.into_mlp, None), weight: grad_up };
        layers.up.back(&of.up, into_mlp, parameters[UP], layer_gradients)?;
        let read = [attended, parameters[SECOND], &of.into_mlp];
        second_norm.enqueue(read, Some(gradient), &mut of.attended, grad_second)?;
        let layer_gradients = Back { input: (&mut of.mixed, None), weight: grad_project };
        layers.project.back(&of.attended, mixed, parameters[PROJECT], layer_gradients)?;
        attention.enqueue(qkv, &of.mixed, &mut of.qkv)?;
        let layer_gradients = Back { input: (&mut of.into_attention, None), weight: grad_qkv };
        layers.qkv.back(&of.qkv, into_attention, parameters[QKV], layer_gradients)?;
        first_norm.enqueue(
            [input, parameters[FIRST], &of.into_attention],
            Some(&of.attended),
            gradients.input,
            grad_first,
        )
    }

    fn kernels(&self) -> Vec<String> {
        let Layers { qkv, project, up, down } = &self.layers;
        let forward = self.there.iter().flat_map(|WayThere { norm, attention, activation }| {
            [norm.algorithm(), attention.algorithm(), activation.algorithm()]
        });
        let backward = self.back.iter().flat_map(|WayBack { slope, attention, norms: [norm, _], .. }| {
            [slope.algorithm(), attention.algorithm(), norm.algorithm()]
        });
        let layers = [qkv, project, up, down].map(NativeLayer::algorithm);
        layers.into_iter().chain(forward.chain(backward).map(str::to_owned)).collect()
    }
}

const KEPT: &str = "seven saved buffers";
