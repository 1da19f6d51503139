#!/usr/bin/env python3
"""Compares Calorimeter's `native` implementation with compiled torchao on one NVIDIA GPU.

For each shape, Calorimeter measures a model under several recipes (`native`, bf16, operands from
memory). Then torchao quantizes the same model, torch compiles it, and it is timed in two ways:

- loop: CUDA events around a loop of calls, as in torchao's own benchmarks. Users of torch see this time.
- graph: replays of a CUDA graph of ten calls, without launch overhead of the host. `native / graph`
  compares kernels.

torch's operands come from the cache if they fit; Calorimeter's do not, so the ratios favor torch.
With --regime device-hot, Calorimeter's operands come from the cache, too.

    pip download --no-deps torchao==0.14.1 && unzip -d torchao-0.14.1 torchao-0.14.1-*.whl
    PYTHONPATH=torchao-0.14.1 python3 tools/compare_torchao.py target/release/calorimeter \\
        --shapes 1,4096,4096 4096,4096,4096 --recipes baseline int8wo int4wo-128 int8dq

Needs torch, torchao and a CUDA device. Run nothing else on the device at the same time.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

warnings.simplefilter("ignore")


# ---------------------------------------------------------------- Calorimeter


def measure_calorimeter(binary, model, shape, recipes, regime):
    """Returns microseconds of each recipe, or the reason why there is no time."""
    config = {
        "device": "cuda",
        "dtype": "bf16",
        "recipes": list(recipes),
        "implementations": ["native"],
        "regimes": [regime],
        "models": [{"model": model, "shapes": [{"name": "custom", "shapes": [list(shape)]}]}],
    }
    with tempfile.TemporaryDirectory() as folder:
        # JSON is valid YAML.
        (Path(folder) / "c.yml").write_text(json.dumps(config))
        command = [binary, "run", "c.yml", "--out", "out", "--format", "jsonl"]
        process = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    times = {}
    for line in process.stdout.splitlines():
        record = json.loads(line)
        time_ns = record.get("time_ns")
        times[record["recipe"]] = time_ns["median"] / 1e3 if time_ns else record.get("reason", record["status"])
    if not times:
        sys.exit(f"error: {binary} wrote no records (exit code {process.returncode})")
    return times


# ---------------------------------------------------------------- torchao


def torchao_config(recipe):
    """Returns torchao's configuration of a recipe.

    torchao always uses fast accumulation for float8, as Calorimeter does under names with -fast.
    """
    recipe = recipe.removesuffix("-fast")
    from torchao.quantization import quant_api as api
    from torchao.quantization.granularity import PerRow, PerTensor

    if recipe.startswith("int4wo-"):
        return api.Int4WeightOnlyConfig(group_size=int(recipe.split("-")[1]), version=1)
    return {
        "int8wo": api.Int8WeightOnlyConfig,
        "int8dq": api.Int8DynamicActivationInt8WeightConfig,
        "float8wo": api.Float8WeightOnlyConfig,
        "float8dq-row": lambda: api.Float8DynamicActivationFloat8WeightConfig(granularity=PerRow()),
        "float8dq-tensor": lambda: api.Float8DynamicActivationFloat8WeightConfig(granularity=PerTensor()),
    }[recipe]()


def time_with_events(torch, launch, seconds):
    """Returns microseconds per launch in the second half of a loop of about `seconds`."""

    def loop(launches):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(launches):
            launch()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e3 / launches

    loop(5)
    launches = max(5, int(seconds / 2 * 1e6 / max(loop(20), 0.1)))
    loop(launches)
    return loop(launches)


def time_in_graph(torch, launch, seconds, calls=10):
    """Returns microseconds per call in replays of a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            launch()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            launch()
    return time_with_events(torch, graph.replay, seconds) / calls


def measure_torchao(torch, model, shape, recipe, mode, seconds):
    """Returns microseconds of a call in a loop and in a CUDA graph."""
    from torchao.quantization import quantize_
    from torchao.testing.model_architectures import create_model_and_input_data

    torch._dynamo.reset()
    module, x = create_model_and_input_data(model, *shape, torch.bfloat16, "cuda")
    module = module.eval()
    if recipe != "baseline":
        quantize_(module, torchao_config(recipe))
    compiled = torch.compile(module, mode=mode)
    with torch.no_grad():
        compiled(x)
        torch.cuda.synchronize()
        launch = lambda: compiled(x)  # noqa: E731
        return time_with_events(torch, launch, seconds), time_in_graph(torch, launch, seconds)


# ---------------------------------------------------------------- comparison


def format_time(value):
    return f"{value:.1f}" if isinstance(value, float) else "-"


def format_ratio(native, torch_time):
    measured = isinstance(native, float) and isinstance(torch_time, float)
    return f"{native / torch_time:.2f}" if measured else "-"


def parse_shape(text):
    shape = tuple(int(size) for size in text.split(","))
    if len(shape) != 3 or min(shape) < 1:
        raise ValueError
    return shape


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", help="path of the calorimeter binary, a release build")
    parser.add_argument("--model", default="linear", help="linear, ln_linear_silu, transformer_block, …")
    parser.add_argument("--shapes", nargs="+", type=parse_shape, default=[(4096, 4096, 4096)], metavar="M,K,N")
    parser.add_argument("--recipes", nargs="+", default=["baseline", "int8wo", "int4wo-128", "int8dq", "float8dq-row"])
    parser.add_argument("--regime", default="device-cold", help="device-cold or device-hot, for Calorimeter")
    parser.add_argument("--mode", default="max-autotune-no-cudagraphs", help="mode of torch.compile")
    parser.add_argument("--seconds", type=float, default=1.0, help="duration of each timed loop")
    options = parser.parse_args()
    binary = Path(options.binary).resolve()
    if not binary.is_file():
        parser.error(f"file not found: {options.binary}")
    try:
        import torch
        import torchao
    except ImportError as error:
        sys.exit(f"error: cannot import {error.name}; this script needs torch and torchao")
    if not torch.cuda.is_available():
        sys.exit("error: torch found no CUDA device")

    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, torchao {torchao.__version__}, {options.mode}")
    print(f"{'µs':<36} {'native':>9} {'loop':>9} {'graph':>9} {'native/loop':>12} {'native/graph':>13}")
    log_ratios = []
    for shape in options.shapes:
        times = measure_calorimeter(str(binary), options.model, shape, options.recipes, options.regime)
        for recipe in options.recipes:
            try:
                loop, graph = measure_torchao(torch, options.model, shape, recipe, options.mode, options.seconds)
            except Exception as error:  # noqa: BLE001 - a failure of torchao is printed in its row
                loop, graph = f"{type(error).__name__}: {error}".splitlines()[0], None
            native = times.get(recipe)
            name = f"{options.model} {'x'.join(map(str, shape))} {recipe}"
            cells = f"{format_time(native):>9} {format_time(loop):>9} {format_time(graph):>9}"
            ratios = f"{format_ratio(native, loop):>12} {format_ratio(native, graph):>13}"
            print(f"{name:<36} {cells} {ratios}", flush=True)
            for label, value in (("native", native), ("torchao", loop)):
                if isinstance(value, str):
                    print(f"    {label}: {value[:200]}")
            if isinstance(native, float) and isinstance(loop, float):
                log_ratios.append((math.log(native / loop), math.log(native / graph)))
    if log_ratios:
        means = [math.exp(sum(column) / len(log_ratios)) for column in zip(*log_ratios)]
        print(f"geometric mean of {len(log_ratios)} rows: native/loop {means[0]:.3f}, native/graph {means[1]:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
