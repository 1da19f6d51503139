"""Weights quantized by Calorimeter's recipes, for libraries that accept quantized weights `[n, k]`.

Steps on tensors round to the dtype of the weight, as the recipes define.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from calorimeter.registry import Unsupported

if TYPE_CHECKING:
    from torch import Tensor

E4M3_MAX = 448.0


def int8_rows(weight: Tensor, min_scale: float) -> tuple[Tensor, Tensor]:
    """int8 values and an f32 scale per row, by the recipes `int8wo` and `gemlitewo-8`."""
    import torch

    scale = (weight.abs().amax(1, keepdim=True) / 127.5).clamp(min=min_scale)
    # The inverse of a tiny scale may be infinite.
    values = (weight * (1 / scale)).nan_to_num(nan=0.0).round().clamp(-128, 127)
    return values.to(torch.int8), scale.float()


def float8_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """e4m3 values and an f32 scale per row, by the recipe `float8wo`."""
    import torch

    scale = (weight.abs().amax(1, keepdim=True) / E4M3_MAX).float().clamp(min=1e-12)
    return (weight.float() / scale).clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn), scale


def uint4_groups(weight: Tensor, group: int) -> tuple[Tensor, Tensor, Tensor]:
    """4-bit values, a scale and a minimum per group, by the recipes `int4wo-{group}`.

    A weight is value * scale + minimum.
    """
    import torch

    groups = weight.view(weight.shape[0], -1, group)
    low, high = groups.amin(2, keepdim=True), groups.amax(2, keepdim=True)
    scale = ((high - low) / 15).clamp(min=1e-6)
    middle = low + scale * 8
    minimum = middle - scale * 8
    values = ((groups - minimum) / scale).round().clamp(0, 15)
    return values.to(torch.uint8).view(weight.shape), scale.squeeze(2), minimum.squeeze(2)


def hqq_groups(weight: Tensor, group: int) -> tuple[Tensor, Tensor, Tensor]:
    """4-bit values, a scale and a zero point per group by half-quadratic quantization, as in `gemlitewo-4-{group}`.

    A weight is (value - zero point) * scale.
    """
    import torch

    try:
        from torchao.quantization.quant_primitives import _choose_qparams_and_quantize_affine_hqq as quantize
    except ImportError:
        raise Unsupported("half-quadratic quantization needs torchao 0.14.1") from None
    options = {"nbits": 4, "group_size": group, "compute_dtype": weight.dtype, "device": weight.device}
    values, scale, zero_point, _ = quantize(weight, raw_output=True, **options)
    per_row = weight.shape[0], -1
    return values.to(torch.uint8).view(weight.shape), scale.view(per_row), zero_point.view(per_row)
