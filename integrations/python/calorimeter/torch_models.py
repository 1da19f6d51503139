"""Models of Calorimeter as modules of PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from calorimeter.registry import Case
from calorimeter.torch_functions import EPSILON, layer
from calorimeter.torchao_recipes import quantize

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


class TransformerBlock(torch.nn.Module):
    """Attention and MLP with RMS norms of unit gain and residuals."""

    def __init__(self, weights: list[Tensor]) -> None:
        super().__init__()
        self.qkv, self.project, self.up, self.down = (layer(weight) for weight in weights)

    def forward(self, x: Tensor) -> Tensor:
        rows, width = x.shape
        normalized = F.rms_norm(x, (width,), None, EPSILON)
        heads = self.qkv(normalized).view(rows // TOKENS, TOKENS, 3, HEADS, width // HEADS)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value)
        x = x + self.project(mixed.transpose(1, 2).reshape(rows, width))
        return x + self.down(F.gelu(self.up(F.rms_norm(x, (width,), None, EPSILON))))


def model(case: Case, activation: Callable[[Tensor], Tensor] | None, weights: list[Tensor]) -> torch.nn.Module:
    """Model of a case, quantized by its recipe."""
    module = TransformerBlock(weights) if case.subject == "transformer_block" else NormLinear(activation, weights)
    return quantize(module.eval(), case.recipe)
