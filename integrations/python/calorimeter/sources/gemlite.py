"""gemlite on CUDA: linear layers with 8-bit weights by Triton kernels, which gemlite tunes in the first launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import calorimeter
from calorimeter.registry import require
from calorimeter.torch_functions import closed, layer

if TYPE_CHECKING:
    from torch import Tensor

require("gemlite", "torch")

# Names in gemlite.helper by recipe. gemlite sums float8 products in tensor-core accumulators.
PROCESSORS = {
    "int8wo": "A16W8_INT8",
    "float8wo": "A16W8_FP8",
    "int8dq": "A8W8_int8_dynamic",
    "float8dq-row-fast": "A8W8_fp8_dynamic",
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
    if case.recipe not in PROCESSORS:
        raise calorimeter.Unsupported(f"gemlite supports {', '.join(PROCESSORS)} here, not {case.recipe}")
    processor = getattr(helper, PROCESSORS[case.recipe])(device=str(x.device), dtype=x.dtype)
    return closed(processor.from_linear(layer(weight), del_orig=False), [x])
