#!/usr/bin/env python3
"""Writes golden vectors: the values that torchao computes for each quantization recipe.

One small safetensors file per recipe, weight dtype and kind of data goes into the directory
given as argument. `summary.json` lists all cases, with the reasons of those that failed. The
Rust implementation of the recipes is tested against these files.

Pinned versions: torchao 0.14.1 with torch 2.11.0, on the CPU. The GPU is hidden, because CUDA
rounds a few operations differently. torchao's C++ extensions are not used; 0.14.1 does not load
them under torch 2.11.

Usage (needs no GPU; the last command needs no network and takes less than a minute):

    pip download --no-deps torchao==0.14.1        # on a machine with a network
    unzip -d torchao-0.14.1 torchao-0.14.1-*.whl
    PYTHONPATH=torchao-0.14.1 python3 tools/golden_vectors.py OUT_DIR [--only TEXT]

Tensors in a file, if the recipe has them (bf16 and f16 values are widened to F32):

    weight (n,k)              exact in the dtype named in the metadata
    input (m,k)               exact in the dtype named in the metadata
    codes (n,k)               quantized values as I8 or U8: float8 as raw bytes; fp4, fp6 and
                              uintx unpacked, one value per byte
    scales, zeros             as stored by torchao; e8m0 and e4m3 block scales as raw U8
    tensor_scale              second-level scale of NVFP4 (1,)
    input_codes, input_scales, input_zeros, input_tensor_scale
    dequantized (n,k)         result of torchao's dequantize, in the dtype of the weight
    output (m,n)              result of the quantized linear layer

Tensors of single recipes:

    pruned                    weight after 2:4 pruning
    group_scales              marlin-qqq: stored group ratios
    reference_weight          marlin-qqq: torchao's reference of the weight that the kernel uses
    output_cpu_kernel         float8dq-tensor through `_scaled_mm`
    output_weight_only        nvfp4

Quantized values, scales, zero points and dequantized weights are exact. The last bit of an
output, and of an HQQ zero point, may depend on the order of a summation.

Metadata `path` names the way in which the weight was quantized: `quantize_` (the public entry
point), or `primitives` if a CPU cannot build the packed layout of the recipe. In that case
torchao's quantization functions are called with the arguments of the recipe and a plain layout.
Metadata `output_path` names the origin of `output`: `torchao` (its own linear layer), or
`emulated: ...` with the formula that was used, if the kernel needs a GPU.

Weight rows of the `edge` data (row mod 8): 0 normal, 1 all zero, 2 constant, 3 small with one
huge outlier, 4 around the smallest normal number of the dtype, 5 one-sided positive, 6 like a
real weight (std 0.02), 7 multiples of 1/8 (rounding ties). Tokens: 0 normal, 1 scaled up,
2 all zero, 3 with an outlier, 4 one-sided. The `normal` data are normally distributed.
"""

import argparse
import json
import os
import struct
import sys
import traceback
import warnings

os.environ["CUDA_VISIBLE_DEVICES"] = ""
warnings.simplefilter("ignore")

import torch
import torchao
from torchao.quantization import quant_api as api
from torchao.quantization import quant_primitives as prim
from torchao.quantization.granularity import PerAxis, PerGroup, PerRow, PerTensor
from torchao.dtypes import to_affine_quantized_floatx, to_affine_quantized_intx
from torchao.dtypes.utils import PlainLayout

SEED = 20240607
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
SAFETENSORS_DTYPES = {
    torch.float32: "F32",
    torch.int32: "I32",
    torch.int8: "I8",
    torch.uint8: "U8",
}
SYMMETRIC = prim.MappingType.SYMMETRIC
ASYMMETRIC = prim.MappingType.ASYMMETRIC


# ---------------------------------------------------------------- data


def normal(generator, *shape):
    return torch.randn(*shape, generator=generator)


def edge_weight_row(index, k, smallest_normal, generator):
    row = normal(generator, k)
    kind = index % 8
    if kind == 1:
        row = torch.zeros(k)
    elif kind == 2:
        row = torch.full((k,), 0.7 if index < 8 else -1.3)
    elif kind == 3:
        row = row * 0.05
        row[k // 3] = 60.0 if index < 8 else -60.0
    elif kind == 4:
        row = row * (2.0 * smallest_normal)
    elif kind == 5:
        row = row.abs() + 0.25
    elif kind == 6:
        row = row * 0.02
    elif kind == 7:
        row = (row * 8).round() / 8
    return row


def make_weight(n, k, dtype, data, generator):
    if data == "normal":
        return normal(generator, n, k).to(dtype)
    smallest_normal = torch.finfo(dtype).tiny
    rows = [edge_weight_row(i, k, smallest_normal, generator) for i in range(n)]
    return torch.stack(rows).to(dtype)


def make_input(m, k, dtype, data, generator):
    x = normal(generator, m, k)
    if data == "edge":
        x[1] *= 17.0
        x[2] = 0.0
        x[3] *= 0.1
        x[3, k // 2] = -90.0
        x[4] = x[4].abs() + 1.0
    return x.to(dtype)


# ---------------------------------------------------------------- linear layers and tensors


def linear_module(weight):
    n, k = weight.shape
    module = torch.nn.Linear(k, n, bias=False, dtype=weight.dtype)
    module.weight = torch.nn.Parameter(weight.clone(), requires_grad=False)
    return module


def quantize_linear(weight, config):
    """Returns an nn.Linear that is quantized by torchao's public entry point `quantize_`."""
    module = linear_module(weight)
    api.quantize_(module, config)
    if type(module.weight.data) is torch.Tensor:
        raise RuntimeError("quantize_ did not change the weight")
    return module


def run_linear(weight, x):
    # oneDNN's bf16 kernels flush subnormals on some CPUs, so use torch's own kernels.
    with torch.no_grad(), torch.backends.mkldnn.flags(enabled=False):
        return torch.nn.functional.linear(x, weight)


def raw_bytes(tensor):
    """Returns the bytes of a float8 or e8m0 tensor."""
    return tensor.contiguous().view(torch.uint8)


def narrow_codes(codes):
    """Converts int32 quantized values to uint8, or to int8 if some are negative."""
    if codes.dtype != torch.int32:
        return codes
    low, high = int(codes.min()), int(codes.max())
    if low >= 0 and high <= 255:
        return codes.to(torch.uint8)
    if low >= -128 and high <= 127:
        return codes.to(torch.int8)
    raise ValueError(f"quantized values out of range: {low}..{high}, expected 0..255 or -128..127")


def plain_parts(quantized, prefix=""):
    """Returns quantized values, scales and zero points of an AffineQuantizedTensor."""
    parts = quantized.tensor_impl.get_plain()
    tensors = {prefix + "codes": parts[0], prefix + "scales": parts[1]}
    if len(parts) > 2 and parts[2] is not None:
        tensors[prefix + "zeros"] = parts[2]
    return tensors


def exact_matmul(x_codes, w_codes):
    """Returns x @ w.T, computed in f64 and rounded to f32; exact for integers."""
    return (x_codes.double() @ w_codes.double().t()).float()


def scaled_matmul(x_codes, x_scales, w_codes, w_scales, dtype):
    """Returns f32(f32(acc * x_scale) * w_scale), cast to `dtype`."""
    acc = exact_matmul(x_codes, w_codes)
    acc = acc * x_scales.float().reshape(-1, 1)
    return (acc * w_scales.float().reshape(1, -1)).to(dtype)


SCALED_MATMUL_PATH = "emulated: cast(f32(acc * input_scale) * weight_scale), acc in f32"
PLAIN_LINEAR_PATH = "emulated: linear with the dequantized weight"


# ---------------------------------------------------------------- recipes
# Each function takes (weight, input, **arguments) and returns (tensors, metadata).


def int8wo(weight, x):
    module = quantize_linear(weight, api.Int8WeightOnlyConfig(set_inductor_config=False))
    w = module.weight
    tensors = plain_parts(w)
    tensors.update(dequantized=w.dequantize(), output=run_linear(w, x))
    return tensors, {"path": "quantize_", "output_path": "torchao"}


def int8dq(weight, x, decode=False):
    config = api.Int8DynamicActivationInt8WeightConfig(
        weight_only_decode=decode, set_inductor_config=False
    )
    w = quantize_linear(weight, config).weight
    inner = w.original_weight_tensor
    tensors = plain_parts(inner)
    meta = {"path": "quantize_", "output_path": "torchao"}
    if decode:
        # With one token per sequence, torchao does not quantize the activation.
        meta["linear_input_shape"] = f"{x.shape[0]},1,{x.shape[1]}"
        output = run_linear(w, x.unsqueeze(1)).squeeze(1)
    else:
        tensors.update(plain_parts(w.input_quant_func(x), "input_"))
        output = run_linear(w, x)
    tensors.update(dequantized=inner.dequantize(), output=output)
    return tensors, meta


def int8dq_semi(weight, x):
    from torchao.dtypes import SemiSparseLayout

    pruned = SemiSparseLayout().pre_process(weight.clone())
    w = quantize_linear(
        pruned, api.Int8DynamicActivationInt8WeightConfig(set_inductor_config=False)
    ).weight
    inner = w.original_weight_tensor
    activation = w.input_quant_func(x)
    tensors = plain_parts(inner)
    tensors.update(plain_parts(activation, "input_"))
    acc = exact_matmul(tensors["input_codes"], tensors["codes"])
    fused = (acc * tensors["scales"].float().reshape(1, -1)).to(torch.bfloat16)
    output = (fused * tensors["input_scales"].reshape(-1, 1)).to(x.dtype)
    tensors.update(pruned=pruned, dequantized=inner.dequantize(), output=output)
    return tensors, {
        "path": "primitives",
        "output_path": "emulated: cast(bf16(f32(acc * weight_scale)) * input_scale)",
    }


def int4wo(weight, x, group, hqq=False):
    from torchao.dtypes import TensorCoreTiledLayout

    padded = TensorCoreTiledLayout(inner_k_tiles=8).pre_process(weight)
    quantized = to_affine_quantized_intx(
        padded,
        ASYMMETRIC,
        (1, group),
        torch.int32,
        0,
        15,
        1e-6,
        zero_point_dtype=torch.bfloat16,
        preserve_zero=False,
        zero_point_domain=prim.ZeroPointDomain.FLOAT,
        _layout=PlainLayout(),
        use_hqq=hqq,
    )
    n, k = weight.shape
    parts = plain_parts(quantized)
    groups = k // group
    rows = padded.shape[0]
    tensors = {
        "codes": parts["codes"][:n, :k],
        "scales": parts["scales"].reshape(rows, -1)[:n, :groups],
        "zeros": parts["zeros"].reshape(rows, -1)[:n, :groups],
    }
    dequantized = quantized.dequantize()[:n, :k].contiguous()
    tensors.update(dequantized=dequantized, output=run_linear(dequantized, x))
    meta = {
        "path": "primitives",
        "output_path": PLAIN_LINEAR_PATH,
        "group_size": str(group),
        "bits": "4",
        "padded_shape": f"{padded.shape[0]},{padded.shape[1]}",
    }
    if padded.shape != weight.shape:
        # Quantized padding: the last row and group.
        scales, zeros = parts["scales"].reshape(rows, -1), parts["zeros"].reshape(rows, -1)
        meta["padding_code_scale_zero"] = (
            f"{int(parts['codes'][-1, -1])},{float(scales[-1, -1])!r},{float(zeros[-1, -1])!r}"
        )
    return tensors, meta


def uintx(weight, x, bits, group, hqq=False):
    config = api.UIntXWeightOnlyConfig(
        getattr(torch, f"uint{bits}"), group, use_hqq=hqq, set_inductor_config=False
    )
    w = quantize_linear(weight, config).weight
    tensors = plain_parts(w)
    tensors.update(dequantized=w.dequantize(), output=run_linear(w, x))
    return tensors, {
        "path": "quantize_",
        "output_path": "torchao",
        "group_size": str(group),
        "bits": str(bits),
    }


def gemlite4(weight, x, group):
    from torchao.dtypes.uintx.gemlite_layout import get_gemlite_quant_kwargs

    arguments = get_gemlite_quant_kwargs(4, group, weight.dtype)
    codes, scales, zeros, _ = prim._choose_qparams_and_quantize_affine_hqq(
        weight,
        nbits=4,
        group_size=group,
        axis=1,
        compute_dtype=arguments["zero_point_dtype"],
        device=weight.device,
        raw_output=True,
    )
    n, k = weight.shape
    grouped = codes.to(weight.dtype).reshape(n, k // group, group)
    dequantized = ((grouped - zeros.unsqueeze(-1)) * scales.unsqueeze(-1)).reshape(n, k)
    tensors = {
        "codes": codes,
        "scales": scales,
        "zeros": zeros,
        "dequantized": dequantized,
        "output": run_linear(dequantized, x),
    }
    return tensors, {
        "path": "primitives",
        "output_path": PLAIN_LINEAR_PATH,
        "dequantized_path": "emulated: (code - zero) * scale, rounded to the dtype twice",
        "group_size": str(group),
        "bits": "4",
    }


def gemlite8(weight, x):
    from torchao.dtypes.uintx.gemlite_layout import get_gemlite_quant_kwargs

    arguments = get_gemlite_quant_kwargs(8, weight.shape[1], weight.dtype)
    quantized = to_affine_quantized_intx(weight, _layout=PlainLayout(), **arguments)
    tensors = plain_parts(quantized)
    dequantized = quantized.dequantize()
    tensors.update(dequantized=dequantized, output=run_linear(dequantized, x))
    return tensors, {"path": "primitives", "output_path": PLAIN_LINEAR_PATH, "bits": "8"}


def fp6(weight, x):
    if weight.shape[0] % 256 == 0:
        config = api.FPXWeightOnlyConfig(3, 2, set_inductor_config=False)
        w = quantize_linear(weight, config).weight
        tensors = plain_parts(w)
        dequantized, path = w.dequantize(), "quantize_"
    else:
        scale = prim._choose_qparams_affine_floatx(weight, 3, 2)
        codes = prim._quantize_affine_floatx(weight, scale, 3, 2)
        dequantized = prim._dequantize_affine_floatx(
            codes, scale, 3, 2, output_dtype=weight.dtype
        )
        tensors, path = {"codes": codes, "scales": scale}, "primitives"
    tensors.update(dequantized=dequantized, output=run_linear(dequantized, x))
    return tensors, {"path": path, "output_path": PLAIN_LINEAR_PATH, "bits": "6"}


def int8adq_int4w_symm(weight, x):
    from torchao.dtypes import CutlassInt4PackedLayout

    config = api.Int8DynamicActivationInt4WeightConfig(
        group_size=None,
        mapping_type=SYMMETRIC,
        act_mapping_type=SYMMETRIC,
        layout=CutlassInt4PackedLayout(),
        set_inductor_config=False,
    )
    w = quantize_linear(weight, config).weight
    inner = w.original_weight_tensor
    tensors = plain_parts(inner)
    tensors.update(plain_parts(w.input_quant_func(x), "input_"))
    output = scaled_matmul(
        tensors["input_codes"],
        tensors["input_scales"],
        tensors["codes"],
        tensors["scales"],
        x.dtype,
    )
    tensors.update(dequantized=inner.dequantize(), output=output)
    return tensors, {"path": "quantize_", "output_path": SCALED_MATMUL_PATH, "bits": "4"}


def marlin_sparse(weight, x, group=128):
    from torchao.sparsity.utils import mask_creator

    # Equivalent to the layout's pre_process on the GPU.
    pruned = (mask_creator(weight).bool() * weight).contiguous()
    block = (1, group)
    scale, zero = prim.choose_qparams_affine(
        pruned, SYMMETRIC, block, torch.int32, 0, 15, 1e-6, zero_point_dtype=torch.bfloat16
    )
    codes = prim.quantize_affine(pruned, block, scale, zero, torch.int32, 0, 15)
    # NaN (zero times an infinite reciprocal) converts to 0 on a GPU, but to the lowest integer on an x86 CPU.
    lowest = torch.iinfo(torch.int32).min
    nan_count = int((codes == lowest).sum())
    codes = torch.where(codes == lowest, torch.zeros_like(codes), codes)
    dequantized = prim.dequantize_affine(
        codes, block, scale, zero, torch.int32, 0, 15, output_dtype=weight.dtype
    )
    tensors = {
        "pruned": pruned,
        "codes": codes,
        "scales": scale,
        "zeros": zero,
        "dequantized": dequantized,
        "output": run_linear(dequantized, x),
    }
    return tensors, {
        "path": "primitives",
        "output_path": PLAIN_LINEAR_PATH,
        "group_size": str(group),
        "bits": "4",
        "nan_codes_set_to_zero": str(nan_count),
    }


def marlin_qqq(weight, x, group=128):
    codes, group_scales, channel_scales, reference = (
        prim._choose_qparams_and_quantize_affine_qqq(weight.clone(), 4, group)
    )
    n, k = weight.shape
    dequantized = prim._dequantize_affine_qqq(
        codes, group_scales, channel_scales, 4, group, weight.dtype
    )
    activation = api._int8_symm_per_token_quant(x)
    tensors = {
        "codes": codes,
        "scales": channel_scales,
        "dequantized": dequantized,
        "reference_weight": reference,
    }
    if group_scales.numel() > 0:
        tensors["group_scales"] = group_scales.reshape(n, k // group)
    tensors.update(plain_parts(activation, "input_"))
    dequantized_input = tensors["input_codes"].float() * tensors["input_scales"].reshape(-1, 1)
    tensors["output"] = exact_matmul(dequantized_input, reference).to(x.dtype)
    return tensors, {
        "path": "primitives",
        "output_path": "emulated: dequantized input times torchao's reference weight "
        "(third-party kernel: int8 weight = round((code - 8) * group_scale))",
        "group_size": str(group),
        "bits": "4",
    }


def int8_dynamic_activation_intx(weight, x, bits, group, scale_dtype=None, version=2):
    config = api.Int8DynamicActivationIntxWeightConfig(
        weight_dtype=getattr(torch, f"int{bits}"),
        weight_granularity=PerGroup(group) if group > 0 else PerAxis(0),
        weight_mapping_type=ASYMMETRIC,
        weight_scale_dtype=scale_dtype,
        version=version,
    )
    w = quantize_linear(weight, config).weight
    if version == 2:
        tensors = {"codes": w.qdata, "scales": w.scale, "zeros": w.zero_point}
        dequantized = w.dequantize()
    else:
        tensors = plain_parts(w.original_weight_tensor)
        dequantized = w.original_weight_tensor.dequantize()
    tensors.update(plain_parts(api._int8_asymm_per_token_quant(x), "input_"))
    tensors.update(dequantized=dequantized, output=run_linear(w, x))
    return tensors, {
        "path": "quantize_",
        "output_path": "torchao",
        "group_size": str(group),
        "bits": str(bits),
        "config_version": str(version),
        "weight_scale_dtype": str(scale_dtype),
        "note": "unpacked tensor; the packed low-bit kernel is not built for this machine",
    }


def float8wo(weight, x):
    config = api.Float8WeightOnlyConfig(set_inductor_config=False)
    w = quantize_linear(weight, config).weight
    tensors = {
        "codes": raw_bytes(w.qdata),
        "scales": w.scale,
        "dequantized": w.dequantize(),
        "output": run_linear(w, x),
    }
    return tensors, {"path": "quantize_", "output_path": "torchao"}


def float8dq(weight, x, granularity):
    from torchao.float8.inference import Float8MMConfig
    from torchao.quantization.quantize_.workflows.float8.float8_tensor import (
        Float8Tensor,
        QuantizeTensorToFloat8Kwargs,
    )

    arguments = QuantizeTensorToFloat8Kwargs(torch.float8_e4m3fn, granularity)
    w = Float8Tensor.from_hp(
        weight,
        granularity=granularity,
        mm_config=Float8MMConfig(use_fast_accum=True),
        act_quant_kwargs=arguments,
    )
    activation = Float8Tensor.from_hp(x, granularity=granularity)
    tensors = {
        "codes": raw_bytes(w.qdata),
        "scales": w.scale,
        "input_codes": raw_bytes(activation.qdata),
        "input_scales": activation.scale,
        "dequantized": w.dequantize(),
        "output": scaled_matmul(
            activation.qdata.float(), activation.scale, w.qdata.float(), w.scale, x.dtype
        ),
    }
    meta = {"path": "primitives", "output_path": SCALED_MATMUL_PATH}
    if isinstance(granularity, PerTensor):
        try:
            tensors["output_cpu_kernel"] = run_linear(w, x)
        except Exception as error:
            meta["cpu_kernel_error"] = str(error)[:200]
    return tensors, meta


def float8dq_semi(weight, x):
    from torchao.dtypes.floatx import CutlassSemiSparseLayout, Float8Layout

    pruned = CutlassSemiSparseLayout().pre_process(weight)
    row = (1, weight.shape[1])
    w = to_affine_quantized_floatx(
        pruned, row, torch.float8_e4m3fn, Float8Layout(mm_config=None), torch.float32
    )
    activation = api._float8_cutlass_quant(x, torch.float8_e5m2)
    w_codes, w_scales, _ = w.tensor_impl.get_plain()
    x_codes, x_scales, _ = activation.tensor_impl.get_plain()
    tensors = {
        "pruned": pruned,
        "codes": raw_bytes(w_codes),
        "scales": w_scales,
        "input_codes": raw_bytes(x_codes),
        "input_scales": x_scales,
        "dequantized": w.dequantize(),
        "output": scaled_matmul(x_codes.float(), x_scales, w_codes.float(), w_scales, x.dtype),
    }
    return tensors, {"path": "primitives", "output_path": SCALED_MATMUL_PATH}


def mx_codes(mx):
    """Returns the quantized values of an MXTensor, one per byte."""
    from torchao.prototype.mx_formats.kernels import unpack_uint4

    if mx._elem_dtype == torch.float4_e2m1fn_x2:
        return unpack_uint4(mx.qdata)
    return raw_bytes(mx.qdata)


def mx(weight, x, element, mode):
    from torchao.prototype.mx_formats.config import MXGemmKernelChoice, ScaleCalculationMode
    from torchao.prototype.mx_formats.inference_workflow import MXFPInferenceConfig
    from torchao.prototype.mx_formats.mx_tensor import MXTensor, QuantizeTensorToMXKwargs

    mode = ScaleCalculationMode(mode)
    emulated = MXGemmKernelChoice.EMULATED
    if weight.dtype == torch.bfloat16 and mode == ScaleCalculationMode.FLOOR:
        config = MXFPInferenceConfig(
            activation_dtype=element, weight_dtype=element, gemm_kernel_choice=emulated
        )
        w, path = quantize_linear(weight, config).weight, "quantize_"
    else:
        arguments = QuantizeTensorToMXKwargs(
            elem_dtype=element, scaling_mode=mode, gemm_kernel_choice=emulated
        )
        w = MXTensor.to_mx(
            weight,
            element,
            scaling_mode=mode,
            gemm_kernel_choice=emulated,
            act_quant_kwargs=arguments,
        )
        path = "primitives"
    activation = MXTensor.to_mx(x, element, scaling_mode=mode)
    tensors = {
        "codes": mx_codes(w),
        "scales": raw_bytes(w._scale_e8m0).reshape(weight.shape[0], -1),
        "input_codes": mx_codes(activation),
        "input_scales": raw_bytes(activation._scale_e8m0).reshape(x.shape[0], -1),
        "dequantized": w.to_dtype(weight.dtype),
        "output": run_linear(w, x),
    }
    return tensors, {
        "path": path,
        "output_path": "torchao",
        "block_size": "32",
        "scale_mode": mode.value,
        "note": "output is the emulated gemm: both operands dequantized to the dtype",
    }


def nvfp4(weight, x, tensor_scale):
    from torchao.prototype.mx_formats.inference_workflow import NVFP4InferenceConfig
    from torchao.prototype.mx_formats.kernels import f4_unpacked_to_f32, unpack_uint4
    from torchao.prototype.mx_formats.nvfp4_tensor import (
        NVFP4MMConfig,
        NVFP4Tensor,
        per_tensor_amax_to_scale,
    )
    from torchao.prototype.mx_formats.utils import from_blocked

    config = NVFP4InferenceConfig(
        mm_config=NVFP4MMConfig.WEIGHT_ONLY, use_dynamic_per_tensor_scale=tensor_scale
    )
    w = quantize_linear(weight, config).weight
    n, k = weight.shape
    w_global = w._per_tensor_scale
    x_global = per_tensor_amax_to_scale(torch.max(torch.abs(x))) if tensor_scale else None
    activation = NVFP4Tensor.to_nvfp4(x, per_tensor_scale=x_global)
    w_codes, x_codes = unpack_uint4(w.qdata), unpack_uint4(activation.qdata)
    w_scales = from_blocked(w._scale_e4m3, n, k // 16)
    x_scales = activation._scale_e4m3.reshape(x.shape[0], k // 16)

    def block_values(codes, scales):
        values = f4_unpacked_to_f32(codes).reshape(codes.shape[0], -1, 16)
        return (values * scales.float().unsqueeze(-1)).reshape(codes.shape[0], -1)

    output = exact_matmul(block_values(x_codes, x_scales), block_values(w_codes, w_scales))
    output = output.to(x.dtype)
    if tensor_scale:
        output = output * (x_global * w_global).to(x.dtype)
    tensors = {
        "codes": w_codes,
        "scales": raw_bytes(w_scales),
        "input_codes": x_codes,
        "input_scales": raw_bytes(x_scales),
        "dequantized": w.to_dtype(weight.dtype),
        "output": output,
        "output_weight_only": run_linear(w, x),
    }
    if tensor_scale:
        tensors["tensor_scale"] = w_global.reshape(1)
        tensors["input_tensor_scale"] = x_global.reshape(1)
    return tensors, {
        "path": "quantize_",
        "output_path": "emulated: cast(sum of (code * block scale) products) * "
        "cast(input_tensor_scale * tensor_scale); output_weight_only is torchao's",
        "block_size": "16",
    }


# ---------------------------------------------------------------- list of cases


def list_cases():
    """Returns tuples (recipe, function, arguments, dtypes, options) with the options n, k, data and tag."""
    all_dtypes, half_dtypes, f32 = ["bf16", "f16", "f32"], ["bf16", "f16"], ["f32"]
    bf16, f16, mx_dtypes = ["bf16"], ["f16"], ["bf16", "f32"]
    cases = [
        ("int8wo", int8wo, {}, all_dtypes, {}),
        ("int8dq", int8dq, {}, all_dtypes, {}),
        ("int8dq_prefill_wo_decode", int8dq, {"decode": True}, bf16, {}),
        ("int8dq+semi", int8dq_semi, {}, half_dtypes, {}),
        ("fp6", fp6, {}, bf16, {"n": 256, "k": 64, "tag": "packed"}),
        ("fp6", fp6, {}, all_dtypes, {}),
        ("int8adq-int4w-symm", int8adq_int4w_symm, {}, all_dtypes, {}),
        ("marlin+semi", marlin_sparse, {}, half_dtypes, {"k": 256}),
        ("marlin-qqq", marlin_qqq, {}, f16, {"k": 256}),
        ("marlin-qqq", marlin_qqq, {}, f16, {"tag": "k128"}),
        ("gemlitewo-8", gemlite8, {}, half_dtypes, {}),
        ("float8wo", float8wo, {}, all_dtypes, {}),
        ("float8dq-tensor", float8dq, {"granularity": PerTensor()}, all_dtypes, {"n": 16}),
        ("float8dq-row", float8dq, {"granularity": PerRow()}, bf16, {"n": 16}),
        ("float8dq+semi", float8dq_semi, {}, half_dtypes, {"n": 16}),
        ("nvfp4", nvfp4, {"tensor_scale": True}, mx_dtypes, {"n": 16}),
        ("nvfp4_no_global_scale", nvfp4, {"tensor_scale": False}, mx_dtypes, {"n": 16}),
    ]
    for group in (32, 64, 128, 256):
        size = {"k": max(group, 128)}
        cases.append((f"int4wo-{group}", int4wo, {"group": group}, bf16, size))
        hqq = {"group": group, "hqq": True}
        cases.append((f"int4wo-{group}-hqq", int4wo, hqq, bf16, size))
    ragged = {"n": 12, "k": 96, "tag": "ragged"}
    cases.append(("int4wo-32", int4wo, {"group": 32}, bf16, ragged))
    plain = {"data": "normal", "tag": "normal"}
    cases.append(("int4wo-64-hqq", int4wo, {"group": 64, "hqq": True}, bf16, plain))
    cases.append(("int4wo-64-hqq", int4wo, {"group": 64, "hqq": True}, ["f32"], plain))
    for bits in range(1, 9):
        dtypes = all_dtypes if bits == 4 else bf16
        cases.append((f"uintx-{bits}-64", uintx, {"bits": bits, "group": 64}, dtypes, {}))
        hqq = {"bits": bits, "group": 64, "hqq": True}
        if bits in (2, 3, 4, 8):
            cases.append((f"uintx-{bits}-64-hqq", uintx, hqq, dtypes, {}))
    cases.append(("uintx-4-64-hqq", uintx, hqq | {"bits": 4}, ["f32"], plain))
    for group, dtypes in ((32, bf16), (64, half_dtypes)):
        cases.append((f"gemlitewo-4-{group}", gemlite4, {"group": group}, dtypes, {}))
    for bits, group in ((1, 32), (2, 32), (3, 32), (4, 32), (4, 0), (8, 64)):
        name = f"int8_dynamic_activation_intx_weight-{bits}-{group}-true"
        arguments = {"bits": bits, "group": group}
        cases.append((name, int8_dynamic_activation_intx, arguments, f32, {}))
    name = "int8_dynamic_activation_intx_weight-4-32-true"
    bf16_scale = {"bits": 4, "group": 32, "scale_dtype": torch.bfloat16}
    cases.append((name, int8_dynamic_activation_intx, bf16_scale, f32, {"tag": "bf16scale"}))
    version_1 = bf16_scale | {"version": 1}
    cases.append((name, int8_dynamic_activation_intx, version_1, f32, {"tag": "v1"}))
    elements = (("mxfp8", torch.float8_e4m3fn), ("mxfp4", torch.float4_e2m1fn_x2))
    for short, element in elements:
        for mode in ("floor", "rceil"):
            arguments = {"element": element, "mode": mode}
            cases.append((f"{short}_{mode}", mx, arguments, mx_dtypes, {}))
    return cases


# ---------------------------------------------------------------- writing


def to_storable(name, tensor):
    """Returns a contiguous copy of a tensor in a dtype that the files support."""
    tensor = tensor.detach()
    if name in ("codes", "input_codes"):
        tensor = narrow_codes(tensor)
    if tensor.is_floating_point():
        tensor = tensor.float()
    elif tensor.dtype == torch.int64:
        tensor = tensor.to(torch.int32)
    return tensor.contiguous().clone()


def tensor_bytes(tensor):
    return bytes(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())


def write_safetensors(path, tensors, metadata):
    header, blobs, offset = {"__metadata__": metadata}, [], 0
    # Four-byte types first, so that each tensor is aligned.
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    for name in order:
        blob = tensor_bytes(tensors[name])
        header[name] = {
            "dtype": SAFETENSORS_DTYPES[tensors[name].dtype],
            "shape": list(tensors[name].shape),
            "data_offsets": [offset, offset + len(blob)],
        }
        offset += len(blob)
        blobs.append(blob)
    text = json.dumps(header, sort_keys=True).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for blob in blobs:
            file.write(blob)
    return 8 + len(text) + offset


def run_case(recipe, function, arguments, dtype_name, options, out_dir):
    dtype = DTYPES[dtype_name]
    n, k, m = options.get("n", 8), options.get("k", 128), 5
    data = options.get("data", "edge")
    generator = torch.Generator().manual_seed(SEED)
    weight = make_weight(n, k, dtype, data, generator)
    x = make_input(m, k, dtype, data, generator)
    outputs, meta = function(weight.clone(), x.clone(), **arguments)
    meta = dict(meta)
    for name in ("scales", "zeros", "input_scales", "input_zeros"):
        if name in outputs:
            meta[name + "_dtype"] = str(outputs[name].dtype).removeprefix("torch.")
    tensors = {"weight": weight, "input": x, **outputs}
    tensors = {name: to_storable(name, tensor) for name, tensor in tensors.items()}
    for name, shape in (("codes", (n, k)), ("dequantized", (n, k)), ("output", (m, n))):
        if tuple(tensors[name].shape) != shape:
            raise ValueError(f"shape of {name}: {tuple(tensors[name].shape)}, expected {shape}")
    meta.update(
        recipe=recipe,
        dtype=dtype_name,
        data=data,
        seed=str(SEED),
        n=str(n),
        k=str(k),
        m=str(m),
        torchao_version=torchao.__version__,
        torch_version=torch.__version__,
        device="cpu",
    )
    parts = [recipe, dtype_name] + ([options["tag"]] if "tag" in options else [])
    file_name = ".".join(parts) + ".safetensors"
    size = write_safetensors(os.path.join(out_dir, file_name), tensors, meta)
    return {"file": file_name, "bytes": size, "path": meta["path"], "output_path": meta["output_path"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out_dir", help="output directory")
    parser.add_argument("--only", default="", metavar="TEXT", help="run only recipes with TEXT in their name")
    parser.add_argument("--trace", action="store_true", help="print tracebacks of failures")
    options = parser.parse_args()
    os.makedirs(options.out_dir, exist_ok=True)
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("highest")
    summary = {
        "torchao_version": torchao.__version__,
        "torch_version": torch.__version__,
        "cases": [],
    }
    for recipe, function, arguments, dtypes, case in list_cases():
        if options.only not in recipe:
            continue
        for dtype_name in dtypes:
            entry = {"recipe": recipe, "dtype": dtype_name, "tag": case.get("tag", "")}
            try:
                with torch.no_grad():
                    entry |= run_case(
                        recipe, function, arguments, dtype_name, case, options.out_dir
                    )
                entry["status"] = "ok"
            except Exception as error:
                reason = f"{type(error).__name__}: {error}".strip().splitlines()[0][:300]
                entry |= {"status": "failed", "why": reason}
                print(f"{recipe}: {reason} ({dtype_name})")
                if options.trace:
                    traceback.print_exc()
            summary["cases"].append(entry)
    with open(os.path.join(options.out_dir, "summary.json"), "w") as file:
        json.dump(summary, file, indent=1)
        file.write("\n")
    succeeded = [entry for entry in summary["cases"] if entry["status"] == "ok"]
    total = sum(entry["bytes"] for entry in succeeded)
    print(f"{len(succeeded)} of {len(summary['cases'])} cases succeeded, {total} bytes")
    return 0 if succeeded else 1


if __name__ == "__main__":
    sys.exit(main())
