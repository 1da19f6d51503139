#!/usr/bin/env python3
"""Compares training passes of a linear layer with compiled torch and torchao on one NVIDIA GPU.

For each side of a square layer, Calorimeter measures forward and backward (`native`, bf16) under the baseline and the
training recipes. Then torch runs `nn.Linear`, or torchao's `convert_to_float8_training` of it, both compiled. torch is
timed in a loop after eight seconds of the same load: a GPU cools during compilation, and Calorimeter measures at steady
state. The gradient of the input is computed, as in the middle of a model.

    pip download --no-deps torchao==0.14.1 && unzip -d torchao-0.14.1 torchao-0.14.1-*.whl
    PYTHONPATH=torchao-0.14.1 python3 tools/compare_training.py target/release/calorimeter --sides 8192 16384

With `--rounds N` everything is measured N times. The order of Calorimeter and torch alternates, because the second one
finds the GPU warm. Needs torch, torchao and a CUDA device. Run nothing else on the device at the same time.
"""

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

# Load until a power-throttled GPU is at its steady state.
WARM_UP_SECONDS = 8.0

# torchao uses fast accumulation, as Calorimeter does under names with -fast.
RECIPES = ["baseline", "tensorwise", "tensorwise-fast", "rowwise", "rowwise-fast"]


def measure_calorimeter(binary, side, recipes):
    """Returns milliseconds of each recipe, or the reason why there is no time."""
    config = {
        "mode": "training",
        "device": "cuda",
        "dtype": "bf16",
        "recipes": recipes,
        "implementations": ["native"],
        "models": [{"shapes": [{"name": "custom", "shapes": [[side] * 3]}]}],
    }
    with tempfile.TemporaryDirectory() as folder:
        # JSON is valid YAML.
        (Path(folder) / "c.yml").write_text(json.dumps(config))
        command = [binary, "run", "c.yml", "--out", "out", "--format", "jsonl", "--timeout", "400s"]
        command += ["--filter", "/linear_forward_backward/"]
        process = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    times = {}
    for line in process.stdout.splitlines():
        record = json.loads(line)
        time_ns = record.get("time_ns")
        times[record["recipe"]] = time_ns["median"] / 1e6 if time_ns else record.get("reason", record["status"])
    if not times:
        sys.exit(f"error: {binary} wrote no records (exit code {process.returncode})")
    return times


def measure_torch(side, recipe):
    """Returns the median milliseconds of forward and backward in torch."""
    import torch

    torch.manual_seed(0)
    torch._dynamo.reset()
    model = torch.nn.Sequential(torch.nn.Linear(side, side, bias=False, device="cuda", dtype=torch.bfloat16))
    if recipe != "baseline":
        from torchao.float8 import Float8LinearConfig, convert_to_float8_training

        convert_to_float8_training(model, config=Float8LinearConfig.from_recipe_name(recipe))
    model = torch.compile(model)
    x = torch.randn(side, side, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    g = torch.randn(side, side, device="cuda", dtype=torch.bfloat16)

    def step():
        for tensor in (x, *model.parameters()):
            tensor.grad = None
        model(x).backward(g)

    warm_up_start = time.monotonic()
    while time.monotonic() - warm_up_start < WARM_UP_SECONDS:
        step()
        torch.cuda.synchronize()
    times = []
    for _ in range(40):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(3):
            step()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 3)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", help="path of the calorimeter binary, built with CUDA")
    parser.add_argument("--sides", nargs="+", type=int, default=[4096, 8192])
    parser.add_argument("--recipes", nargs="+", default=RECIPES)
    parser.add_argument("--rounds", type=int, default=1, help="repetitions, in alternating order")
    arguments = parser.parse_args()
    binary = str(Path(arguments.binary).resolve())
    print(f"{'side':>6}  {'recipe':<16} {'native ms':>9} {'torch ms':>9} {'native / torch':>14}", flush=True)
    for side, round_index in itertools.product(arguments.sides, range(arguments.rounds)):
        native_times, torch_times = {}, {}
        for library in ["torch", "native"] if round_index % 2 else ["native", "torch"]:
            if library == "native":
                native_times = measure_calorimeter(binary, side, arguments.recipes)
            else:
                names = dict.fromkeys(recipe.removesuffix("-fast") for recipe in arguments.recipes)
                torch_times = {name: measure_torch(side, name) for name in names}
        for recipe in arguments.recipes:
            native_ms, torch_ms = native_times.get(recipe, "not measured"), torch_times[recipe.removesuffix("-fast")]
            label = f"{side:>6}  {recipe:<16}"
            if isinstance(native_ms, str):
                print(f"{label} {native_ms}; torch {torch_ms:.3f} ms", flush=True)
            else:
                print(f"{label} {native_ms:>9.3f} {torch_ms:>9.3f} {native_ms / torch_ms:>14.3f}", flush=True)


if __name__ == "__main__":
    main()
