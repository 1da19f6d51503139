"""gemlite on CUDA: linear layers with 8-bit weights by Triton kernels, which gemlite tunes in the first launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gemlite import helper
from torch import Tensor

import calorimeter
from calorimeter.torch_functions import closed, layer

# gemlite sums float8 products in tensor-core accumulators.
PROCESSORS: dict[str, Callable[..., Any]] = {
    "int8wo": helper.A16W8_INT8,
    "float8wo": helper.A16W8_FP8,
    "int8dq": helper.A8W8_int8_dynamic,
    "float8dq-row-fast": helper.A8W8_fp8_dynamic,
}


@calorimeter.implementation(
    "linear", name="gemlite", devices=["cuda"], dtypes=["f16", "bf16"], quantizes=True, libraries=["gemlite", "triton"]
)
def open_gemlite(case: calorimeter.Case, inputs: list[Tensor], outputs: list[Tensor]) -> Callable[[], Tensor]:
    """gemlite."""
    x, weight = inputs
    if case.recipe not in PROCESSORS:
        raise calorimeter.Unsupported(f"gemlite supports {', '.join(PROCESSORS)} here, not {case.recipe}")
    processor = PROCESSORS[case.recipe](device=str(x.device), dtype=x.dtype)
    return closed(processor.from_linear(layer(weight), del_orig=False), [x])
