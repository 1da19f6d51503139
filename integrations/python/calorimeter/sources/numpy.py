"""NumPy on the CPU: the operators of the op suite, linear layers and BLAS routines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import calorimeter

# Calorimeter's definitions of normalizations use this constant.
EPSILON = np.float32(1e-5)
SQRT_HALF = np.float32(0.5**0.5)

Array = Any
Run = Callable[[], Any]
DTYPES = ["f32"]


def register(*subjects: str) -> Callable[[Any], Any]:
    """Register an implementation named ``numpy``."""
    return calorimeter.implementation(*subjects, name="numpy", arrays="numpy", dtypes=DTYPES)


def erf(x: Array) -> Array:
    """Error function, with an absolute error of at most 1.5e-7 (Abramowitz and Stegun 7.1.26, in double precision)."""
    x = x.astype(np.float64)
    t = 1 / (1 + 0.3275911 * np.abs(x))
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.copysign(1 - series * np.exp(-x * x), x)


def gelu(x: Array) -> Array:
    """GELU by the error function."""
    return (0.5 * x * (1 + erf(x * SQRT_HALF))).astype(np.float32)


def gelu_tanh(x: Array) -> Array:
    """GELU by the hyperbolic tangent."""
    return 0.5 * x * (1 + np.tanh(np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)))


def sigmoid(x: Array) -> Array:
    """Logistic function, without overflow for large negative values."""
    return np.float32(0.5) * (1 + np.tanh(np.float32(0.5) * x))


def silu(x: Array) -> Array:
    """SiLU."""
    return x * sigmoid(x)


def layer_norm(x: Array, gain: Array | None = None, bias: Array | None = None) -> Array:
    """Layer normalization of rows."""
    centered = x - x.mean(axis=1, keepdims=True)
    normalized = centered / np.sqrt(np.mean(centered * centered, axis=1, keepdims=True) + EPSILON)
    return normalized if gain is None else normalized * gain + bias


def softmax(x: Array) -> Array:
    """Softmax of rows."""
    exponentials = np.exp(x - x.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": sigmoid,
    "leakyrelu": lambda x: np.where(x < 0, np.float32(0.01) * x, x),
    "relu6": lambda x: np.clip(x, 0, 6),
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "silu": silu,
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
}


@register("gelu", "gelu_tanh", "silu")
def open_activation(case: calorimeter.Case, inputs: list[Array], outputs: list[Array]) -> Run:
    """NumPy."""
    (x,), (y,), function = inputs, outputs, ACTIVATIONS[case.subject]

    def run() -> None:
        y[:] = function(x)

    return run


@register("softmax")
def open_softmax(case: calorimeter.Case, inputs: list[Array], outputs: list[Array]) -> Run:
    """NumPy."""
    (x,), (y,) = inputs, outputs

    def run() -> None:
        y[:] = softmax(x)

    return run


@register("layer_norm", "ln_gelu")
def open_layer_norm(case: calorimeter.Case, inputs: list[Array], outputs: list[Array]) -> Run:
    """NumPy."""
    (x, gain, bias), (y,) = inputs, outputs
    after = gelu if case.subject == "ln_gelu" else lambda values: values

    def run() -> None:
        y[:] = after(layer_norm(x, gain, bias))

    return run


@register("add_ln")
def open_add_ln(case: calorimeter.Case, inputs: list[Array], outputs: list[Array]) -> Run:
    """NumPy."""
    (x, residual, gain, bias), (total, normalized) = inputs, outputs

    def run() -> None:
        np.add(x, residual, out=total)
        normalized[:] = layer_norm(total, gain, bias)

    return run


@register("rms_norm")
def open_rms_norm(case: calorimeter.Case, inputs: list[Array], outputs: list[Array]) -> Run:
    """NumPy."""
    (x, gain), (y,) = inputs, outputs

    def run() -> None:
        y[:] = x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + EPSILON) * gain

    return run


@register("swiglu")
def open_swiglu(case: calorimeter.Case, inputs: list[Array], outputs: list[Array]) -> Run:
    """NumPy."""
    (gate, up), (y,) = inputs, outputs

    def run() -> None:
        np.multiply(silu(gate), up, out=y)

    return run


@register("mse_loss")
def open_mse_loss(case: calorimeter.Case, inputs: list[Array], outputs: list[Array]) -> Run:
    """NumPy."""
    (x, target), (loss,) = inputs, outputs

    def run() -> None:
        difference = x - target
        loss[0, 0] = np.mean(difference * difference)

    return run


@register("cross_entropy")
def open_cross_entropy(case: calorimeter.Case, inputs: list[Array], outputs: list[Array]) -> Run:
    """NumPy."""
    (logits, targets), (loss,) = inputs, outputs
    rows, targets = np.arange(len(logits)), targets[:, 0]

    def run() -> None:
        largest = logits.max(axis=1)
        log_sum = np.log(np.exp(logits - largest[:, None]).sum(axis=1)) + largest
        loss[0, 0] = np.mean(log_sum - logits[rows, targets])

    return run


@register("linear")
def open_linear(case: calorimeter.Case, inputs: list[Array], outputs: list[Array]) -> Run:
    """NumPy."""
    (x, weight), (y,) = inputs, outputs
    return lambda: np.matmul(x, weight.T, out=y)


@register(*(f"ln_linear_{name}" for name in ACTIVATIONS if name != "gelu_tanh"))
def open_ln_linear(case: calorimeter.Case, inputs: list[Array], outputs: list[Array]) -> Run:
    """NumPy."""
    (x, weight), (y,) = inputs, outputs
    activation = ACTIVATIONS[case.subject.removeprefix("ln_linear_")]

    def run() -> None:
        y[:] = activation(layer_norm(x) @ weight.T)

    return run


@register("linear_bias", "linear_bias_relu", "linear_bias_gelu", "linear_bias_silu")
def open_linear_bias(case: calorimeter.Case, inputs: list[Array], outputs: list[Array]) -> Run:
    """NumPy."""
    (x, weight, bias), (y,) = inputs, outputs
    activation = ACTIVATIONS.get(case.subject.removeprefix("linear_bias_"), lambda values: values)

    def run() -> None:
        y[:] = activation(x @ weight.T + bias)

    return run


@register("ln_linear")
def open_ln_linear_operator(case: calorimeter.Case, inputs: list[Array], outputs: list[Array]) -> Run:
    """NumPy."""
    (x, gain, bias, weight), (y,) = inputs, outputs
    return lambda: np.matmul(layer_norm(x, gain, bias), weight.T, out=y)


@register("swiglu_mlp")
def open_swiglu_mlp(case: calorimeter.Case, inputs: list[Array], outputs: list[Array]) -> Run:
    """NumPy."""
    (x, gate, up, down), (y,) = inputs, outputs
    return lambda: np.matmul(silu(x @ gate.T) * (x @ up.T), down.T, out=y)


@register("matmul", "gemv", "dot")
def open_product(case: calorimeter.Case, inputs: list[Array], outputs: list[Array]) -> Run:
    """NumPy."""
    (a, b), (y,) = inputs, outputs
    if case.subject == "matmul":
        return lambda: np.matmul(a, b, out=y)
    # A vector is a matrix of one row.
    return lambda: np.matmul(b, a.T, out=y)
