"""Recipes of Calorimeter as configurations of torchao."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from calorimeter.registry import Unsupported


def config(recipe: str) -> Any:
    """Configuration of torchao for a recipe."""
    try:
        import torchao.quantization as ao
    except ImportError:
        raise Unsupported(f"the recipe {recipe} needs torchao") from None
    fast = recipe.endswith("-fast")
    name = recipe.removesuffix("-fast")
    if group := re.fullmatch(r"int4wo-(\d+)(-hqq)?", name):
        return ao.Int4WeightOnlyConfig(group_size=int(group[1]), use_hqq=group[2] is not None, version=1)
    if name in ("float8dq", "float8dq-tensor", "float8dq-row"):
        granularity = ao.PerRow() if name.endswith("row") else ao.PerTensor()
        accumulation = ao.Float8MMConfig(use_fast_accum=fast)
        return ao.Float8DynamicActivationFloat8WeightConfig(granularity=granularity, mm_config=accumulation)
    known = {
        "int8wo": ao.Int8WeightOnlyConfig,
        "int8dq": ao.Int8DynamicActivationInt8WeightConfig,
        "float8wo": ao.Float8WeightOnlyConfig,
    }
    if fast or name not in known:
        raise Unsupported(f"torchao has no configuration for the recipe {recipe} in this version")
    return known[name]()


def convert_to_float8(module: Any, recipe: str) -> Any:
    """Convert the linear layers of a module in place to a training recipe, and return the module."""
    if recipe == "baseline":
        return module
    try:
        from torchao.float8 import Float8LinearConfig, convert_to_float8_training
        from torchao.float8.config import Float8GemmConfig
    except ImportError:
        raise Unsupported(f"the recipe {recipe} needs torchao") from None
    name = recipe.removesuffix("-fast")
    try:
        configuration = Float8LinearConfig.from_recipe_name(name)
    except (AssertionError, ValueError):
        raise Unsupported(f"torchao has no configuration for the training recipe {recipe}") from None
    # torchao accumulates gradients without fast accumulation.
    accumulation = Float8GemmConfig(use_fast_accum=recipe != name)
    configuration = replace(configuration, gemm_config_output=accumulation)
    return convert_to_float8_training(module, config=configuration)


def quantize(module: Any, recipe: str) -> Any:
    """Quantize the linear layers of a module in place by a recipe, and return the module."""
    if recipe != "baseline":
        configuration = config(recipe)
        from torchao.quantization import quantize_

        try:
            quantize_(module, configuration)
        except (AssertionError, NotImplementedError) as error:
            # torchao does not have every configuration on every device.
            raise Unsupported(f"torchao: {str(error)[:200]}") from error
    return module
