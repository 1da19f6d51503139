//! Autodiff node that injects a given output gradient, as the layers behind the model would.

use burn::tensor::{Tensor, TensorPrimitive, backend::Backend};
use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::NoCheckpointing;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind, unary};

/// Loss with an arbitrary value whose gradient with respect to `output` is `gradient`.
pub(super) fn loss<B: Backend>(output: Tensor<Autodiff<B>, 2>, gradient: Tensor<B, 2>) -> Tensor<Autodiff<B>, 1> {
    let nothing = Tensor::<B, 1>::zeros([1], (&gradient.device(), gradient.dtype())).into_primitive().tensor();
    let output = output.into_primitive().tensor();
    let loss = match OutputGradient.prepare::<NoCheckpointing>([output.node]).compute_bound().stateful() {
        OpsKind::Tracked(prepared) => prepared.finish(gradient.into_primitive().tensor(), nothing),
        OpsKind::UnTracked(prepared) => prepared.finish(nothing),
    };
    Tensor::from_primitive(TensorPrimitive::Float(loss))
}

#[derive(Debug)]
struct OutputGradient;

impl<B: Backend> Backward<B, 1> for OutputGradient {
    type State = B::FloatTensorPrimitive;

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        unary::<B, _>(ops.parents, ops.node, grads, |_| ops.state);
    }
}
