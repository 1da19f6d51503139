//! Forward and backward pass of `transformer_block` on CUDA.

use super::TrainedTransformerBlock;
use super::parameters::{ATTENTION_GAIN, DOWN, MLP_GAIN, PROJECT, QKV, UP};
use crate::models::transformer_block::{HEADS, TOKENS};
use crate::operators::trained_linear::native_layer::{LayerGradients, NativeLayer};
use crate::operators::trained_model::architecture::{Architecture, ModelShape};
use crate::operators::trained_model::native::{
    GradientBuffers, NativeArchitecture, NativePasses, PASS_IS_PLANNED, PassOperands, PassPlanner,
};
use crate::{Activation as Function, ZooError, normalize};
use calorimeter_kernels::native::{
    CudaKernel, DeviceBuffer, ElementwiseFunction, NativeError, ResidualGradient, RmsNormGradientPlan, RmsNormSpec,
};

/// Planned passes.
pub(crate) struct TransformerBlockPasses {
    layers: BlockLayers,
    /// Bytes of a `[rows, k]` tensor.
    row_buffer_bytes: usize,
    forward: Option<TransformerBlockForward>,
    backward: Option<TransformerBlockBackward>,
}

struct TransformerBlockForward {
    norm: CudaKernel,
    attention: CudaKernel,
    activation: CudaKernel,
}

struct TransformerBlockBackward {
    slope: CudaKernel,
    attention: CudaKernel,
    /// Each adds the residual gradient.
    norms: [RmsNormGradientPlan; 2],
    gradients: BlockGradients,
}

struct BlockLayers {
    qkv: NativeLayer,
    project: NativeLayer,
    up: NativeLayer,
    down: NativeLayer,
}

/// Gradients that stay within the backward pass.
struct BlockGradients {
    hidden: DeviceBuffer,
    up: DeviceBuffer,
    into_mlp: DeviceBuffer,
    attended: DeviceBuffer,
    mixed: DeviceBuffer,
    qkv: DeviceBuffer,
    into_attention: DeviceBuffer,
}

impl NativeArchitecture for TrainedTransformerBlock {
    type ModelPasses = TransformerBlockPasses;

    fn plan_passes(&self, plans: &PassPlanner<'_>) -> Result<TransformerBlockPasses, ZooError> {
        let PassPlanner { machine, spec, .. } = plans;
        let ModelShape { rows, input: k, .. } = self.shape(spec);
        let (rows, k, heads, kind) = (rows as usize, k as usize, HEADS as usize, spec.dtype());
        let (sequences, head, size) = (rows / TOKENS as usize, k / heads, (rows, k));
        let form = RmsNormSpec { gain_is_f32: false, epsilon: normalize::EPSILON as f32 };
        let forward = || {
            Ok(TransformerBlockForward {
                norm: CudaKernel::rms_norm(machine, kind, form, rows, k)?,
                attention: CudaKernel::short_attention(machine, kind, sequences, heads, head)?,
                activation: CudaKernel::activation(machine, kind, Function::Gelu, 4 * rows * k)?,
            })
        };
        let gelu_gradient = ElementwiseFunction::Gradient(Function::Gelu);
        let norm = || RmsNormGradientPlan::new(machine, kind, form, ResidualGradient::Added, size);
        let between = |widths: usize| plans.scratch(widths * rows * k);
        let backward = || {
            Ok(TransformerBlockBackward {
                slope: CudaKernel::elementwise(machine, kind, gelu_gradient, 4 * rows * k)?,
                attention: CudaKernel::short_attention_gradient(machine, kind, sequences, heads, head)?,
                norms: [norm()?, norm()?],
                gradients: BlockGradients {
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
        Ok(TransformerBlockPasses {
            layers: BlockLayers {
                qkv: plans.layer(rows, k, 3 * k)?,
                project: plans.layer(rows, k, k)?,
                up: plans.layer(rows, k, 4 * k)?,
                down: plans.layer(rows, 4 * k, k)?,
            },
            row_buffer_bytes: plans.bytes(rows * k),
            forward: plans.forward_plan(forward)?,
            backward: plans.backward_plan(backward)?,
        })
    }
}

impl NativePasses for TransformerBlockPasses {
    /// Input of the QKV projection; q, k and v; attention output; attention with residual; input of the MLP; hidden
    /// layer before and after GELU.
    fn saved_bytes(&self) -> Vec<usize> {
        [1, 3, 1, 1, 1, 4, 4].map(|widths| widths * self.row_buffer_bytes).into()
    }

    fn forward(
        &mut self,
        PassOperands { input, parameters }: &PassOperands<'_>,
        saved: &mut [DeviceBuffer],
        output: &mut DeviceBuffer,
    ) -> Result<(), NativeError> {
        let Self { layers, forward: there, .. } = self;
        let TransformerBlockForward { norm, attention, activation } = there.as_ref().expect(PASS_IS_PLANNED);
        let [into_attention, qkv, mixed, attended, into_mlp, up, hidden] = saved else {
            unreachable!("{SAVED_BUFFERS}")
        };
        norm.enqueue([*input, parameters[ATTENTION_GAIN]], [&mut *into_attention])?;
        layers.qkv.forward(into_attention, parameters[QKV], None, qkv)?;
        attention.enqueue([&*qkv], [&mut *mixed])?;
        layers.project.forward(mixed, parameters[PROJECT], Some(input), attended)?;
        norm.enqueue([&*attended, parameters[MLP_GAIN]], [&mut *into_mlp])?;
        layers.up.forward(into_mlp, parameters[UP], None, up)?;
        activation.enqueue([&*up], [&mut *hidden])?;
        layers.down.forward(hidden, parameters[DOWN], Some(attended), output)
    }

    fn backward(
        &mut self,
        PassOperands { input, parameters }: &PassOperands<'_>,
        saved: &[DeviceBuffer],
        gradient: &DeviceBuffer,
        gradients: GradientBuffers<'_>,
    ) -> Result<(), NativeError> {
        let Self { layers, backward: back, .. } = self;
        let TransformerBlockBackward { slope, attention, norms: [first_norm, second_norm], gradients: of } =
            back.as_mut().expect(PASS_IS_PLANNED);
        let [into_attention, qkv, mixed, attended, into_mlp, up, hidden] = saved else {
            unreachable!("{SAVED_BUFFERS}")
        };
        let Ok([grad_qkv, grad_project, grad_up, grad_down, grad_first, grad_second]) =
            <[&mut DeviceBuffer; 6]>::try_from(gradients.parameters)
        else {
            unreachable!("six parameters are declared")
        };
        let layer_gradients = LayerGradients { input: (&mut of.hidden, None), weight: grad_down };
        layers.down.backward(gradient, hidden, parameters[DOWN], layer_gradients)?;
        slope.enqueue([up, &of.hidden], [&mut of.up])?;
        let layer_gradients = LayerGradients { input: (&mut of.into_mlp, None), weight: grad_up };
        layers.up.backward(&of.up, into_mlp, parameters[UP], layer_gradients)?;
        let read = [attended, parameters[MLP_GAIN], &of.into_mlp];
        second_norm.enqueue(read, Some(gradient), &mut of.attended, grad_second)?;
        let layer_gradients = LayerGradients { input: (&mut of.mixed, None), weight: grad_project };
        layers.project.backward(&of.attended, mixed, parameters[PROJECT], layer_gradients)?;
        attention.enqueue([qkv, &of.mixed], [&mut of.qkv])?;
        let layer_gradients = LayerGradients { input: (&mut of.into_attention, None), weight: grad_qkv };
        layers.qkv.backward(&of.qkv, into_attention, parameters[QKV], layer_gradients)?;
        first_norm.enqueue(
            [input, parameters[ATTENTION_GAIN], &of.into_attention],
            Some(&of.attended),
            gradients.input,
            grad_first,
        )
    }

    fn kernels(&self) -> Vec<String> {
        let BlockLayers { qkv, project, up, down } = &self.layers;
        let forward = self.forward.iter().flat_map(|TransformerBlockForward { norm, attention, activation }| {
            [norm.algorithm(), attention.algorithm(), activation.algorithm()]
        });
        let backward =
            self.backward.iter().flat_map(|TransformerBlockBackward { slope, attention, norms: [norm, _], .. }| {
                [slope.algorithm(), attention.algorithm(), norm.algorithm()]
            });
        let layers = [qkv, project, up, down].map(NativeLayer::algorithm);
        layers.into_iter().chain(forward).chain(backward).collect()
    }
}

const SAVED_BUFFERS: &str = "seven saved buffers";
