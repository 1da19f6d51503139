"""Models of Calorimeter as modules of PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from calorimeter.torch_functions import EPSILON, layer, vector

HEADS, TOKENS = 8, 16


class NormLinear(torch.nn.Module):
    """Linear layer; with an activation, also a layer normalization before it."""

    def __init__(self, activation: Callable[[Tensor], Tensor] | None, weights: list[Tensor]) -> None:
        super().__init__()
        self.activation = activation
        self.linear = layer(weights[0])

    def forward(self, x: Tensor) -> Tensor:
        if self.activation is None:
            return self.linear(x)
        return self.activation(self.linear(F.layer_norm(x, x.shape[1:], None, None, EPSILON)))


class SwigluMlp(torch.nn.Module):
    """Gated MLP."""

    def __init__(self, weights: list[Tensor]) -> None:
        super().__init__()
        self.gate, self.up, self.down = (layer(weight) for weight in weights)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class TransformerBlock(torch.nn.Module):
    """Attention and MLP with RMS norms and residuals. Without gains in the parameters, gains are one."""

    def __init__(self, parameters: list[Tensor]) -> None:
        super().__init__()
        self.qkv, self.project, self.up, self.down = (layer(weight) for weight in parameters[:4])
        width = self.qkv.in_features
        self.norms = torch.nn.ModuleList(rms_norm(width, gain) for gain in parameters[4:] or (None, None))

    def forward(self, x: Tensor) -> Tensor:
        rows, width = x.shape
        heads = self.qkv(self.norms[0](x)).view(rows // TOKENS, TOKENS, 3, HEADS, width // HEADS)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value)
        x = x + self.project(mixed.transpose(1, 2).reshape(rows, width))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


def rms_norm(width: int, gain: Tensor | None) -> torch.nn.RMSNorm:
    """RMS normalization that uses a gain in place."""
    norm = torch.nn.RMSNorm(width, EPSILON, elementwise_affine=False)
    if gain is not None:
        norm.weight = torch.nn.Parameter(vector(gain))
    return norm


def module(name: str, activation: Callable[[Tensor], Tensor] | None, parameters: list[Tensor]) -> torch.nn.Module:
    """Model by its name, with the parameters of Calorimeter's definition in their order."""
    if name in ("swiglu_mlp", "transformer_block"):
        return (SwigluMlp if name == "swiglu_mlp" else TransformerBlock)(parameters)
    return NormLinear(activation, parameters)
