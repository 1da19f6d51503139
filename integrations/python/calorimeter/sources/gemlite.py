"""gemlite on CUDA: linear layers with quantized weights by Triton kernels, which gemlite tunes in the first launch."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import calorimeter
from calorimeter.registry import require
from calorimeter.torch_functions import closed
from calorimeter.weight_quantizers import float8_rows, hqq_groups, int8_rows, uint4_groups

if TYPE_CHECKING:
    from torch import Tensor

require("gemlite", "torch")

# Name in gemlite.helper and quantization of the weight by recipe. gemlite itself computes other scales than the recipes:
# amax / 127 for int8, and in f32 for both types. gemlite sums float8 products in tensor-core accumulators.
ROWS: dict[str, tuple[str, Callable[[Tensor], tuple[Tensor, Tensor]]]] = {
    "int8wo": ("A16W8_INT8", lambda weight: int8_rows(weight, 2**-23)),
    "gemlitewo-8": ("A16W8_INT8", lambda weight: int8_rows(weight, 1e-5)),
    "float8wo": ("A16W8_FP8", float8_rows),
    "int8dq": ("A8W8_int8_dynamic", lambda weight: int8_rows(weight, 2**-23)),
    "float8dq-row-fast": ("A8W8_fp8_dynamic", float8_rows),
}


def import_libraries() -> None:
    """Import gemlite and PyTorch."""
    global helper
    from gemlite import helper


@calorimeter.implementation(
    "linear", name="gemlite", devices=["cuda"], dtypes=["f16", "bf16"], quantizes=True, libraries=["gemlite", "triton"]
)
def open_gemlite(case: calorimeter.Case, inputs: list[Tensor], outputs: list[Tensor]) -> Callable[[], Tensor]:
    """gemlite."""
    x, weight = inputs
    options = {"device": str(x.device), "dtype": x.dtype}
    if case.recipe in ROWS:
        processor, quantize = ROWS[case.recipe]
        values, scale = quantize(weight)
        return closed(getattr(helper, processor)(**options).from_weights(values, scales=scale), [x])
    if found := re.fullmatch(r"(int4wo|gemlitewo-4)-(\d+)", case.recipe):
        return closed(grouped_layer(weight, found[1], int(found[2]), options), [x])
    raise calorimeter.Unsupported(f"gemlite supports {', '.join(ROWS)}, gemlitewo-4-* and int4wo-* here, not {case.recipe}")


def grouped_layer(weight: Tensor, family: str, group: int, options: dict[str, Any]) -> Callable[[Tensor], Tensor]:
    """Layer of gemlite with 4-bit weights in groups."""
    depth = weight.shape[1]
    if depth % group or depth == group:
        raise calorimeter.Unsupported(f"k must be a multiple of {group} and larger, not {depth}")
    if family == "int4wo":
        values, scale, minimum = uint4_groups(weight, group)
        zero_point = -minimum / scale
    else:
        values, scale, zero_point = hqq_groups(weight, group)
    processor = helper.A16Wn(**options)
    layer = processor.from_weights(values, scale, zero_point, W_nbits=4, group_size=group)
    if family == "int4wo":
        # The kernels add -zero_point * scale after scaling, which gemlite has rounded twice.
        layer.zeros.copy_(minimum.t())
    return layer
