"""JAX on CPU and CUDA: compiled functions of operators, and linear layers. PyTorch holds the shared buffers."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import calorimeter
from calorimeter.registry import require

if TYPE_CHECKING:
    from jax import Array
    from torch import Tensor

require("jax", "torch")

EPSILON = 1e-5


def import_libraries() -> None:
    """Import JAX, with settings for benchmarks."""
    global jax, jnp, nn
    # JAX would reserve most of the memory of the GPU.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import jax.numpy as jnp
    from jax import nn

    # Products of f32 matrices on a GPU would use TF32.
    jax.config.update("jax_default_matmul_precision", "highest")


def wide(x: Array) -> Array:
    """Values in f32."""
    return x.astype(jnp.float32)


def normalize(x: Array) -> Array:
    """Layer normalization in f32, without gain and bias."""
    x = wide(x)
    centered = x - x.mean(1, keepdims=True)
    return centered * jax.lax.rsqrt(jnp.square(centered).mean(1, keepdims=True) + EPSILON)


def layer_norm(x: Array, gain: Array, bias: Array) -> Array:
    return (normalize(x) * gain + bias).astype(x.dtype)


def rms_norm(x: Array, gain: Array) -> Array:
    values = wide(x)
    scale = jax.lax.rsqrt(jnp.square(values).mean(1, keepdims=True) + EPSILON)
    return (values * scale * gain).astype(x.dtype)


def add_layer_norm(x: Array, residual: Array, gain: Array, bias: Array) -> tuple[Array, Array]:
    total = wide(x) + wide(residual)
    return total.astype(x.dtype), (normalize(total) * gain + bias).astype(x.dtype)


def in_f32(function: Callable[..., Array]) -> Callable[..., Array]:
    """Function that computes in f32 and rounds once."""
    return lambda *inputs: function(*map(wide, inputs)).astype(inputs[0].dtype)


def cross_entropy(logits: Array, targets: Array) -> Array:
    return -jnp.take_along_axis(nn.log_softmax(wide(logits)), targets, 1).mean()


def swiglu_mlp(x: Array, gate: Array, up: Array, down: Array) -> Array:
    return (nn.silu(x @ gate.T) * (x @ up.T)) @ down.T


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: nn.relu(x),
    "sigmoid": lambda x: nn.sigmoid(x),
    "leakyrelu": lambda x: nn.leaky_relu(x),
    "relu6": lambda x: nn.relu6(x),
    "gelu": lambda x: nn.gelu(x, approximate=False),
    "silu": lambda x: nn.silu(x),
    "hardswish": lambda x: nn.hard_swish(x),
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "gelu": in_f32(ACTIVATIONS["gelu"]),
    "gelu_tanh": in_f32(lambda x: nn.gelu(x)),
    "silu": in_f32(ACTIVATIONS["silu"]),
    "softmax": in_f32(lambda x: nn.softmax(x)),
    "mse_loss": lambda x, target: jnp.square(wide(x) - wide(target)).mean(),
    "cross_entropy": cross_entropy,
    "ln_gelu": lambda x, gain, bias: ACTIVATIONS["gelu"](normalize(x) * gain + bias).astype(x.dtype),
    "add_ln": add_layer_norm,
    "swiglu": in_f32(lambda gate, up: nn.silu(gate) * up),
    "linear_bias": lambda x, weight, bias: x @ weight.T + bias,
    **{
        f"linear_bias_{name}": lambda x, weight, bias, name=name: ACTIVATIONS[name](x @ weight.T + bias)
        for name in ("relu", "gelu", "silu")
    },
    "ln_linear": lambda x, gain, bias, weight: layer_norm(x, gain, bias) @ weight.T,
    "swiglu_mlp": swiglu_mlp,
    "stream_scale": lambda x: math.pi * x,
    "stream_add": lambda x, y: x + y,
    "stream_triad": lambda x, y: x + math.pi * y,
    "dot": lambda x, y: wide(x)[0] @ wide(y)[0],
    "axpy": lambda x, y: 2.5 * x + y,
    "gemv": lambda a, x: x @ a.T,
    "matmul": lambda a, b: a @ b,
    "linear": lambda x, weight: x @ weight.T,
    **{
        f"ln_linear_{name}": lambda x, weight, name=name: ACTIVATIONS[name](normalize(x).astype(x.dtype) @ weight.T)
        for name in ACTIVATIONS
    },
}


@lru_cache(maxsize=None)
def compiled(name: str) -> Callable[..., Any]:
    """Compiled function of an operator or model."""
    return jax.jit(FUNCTIONS[name])


@calorimeter.implementation(*FUNCTIONS, name="jax", devices=["cpu", "cuda"], libraries=["jax"])
def open_jax(case: calorimeter.Case, inputs: list[Tensor], outputs: list[Tensor]) -> Callable[[], Any]:
    """JAX, compiled by XLA."""
    function, arguments = compiled(case.subject), [jax.dlpack.from_dlpack(tensor) for tensor in inputs]
    if case.device.startswith("cuda"):
        return lambda: function(*arguments)
    # On the CPU, JAX runs functions in the background.
    return lambda: jax.block_until_ready(function(*arguments))
