//! Float8 linear layer with gradients, for autodiff backends.

use super::backend::Float8Backend;
use super::float8::Float8Training;
use super::gemms;
use crate::device::QuantBackend;
use burn::tensor::ops::FloatTensor;
use burn::tensor::{Tensor, TensorPrimitive};
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind, binary};
use burn_autodiff::{Autodiff, NodeId};

impl<B: QuantBackend + Float8Backend, C: CheckpointStrategy> Float8Backend for Autodiff<B, C> {
    fn float8_linear(
        input: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        training: Float8Training,
    ) -> FloatTensor<Self> {
        let nodes = [input.node.clone(), weight.node.clone()];
        let prepared = Float8LinearBackward(training).prepare::<C>(nodes).compute_bound().stateful();
        let tracked = (input.is_tracked(), weight.is_tracked());
        match prepared {
            OpsKind::Tracked(mut prepared) => {
                let kept = SavedOperands {
                    input: tracked.1.then(|| prepared.checkpoint(&input)),
                    weight: tracked.0.then(|| prepared.checkpoint(&weight)),
                };
                prepared.finish(kept, B::float8_linear(input.primitive, weight.primitive, training))
            }
            OpsKind::UnTracked(prepared) => {
                prepared.finish(B::float8_linear(input.primitive, weight.primitive, training))
            }
        }
    }
}

/// Backward pass of the layer.
#[derive(Debug)]
struct Float8LinearBackward(Float8Training);

/// Operands saved for the backward pass; each is needed for the gradient of the other.
#[derive(Debug, Clone)]
struct SavedOperands {
    input: Option<NodeId>,
    weight: Option<NodeId>,
}

impl<B: QuantBackend + Float8Backend> Backward<B, 2> for Float8LinearBackward {
    type State = SavedOperands;

    fn backward(self, ops: Ops<SavedOperands, 2>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let SavedOperands { input, weight } = ops.state;
        let mut kept = |node| tensor::<B>(checkpointer.retrieve_node_output(node));
        let (input, weight) = (input.map(&mut kept), weight.map(&mut kept));
        let saved = "operands are saved for tracked gradients";
        binary::<B, _, _>(
            ops.parents,
            ops.node,
            grads,
            |grad| primitive(gemms::grad_input(tensor::<B>(grad), weight.expect(saved), self.0)),
            |grad| primitive(gemms::grad_weight(tensor::<B>(grad), input.expect(saved), self.0)),
        );
    }
}

fn tensor<B: QuantBackend>(primitive: FloatTensor<B>) -> Tensor<B, 2> {
    Tensor::from_primitive(TensorPrimitive::Float(primitive))
}

fn primitive<B: QuantBackend>(tensor: Tensor<B, 2>) -> FloatTensor<B> {
    tensor.into_primitive().tensor()
}
