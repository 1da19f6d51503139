"""Functions that sources with tensors of PyTorch share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# Calorimeter's definitions of normalizations use this constant.
EPSILON = 1e-5


def vector(parameter: Tensor) -> Tensor:
    """One row as a vector."""
    return parameter.view(-1)


def layer(weight: Tensor) -> torch.nn.Linear:
    """Linear layer that uses a weight in place."""
    import torch

    module = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    module.weight = torch.nn.Parameter(weight, requires_grad=False)
    return module


def closed(call: Callable[..., Any], arguments: list[Any]) -> Callable[[], Any]:
    """Function without arguments and without gradients."""
    import torch

    return torch.no_grad()(partial(call, *arguments))
