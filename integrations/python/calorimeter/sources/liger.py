"""Liger kernels in Triton on CUDA: forward passes of row operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import calorimeter
from calorimeter.registry import require
from calorimeter.torch_functions import EPSILON, closed, vector

if TYPE_CHECKING:
    from torch import Tensor

require("liger_kernel", "torch")


def import_libraries() -> None:
    """Import Liger and PyTorch."""
    global LigerSoftmaxFunction, cross_entropy_forward, layer_norm_forward, rms_norm_forward, swiglu_forward
    from liger_kernel.ops.cross_entropy import cross_entropy_forward
    from liger_kernel.ops.layer_norm import layer_norm_forward
    from liger_kernel.ops.rms_norm import rms_norm_forward
    from liger_kernel.ops.softmax import LigerSoftmaxFunction
    from liger_kernel.ops.swiglu import swiglu_forward


def rms_norm(x: Tensor, gain: Tensor) -> Tensor:
    """Normalization and gain in f32."""
    return rms_norm_forward(x, vector(gain), EPSILON, 0.0, "gemma", None)[0]


def layer_norm(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    return layer_norm_forward(x, vector(gain), vector(bias), EPSILON)[0]


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    # Liger takes 64-bit class indices; the conversion is part of the time.
    settings: dict[str, Any] = {"weight": None, "ignore_index": -100, "lse_square_scale": 0.0, "label_smoothing": 0.0}
    options: dict[str, Any] = {"reduction": "mean", "softcap": None, "return_z_loss": False}
    return cross_entropy_forward(logits, vector(targets).long(), **settings, **options)[0]


OPERATORS: dict[str, Callable[..., Tensor]] = {
    "rms_norm": rms_norm,
    "layer_norm": layer_norm,
    "softmax": lambda x: LigerSoftmaxFunction.apply(x),
    "swiglu": lambda gate, up: swiglu_forward(gate, up)[2],
    "cross_entropy": cross_entropy,
}


@calorimeter.implementation(*OPERATORS, name="liger", devices=["cuda"], libraries=["liger_kernel", "triton"])
def open_liger(case: calorimeter.Case, inputs: list[Tensor], outputs: list[Tensor]) -> Callable[[], Tensor]:
    """Liger."""
    if case.subject == "cross_entropy" and case.dtype != "f32":
        raise calorimeter.Unsupported(f"Liger rounds the loss to {case.dtype}, and Calorimeter defines it in f32")
    return closed(OPERATORS[case.subject], inputs)
