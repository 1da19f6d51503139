"""Recipes of Calorimeter as configurations of torchao."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from calorimeter.registry import Unsupported

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# Operators of torchao's C++ extensions by recipe. torchao loads the extensions only with some versions of PyTorch.
EXTENSION_KERNELS = {
    "fp6": "quant_llm_linear",
    "int8adq-int4w-symm": "rowwise_scaled_linear_cutlass_s8s4",
    "marlin-qqq": "marlin_qqq_gemm",
}


def config(recipe: str, device: str, dtype: torch.dtype) -> Any:
    """Configuration of torchao for a recipe on a kind of device, for weights of a dtype."""
    try:
        import torchao.quantization as ao
    except ImportError:
        raise Unsupported(f"the recipe {recipe} needs torchao") from None
    import torch

    if kernel := EXTENSION_KERNELS.get(recipe):
        if not has_kernel(kernel, device):
            reason = f"torchao {version('torchao')} has no kernel {kernel} for {device} and torch {torch.__version__}"
            raise Unsupported(reason)
        return extension_config(recipe)
    fast = recipe.endswith("-fast")
    name = recipe.removesuffix("-fast")
    if name in ("float8dq", "float8dq-tensor", "float8dq-row"):
        granularity = ao.PerRow() if name.endswith("row") else ao.PerTensor()
        accumulation = ao.Float8MMConfig(use_fast_accum=fast)
        return ao.Float8DynamicActivationFloat8WeightConfig(granularity=granularity, mm_config=accumulation)
    if group := re.fullmatch(r"int4wo-(\d+)(-hqq)?", recipe):
        from torchao.dtypes import Int4CPULayout, TensorCoreTiledLayout

        is_hqq = group[2] is not None
        if is_hqq and device == "cpu" and dtype != torch.bfloat16:
            raise Unsupported("torchao stores the scales of HQQ in bf16, as the recipe does, only for bf16 weights")
        layout = Int4CPULayout() if device == "cpu" else TensorCoreTiledLayout(inner_k_tiles=8)
        return ao.Int4WeightOnlyConfig(group_size=int(group[1]), use_hqq=is_hqq, layout=layout, version=1)
    if group := re.fullmatch(r"uintx-(\d)-(\d+)(-hqq)?", recipe):
        return ao.UIntXWeightOnlyConfig(getattr(torch, f"uint{group[1]}"), int(group[2]), use_hqq=group[3] is not None)
    if group := re.fullmatch(r"int8_dynamic_activation_intx_weight-(\d)-(\d+)-(true|false)", recipe):
        mapping = ao.MappingType.ASYMMETRIC if group[3] == "true" else ao.MappingType.SYMMETRIC
        return ao.Int8DynamicActivationIntxWeightConfig(
            weight_dtype=getattr(torch, f"int{group[1]}"),
            weight_granularity=ao.PerGroup(int(group[2])),
            weight_mapping_type=mapping,
        )
    if recipe == "nvfp4":
        from torchao.prototype.mx_formats import NVFP4InferenceConfig

        return NVFP4InferenceConfig()
    known: dict[str, Callable[[], Any]] = {
        "int8wo": ao.Int8WeightOnlyConfig,
        "int8dq": ao.Int8DynamicActivationInt8WeightConfig,
        "int8dq_prefill_wo_decode": lambda: ao.Int8DynamicActivationInt8WeightConfig(weight_only_decode=True),
        "float8wo": ao.Float8WeightOnlyConfig,
    }
    if recipe not in known:
        raise Unsupported(f"torchao has no configuration for the recipe {recipe} in this version")
    return known[recipe]()


def extension_config(recipe: str) -> Any:
    """Configuration for a recipe of `EXTENSION_KERNELS`."""
    import torchao.quantization as ao
    from torchao.dtypes import CutlassInt4PackedLayout, MarlinQQQLayout

    if recipe == "fp6":
        return ao.FPXWeightOnlyConfig(3, 2)
    is_marlin = recipe == "marlin-qqq"
    return ao.Int8DynamicActivationInt4WeightConfig(
        group_size=128 if is_marlin else None,
        mapping_type=ao.MappingType.SYMMETRIC,
        act_mapping_type=ao.MappingType.SYMMETRIC,
        layout=MarlinQQQLayout() if is_marlin else CutlassInt4PackedLayout(),
    )


def has_kernel(name: str, device: str) -> bool:
    """Return true if torchao's extensions for this version of PyTorch contain an operator for a kind of device."""
    import torch

    return torch._C._dispatch_has_kernel_for_dispatch_key(f"torchao::{name}", device.upper())


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
    if recipe == "baseline":
        return module
    import torch

    layers = [layer for layer in module.modules() if isinstance(layer, torch.nn.Linear)]
    try:
        if recipe in ("mxfp8", "mxfp4"):
            for layer in layers:
                layer.weight = torch.nn.Parameter(mx_weight(layer.weight.detach(), recipe), requires_grad=False)
        else:
            weight = layers[0].weight
            configuration = config(recipe, weight.device.type, weight.dtype)
            from torchao.quantization import quantize_

            quantize_(module, configuration)
    except (AssertionError, NotImplementedError) as error:
        # torchao does not have every configuration on every device.
        raise Unsupported(f"torchao: {str(error)[:200]}") from error
    for layer in layers:
        if type(layer.weight) is torch.nn.Parameter:
            raise Unsupported(f"torchao does not quantize a weight of shape {list(layer.weight.shape)} by {recipe}")
        if recipe == "int8dq_prefill_wo_decode":
            add_batch_dimension(layer)
    return module


def mx_weight(weight: Tensor, recipe: str) -> Tensor:
    """Weight in blocks with power-of-two scales, which are rounded up as in Calorimeter's recipes.

    The configurations of torchao round the scales down.
    """
    try:
        from torchao.prototype.mx_formats.config import MXGemmKernelChoice, ScaleCalculationMode
        from torchao.prototype.mx_formats.mx_tensor import MXTensor, QuantizeTensorToMXKwargs
        from torchao.utils import is_sm_at_least_100
    except ImportError:
        raise Unsupported(f"the recipe {recipe} needs torchao with its MX formats") from None
    import torch

    # Without a kernel, torchao multiplies dequantized values.
    kernel = MXGemmKernelChoice.EMULATED
    if weight.is_cuda and weight.dtype == torch.bfloat16 and is_sm_at_least_100():
        if recipe == "mxfp8":
            kernel = MXGemmKernelChoice.CUBLAS
        elif has_kernel("mx_fp4_bf16", "cuda"):
            kernel = MXGemmKernelChoice.CUTLASS
    element = torch.float8_e4m3fn if recipe == "mxfp8" else torch.float4_e2m1fn_x2
    options = {"scaling_mode": ScaleCalculationMode.RCEIL, "gemm_kernel_choice": kernel}
    inputs = QuantizeTensorToMXKwargs(elem_dtype=element, **options)
    return MXTensor.to_mx(weight, element, act_quant_kwargs=inputs, **options)


def add_batch_dimension(layer: torch.nn.Linear) -> None:
    """Give a layer inputs `[1, rows, k]`, of which torchao does not quantize a single row."""
    layer.register_forward_pre_hook(lambda _, inputs: (inputs[0].unsqueeze(0),))
    layer.register_forward_hook(lambda _, inputs, output: output.squeeze(0))
