"""PyTorch on CPU and CUDA, eager and compiled: operators and models. torchao quantizes the layers of models by recipes.

Functions take the inputs of an operator and return its outputs as new tensors, as code that uses PyTorch does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import calorimeter
from calorimeter.registry import require
from calorimeter.torch_functions import EPSILON, closed, vector
from calorimeter.torchao_recipes import convert_to_float8, quantize

if TYPE_CHECKING:
    from torch import Tensor

require("torch")

FLAX_EPSILON = 1e-6
E4M3_MAX = 448.0
# Amax that a static scale is made for, and the scale below which a scale becomes 1.
STATIC_AMAX = 224.0
MIN_SCALE = 1.0842022e-19
LEARNING_RATE, BETAS, ADAM_EPSILON, WEIGHT_DECAY, ADAM_STEP = 0.01, (0.9, 0.999), 1e-8, 0.01, 10

Outputs = Any
Function = Callable[..., Outputs]
Compiler = Callable[[Function], Function]


def import_libraries() -> None:
    """Import PyTorch."""
    global F, module, torch
    import torch
    import torch.nn.functional as F

    from calorimeter.torch_models import module


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": lambda x: F.relu(x),
    "sigmoid": lambda x: torch.sigmoid(x),
    "leakyrelu": lambda x: F.leaky_relu(x),
    "relu6": lambda x: F.relu6(x),
    "gelu": lambda x: F.gelu(x),
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": lambda x: F.silu(x),
    "hardswish": lambda x: F.hardswish(x),
}


def layer_norm(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[1:], vector(gain), vector(bias), EPSILON)


def rms_norm(x: Tensor, gain: Tensor) -> Tensor:
    return F.rms_norm(x, x.shape[1:], vector(gain), EPSILON)


def add_layer_norm(x: Tensor, residual: Tensor, gain: Tensor, bias: Tensor) -> Outputs:
    # The definition of the operator normalizes the sum before it is rounded.
    total = x.float() + residual.float()
    return total.to(x.dtype), layer_norm(total, gain.float(), bias.float()).to(x.dtype)


def mse_loss(x: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(x.float(), target.float())


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    # PyTorch takes 64-bit class indices; the conversion is part of the time.
    return F.cross_entropy(logits.float(), vector(targets).long())


def linear_bias(activation: Callable[[Tensor], Tensor], x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return activation(F.linear(x, weight, vector(bias)))


def swiglu_mlp(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)


def dot(x: Tensor, y: Tensor) -> Tensor:
    return torch.dot(vector(x).float(), vector(y).float())


def flax_rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    return F.rms_norm(x.float(), x.shape[1:], vector(weight), FLAX_EPSILON).to(x.dtype)


def flax_rms_norm_backward(x: Tensor, weight: Tensor, grad: Tensor) -> Outputs:
    wide, grad = x.float(), grad.float()
    scale = torch.rsqrt(wide.square().mean(1, keepdim=True) + FLAX_EPSILON)
    weighted = grad * weight
    shift = (weighted * wide).mean(1, keepdim=True) * scale**3
    return (weighted * scale - wide * shift).to(x.dtype), (wide * scale * grad).sum(0)


def halved_swiglu(x: Tensor) -> Tensor:
    gate, up = x.float().chunk(2, 1)
    return (F.silu(gate) * up).to(x.dtype)


def halved_swiglu_backward(x: Tensor, grad: Tensor) -> Tensor:
    (a, b), grad = x.float().chunk(2, 1), grad.float()
    gate = torch.sigmoid(a)
    silu = a * gate
    return torch.cat([grad * b * (gate + silu * (1 - gate)), grad * silu], 1).to(x.dtype)


def quantize_e4m3(x: Tensor, transpose: bool, static: bool) -> Outputs:
    x = x.t() if transpose else x
    # Operations on bf16 tensors round their results, as the definition of the operator does.
    if static:
        scale = torch.full((1, 1), STATIC_AMAX / E4M3_MAX, device=x.device, dtype=x.dtype)
    else:
        scale = x.abs().amax(1, keepdim=True) / E4M3_MAX
        scale = torch.where(scale < MIN_SCALE, torch.ones_like(scale), scale)
    return (x / scale).clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn), scale.float()


def adamw(weight: Tensor, grad: Tensor, mean: Tensor, square: Tensor) -> Outputs:
    wide, grad = weight.float(), grad.float()
    mean = BETAS[0] * mean + (1 - BETAS[0]) * grad
    square = BETAS[1] * square + (1 - BETAS[1]) * grad * grad
    corrected = mean / (1 - BETAS[0] ** ADAM_STEP)
    root = (square / (1 - BETAS[1] ** ADAM_STEP)).sqrt() + ADAM_EPSILON
    return (wide - LEARNING_RATE * (corrected / root + WEIGHT_DECAY * wide)).to(weight.dtype), mean, square


def sgd(weight: Tensor, grad: Tensor) -> Tensor:
    return (weight.float() - LEARNING_RATE * grad.float()).to(weight.dtype)


def linear_backward(x: Tensor, weight: Tensor, grad: Tensor) -> Outputs:
    return grad @ weight, grad.t() @ x


def linear_forward_backward(x: Tensor, weight: Tensor, grad: Tensor) -> Outputs:
    return F.linear(x, weight), *linear_backward(x, weight, grad)


def linear_adamw_step(x: Tensor, weight: Tensor, grad: Tensor, mean: Tensor, square: Tensor) -> Outputs:
    y, grad_x, grad_weight = linear_forward_backward(x, weight, grad)
    return y, grad_x, *adamw(weight, grad_weight, mean, square)


def linear_sgd_step(x: Tensor, weight: Tensor, grad: Tensor) -> Outputs:
    y, grad_x, grad_weight = linear_forward_backward(x, weight, grad)
    return y, grad_x, sgd(weight, grad_weight)


def gemm(a: Tensor, b: Tensor) -> Tensor:
    return (a @ b).bfloat16()


def float8_gemm(unit: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch._scaled_mm(a, column_major(b), unit, unit, out_dtype=torch.bfloat16)


def scaled_gemm(_: Tensor, a: Tensor, b: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    return torch._scaled_mm(a, column_major(b), rows, columns, out_dtype=torch.bfloat16)


def accumulated_gemm(unit: Tensor, a: Tensor, b: Tensor, rows: Tensor, columns: Tensor, c: Tensor) -> Tensor:
    # PyTorch has no product with a scale per row and outputs in f32.
    return torch._scaled_mm(a, column_major(b), unit, unit, out_dtype=torch.float32) * rows * columns + c


def rowwise_gemm(static: bool, dequantize: bool, unit: Tensor, a: Tensor, b: Tensor) -> Tensor:
    (a, rows), (b, columns) = quantize_e4m3(a, False, static), quantize_e4m3(b, True, static)
    scales = (rows, columns.t()) if dequantize else (unit, unit)
    return torch._scaled_mm(a, b.contiguous().t(), *scales, out_dtype=torch.bfloat16)


def column_major(b: Tensor) -> Tensor:
    """Copy in the only layout in which PyTorch multiplies e4m3 values."""
    return b.t().contiguous().t()


def attention(stage: str, causal: bool, sizes: tuple[int, int, int, int], *inputs: Tensor) -> Tensor:
    query, key, *value = (matrix.view(sizes) for matrix in inputs)
    if stage == "output":
        return F.scaled_dot_product_attention(query, key, value[0], is_causal=causal)
    scores = query @ key.transpose(2, 3) / math.sqrt(sizes[3])
    return scores if stage == "scores" else scores.softmax(3)


def convolution(
    batch_norm: bool, relu: bool, sizes: tuple[tuple[int, ...], ...], x: Tensor, weight: Tensor, *rest: Tensor
) -> Tensor:
    # Views in the memory format torch.channels_last.
    x, weight = x.view(sizes[0]).permute(0, 3, 1, 2), weight.view(sizes[1]).permute(0, 3, 1, 2)
    parameters = [vector(parameter) for parameter in rest]
    padding = (sizes[1][1] - 1) // 2
    if batch_norm:
        mean, variance, gain, bias = parameters
        y = F.batch_norm(F.conv2d(x, weight, padding=padding), mean, variance, gain, bias, False, 0.0, EPSILON)
    else:
        y = F.conv2d(x, weight, parameters[0], padding=padding)
    return (F.relu(y) if relu else y).permute(0, 2, 3, 1)


OPERATORS: dict[str, Function] = {
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "gelu": ACTIVATIONS["gelu"],
    "gelu_tanh": ACTIVATIONS["gelu_tanh"],
    "silu": ACTIVATIONS["silu"],
    "softmax": lambda x: F.softmax(x, dim=1),
    "mse_loss": mse_loss,
    "cross_entropy": cross_entropy,
    "ln_gelu": lambda x, gain, bias: F.gelu(layer_norm(x, gain, bias)),
    "add_ln": add_layer_norm,
    "swiglu": lambda gate, up: F.silu(gate) * up,
    "linear_bias": partial(linear_bias, lambda x: x),
    **{f"linear_bias_{name}": partial(linear_bias, ACTIVATIONS[name]) for name in ("relu", "gelu", "silu")},
    "ln_linear": lambda x, gain, bias, weight: F.linear(layer_norm(x, gain, bias), weight),
    "swiglu_mlp": swiglu_mlp,
    "stream_copy": lambda x: torch.clone(x),
    "stream_scale": lambda x: math.pi * x,
    "stream_add": lambda x, y: torch.add(x, y),
    "stream_triad": lambda x, y: torch.add(x, y, alpha=math.pi),
    "dot": dot,
    "axpy": lambda x, y: torch.add(y, x, alpha=2.5),
    "gemv": lambda a, x: F.linear(x, a),
    "matmul": lambda a, b: torch.matmul(a, b),
    "single_device_hbm_copy": lambda x: torch.clone(x),
    "add": lambda x, y: torch.add(x, y),
    "inference_add": lambda x, y: torch.add(x, y),
    "inference_silu_mul": lambda x, y: F.silu(x) * y,
    "inference_sigmoid": ACTIVATIONS["sigmoid"],
    "swiglu_fwd": halved_swiglu,
    "swiglu_bwd": halved_swiglu_backward,
    "rmsnorm_fwd": flax_rms_norm,
    "inference_rmsnorm": flax_rms_norm,
    "rmsnorm_bwd": flax_rms_norm_backward,
    "quantization": partial(quantize_e4m3, transpose=False, static=False),
    "quantization_static_scaling": partial(quantize_e4m3, transpose=False, static=True),
    "transpose_quantization": partial(quantize_e4m3, transpose=True, static=False),
    "transpose_quantization_static_scaling": partial(quantize_e4m3, transpose=True, static=True),
    "gemm_multiple_run": gemm,
    "gemm_simple": gemm,
    "gemm_throttling": gemm,
    "linear_forward": lambda x, weight: F.linear(x, weight),
    "linear_backward": linear_backward,
    "linear_forward_backward": linear_forward_backward,
    "linear_adamw": adamw,
    "linear_sgd": sgd,
    "linear_adamw_step": linear_adamw_step,
    "linear_sgd_step": linear_sgd_step,
}

# GEMMs with e4m3 values. The first argument is a scale of one.
FLOAT8_GEMMS: dict[str, Function] = {
    "gemm": scaled_gemm,
    "gemm_accum": accumulated_gemm,
    "gemm_fp8_rowwise": partial(rowwise_gemm, False, False),
    "gemm_fp8_rowwise_static_scaling": partial(rowwise_gemm, True, False),
    "gemm_fp8_rowwise_w_dequantize": partial(rowwise_gemm, False, True),
}

# Operators whose definition rounds the scales to bf16.
ROUNDED = ["quantization", "transpose_quantization", "gemm_fp8_rowwise", "gemm_fp8_rowwise_w_dequantize"]

# Last computed stage and mask.
ATTENTION = {
    "qk_scores": ("scores", False),
    "qk_softmax": ("softmax", False),
    "full_attention": ("output", False),
    "attention_4d": ("output", False),
    "attention_4d_causal": ("output", True),
    "attention": ("output", False),
    "attention_causal": ("output", True),
}
# Batch normalization and ReLU.
CONVOLUTIONS = {"conv2d_relu": (False, True), "conv2d_bn": (True, False), "conv2d_bn_relu": (True, True)}
MODELS = ["linear", "transformer_block", *(f"ln_linear_{name}" for name in ACTIVATIONS if name != "gelu_tanh")]


def attention_sizes(case: calorimeter.Case) -> tuple[int, int, int, int]:
    """Batch, heads, sequence and size of a head."""
    axes = case.axes
    return axes["batch"], axes.get("heads", 1), axes["sequence"], axes.get("head_dim", axes.get("dimension", 0))


def model(name: str, parameters: list[Tensor]) -> torch.nn.Module:
    """Model by its name, with its parameters."""
    return module(name, ACTIVATIONS.get(name.removeprefix("ln_linear_")), parameters)


def function(case: calorimeter.Case, inputs: list[Tensor]) -> tuple[Function, list[Any]]:
    """Function of a case, and its arguments."""
    if case.subject in MODELS:
        x, *weights = inputs
        return quantize(model(case.subject, weights).eval(), case.recipe), [x]
    if case.subject in ATTENTION:
        return attention, [*ATTENTION[case.subject], attention_sizes(case), *inputs]
    if case.subject in CONVOLUTIONS:
        size, kernel, channels = case["size"], case["kernel"], case["in_channels"]
        sizes = (case["batch"], size, size, channels), (case["out_channels"], kernel, kernel, channels)
        return convolution, [*CONVOLUTIONS[case.subject], sizes, *inputs]
    is_float8 = case.subject.startswith("gemm_") and inputs[0].dtype.itemsize == 1
    if is_float8 or case.subject in FLOAT8_GEMMS:
        if case["k"] % 16 or case["n"] % 16:
            raise calorimeter.Unsupported("PyTorch multiplies e4m3 values only if k and n are multiples of 16")
        unit = torch.ones((), device=inputs[0].device)
        return FLOAT8_GEMMS.get(case.subject, float8_gemm), [unit, *inputs]
    return OPERATORS[case.subject], inputs


# Passes by autograd. Passes of `linear` without a recipe are written as functions.
TRAINING = [f"{name}_{step}" for name in [*MODELS, "swiglu_mlp"] for step in ("forward", "forward_backward")]
SUBJECTS = list(dict.fromkeys([*OPERATORS, *FLOAT8_GEMMS, *ATTENTION, *CONVOLUTIONS, *MODELS, *TRAINING]))
OPTIONS: dict[str, Any] = {
    "devices": ["cpu", "cuda"],
    "quantizes": True,
    "libraries": ["torchao"],
    "channels_last": True,
}
register = partial(calorimeter.implementation, *SUBJECTS, **OPTIONS)


def open_case(case: calorimeter.Case, inputs: list[Tensor], compiler: Compiler) -> Callable[[], Outputs]:
    """Function of a case, compiled by a compiler."""
    if case.subject in TRAINING and (case.recipe != "baseline" or case.subject not in OPERATORS):
        return training_pass(case, inputs, compiler)
    if case.recipe != "baseline" and case.subject not in MODELS:
        raise calorimeter.Unsupported("torchao's float8 layers run the forward pass, or forward and backward together")
    call, arguments = function(case, inputs)
    return closed(compiler(call), arguments)


def training_pass(case: calorimeter.Case, inputs: list[Tensor], compiler: Compiler) -> Callable[[], Outputs]:
    """Forward pass of a model, or forward pass and gradients of the input and of all parameters."""
    name, _, backward = case.subject.partition("_forward")
    x, *parameters = inputs
    grads = [parameters.pop()] if backward else []
    trained = convert_to_float8(model(name, parameters), case.recipe).requires_grad_()
    forward = compiler(trained)
    if not grads:
        return closed(forward, [x])
    operands = [x.detach().requires_grad_(), *trained.parameters()]

    def forward_backward() -> Outputs:
        y = forward(operands[0])
        return y.detach(), *torch.autograd.grad(y, operands, grads)

    return forward_backward


def open_with_mode(case: calorimeter.Case, inputs: list[Tensor], mode: str | None) -> Callable[[], Outputs]:
    """Function of a case, compiled by torch.compile."""
    if case.subject in ROUNDED:
        raise calorimeter.Unsupported("torch.compile omits the rounding of scales to bf16, which the operator defines")

    def compiler(call: Function) -> Function:
        # A cache of models would keep their weights after a case is closed.
        return (compiled if isinstance(call, torch.nn.Module) else compiled_once)(call, mode)

    return open_case(case, inputs, compiler)


def compiled(call: Function, mode: str | None) -> Function:
    """Compiled function; PyTorch compiles it again for each size."""
    # The import takes seconds.
    from torch._dynamo import config

    # Beyond the limit PyTorch would run a function eagerly.
    config.recompile_limit = config.accumulated_recompile_limit = 1 << 30
    return torch.compile(call, mode=mode, fullgraph=True, dynamic=False)


compiled_once = lru_cache(maxsize=None)(compiled)


@register(name="torch")
def open_eager(case: calorimeter.Case, inputs: list[Tensor], outputs: list[Tensor]) -> Callable[[], Outputs]:
    """PyTorch in eager mode."""
    return open_case(case, inputs, lambda call: call)


@register(name="torch-compile")
def open_compiled(case: calorimeter.Case, inputs: list[Tensor], outputs: list[Tensor]) -> Callable[[], Outputs]:
    """PyTorch, compiled by torch.compile."""
    return open_with_mode(case, inputs, None)


@register(name="torch-compile-max")
def open_autotuned(case: calorimeter.Case, inputs: list[Tensor], outputs: list[Tensor]) -> Callable[[], Outputs]:
    """PyTorch, compiled by torch.compile with the mode max-autotune-no-cudagraphs."""
    return open_with_mode(case, inputs, "max-autotune-no-cudagraphs")
