#!/usr/bin/env python3
"""Set Calorimeter's passes of a linear layer that is trained beside torch's and torchao's, compiled, on one NVIDIA GPU.

For each side of a square layer, Calorimeter measures forward and backward (`native`, bf16) under the baseline and the
recipes, then torch does the same with `nn.Linear` and with torchao's `convert_to_float8_training`, both compiled, in a
loop after eight seconds of the same load, since a GPU cools while torch compiles and ours are timed at their steady
state. Gradients of the input are asked for, as in the middle of a model.

    pip download --no-deps torchao==0.14.1 && unzip -d torchao-0.14.1 torchao-0.14.1-*.whl
    PYTHONPATH=torchao-0.14.1 python3 tools/beside_training.py target/release/calorimeter --sides 8192 16384

With `--rounds N` everything is measured N times, and the two sides take turns at going first: who comes second finds
the GPU warm. It needs torch, torchao and a CUDA device; nothing else on the device should run meanwhile.
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

# Seconds of a load until a GPU that power holds back has come to its steady state.
WARM_UP = 8.0

# torchao adds outputs up in the registers of tensor cores, as ours do where a name ends with -fast.
RECIPES = ["baseline", "tensorwise", "tensorwise-fast", "rowwise", "rowwise-fast"]


def by_calorimeter(binary, side, recipes):
    """Milliseconds of each recipe, the reason in its place where there is none."""
    config = {
        "mode": "training",
        "device": "cuda",
        "dtype": "bf16",
        "recipes": recipes,
        "implementations": ["native"],
        "models": [{"shapes": [{"name": "custom", "shapes": [[side] * 3]}]}],
    }
    with tempfile.TemporaryDirectory() as folder:
        # JSON is YAML.
        (Path(folder) / "c.yml").write_text(json.dumps(config))
        command = [binary, "run", "c.yml", "--out", "out", "--format", "jsonl", "--timeout", "400s"]
        command += ["--filter", "/linear_forward_backward/"]
        ran = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    found = {}
    for line in ran.stdout.splitlines():
        record = json.loads(line)
        time_ns = record.get("time_ns")
        found[record["recipe"]] = time_ns["median"] / 1e6 if time_ns else record.get("reason", record["status"])
    if not found:
        sys.exit(f"error: {binary} measured nothing and ended with exit code {ran.returncode}")
    return found


def by_torch(side, recipe):
    """Milliseconds of forward and backward in torch."""
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

    begun = time.monotonic()
    while time.monotonic() - begun < WARM_UP:
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
    parser.add_argument("binary", help="the program calorimeter, built with CUDA")
    parser.add_argument("--sides", nargs="+", type=int, default=[4096, 8192])
    parser.add_argument("--recipes", nargs="+", default=RECIPES)
    parser.add_argument("--rounds", type=int, default=1, help="how often; ours go first in every other one")
    arguments = parser.parse_args()
    binary = str(Path(arguments.binary).resolve())
    print(f"{'side':>6}  {'recipe':<16} {'ours ms':>9} {'theirs ms':>9} {'ours / theirs':>13}", flush=True)
    for side, number in itertools.product(arguments.sides, range(arguments.rounds)):
        of_both = {"ours": {}, "theirs": {}}
        for whose in sorted(of_both, reverse=number % 2 == 1):
            if whose == "ours":
                of_both[whose] = by_calorimeter(binary, side, arguments.recipes)
            else:
                names = dict.fromkeys(recipe.removesuffix("-fast") for recipe in arguments.recipes)
                of_both[whose] = {name: by_torch(side, name) for name in names}
        for recipe in arguments.recipes:
            theirs = of_both["theirs"][recipe.removesuffix("-fast")]
            time_ms = of_both["ours"].get(recipe, "not measured")
            if isinstance(time_ms, str):
                print(f"{side:>6}  {recipe:<16} {time_ms}; theirs {theirs:.3f} ms", flush=True)
            else:
                print(f"{side:>6}  {recipe:<16} {time_ms:>9.3f} {theirs:>9.3f} {time_ms / theirs:>13.3f}", flush=True)


if __name__ == "__main__":
    main()
