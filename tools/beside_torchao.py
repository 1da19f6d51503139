#!/usr/bin/env python3
"""Set Calorimeter's `native` beside torchao, compiled, on one NVIDIA GPU.

For each shape, Calorimeter measures a model under some recipes (`native`, bf16, operands from
memory), then torchao quantizes the same model here, torch compiles it, and it is timed in two
ways: by CUDA events around a loop of calls, as torchao's own benchmarks would, and around replays
of a CUDA graph of ten calls, which leaves out what the host needs to launch them. torch's operands
come from the cache as far as they fit into it; Calorimeter's do not, so ratios are on the safe side,
unless --regime device-hot asks for the same.

    pip download --no-deps torchao==0.14.1 && unzip -d torchao-0.14.1 torchao-0.14.1-*.whl
    PYTHONPATH=torchao-0.14.1 python3 tools/beside_torchao.py target/release/calorimeter \\
        --shapes 1,4096,4096 4096,4096,4096 --recipes baseline int8wo int4wo-128 int8dq

`ours / loop` is what a user of torch would see, `ours / graph` compares kernels. It needs torch,
torchao and a CUDA device; nothing else on the device should run meanwhile.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

warnings.simplefilter("ignore")


# ---------------------------------------------------------------- Calorimeter


def by_calorimeter(binary, model, shape, recipes, regime):
    """Microseconds of each recipe, the reason in its place where there is none."""
    config = {
        "device": "cuda",
        "dtype": "bf16",
        "recipes": list(recipes),
        "implementations": ["native"],
        "regimes": [regime],
        "models": [{"model": model, "shapes": [{"name": "custom", "shapes": [list(shape)]}]}],
    }
    with tempfile.TemporaryDirectory() as folder:
        # JSON is YAML.
        (Path(folder) / "c.yml").write_text(json.dumps(config))
        command = [binary, "run", "c.yml", "--out", "out", "--format", "jsonl"]
        ran = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    found = {}
    for line in ran.stdout.splitlines():
        record = json.loads(line)
        time_ns = record.get("time_ns")
        found[record["recipe"]] = time_ns["median"] / 1e3 if time_ns else record.get("reason", record["status"])
    if not found:
        sys.exit(f"error: {binary} measured nothing and ended with exit code {ran.returncode}")
    return found


# ---------------------------------------------------------------- torchao


def recipe_of(name):
    """torchao's configuration of a recipe. Its float8 products are added up fast, as ours are under names with -fast."""
    name = name.removesuffix("-fast")
    from torchao.quantization import quant_api as api
    from torchao.quantization.granularity import PerRow, PerTensor

    if name.startswith("int4wo-"):
        return api.Int4WeightOnlyConfig(group_size=int(name.split("-")[1]), version=1)
    return {
        "int8wo": api.Int8WeightOnlyConfig,
        "int8dq": api.Int8DynamicActivationInt8WeightConfig,
        "float8wo": api.Float8WeightOnlyConfig,
        "float8dq-row": lambda: api.Float8DynamicActivationFloat8WeightConfig(granularity=PerRow()),
        "float8dq-tensor": lambda: api.Float8DynamicActivationFloat8WeightConfig(granularity=PerTensor()),
    }[name]()


def by_events(torch, launch, seconds):
    """Microseconds of a launch around a loop, in the second half of so many seconds."""

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


def by_graph(torch, launch, seconds, calls=10):
    """Microseconds of a call in replays of a graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            launch()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            launch()
    return by_events(torch, graph.replay, seconds) / calls


def by_torchao(torch, model, shape, recipe, mode, seconds):
    """Microseconds of a call in a loop and in a graph, and the seconds that compiling took."""
    from torchao.quantization import quantize_
    from torchao.testing.model_architectures import create_model_and_input_data

    torch._dynamo.reset()
    made, x = create_model_and_input_data(model, *shape, torch.bfloat16, "cuda")
    made = made.eval()
    if recipe != "baseline":
        quantize_(made, recipe_of(recipe))
    compiled = torch.compile(made, mode=mode)
    start = time.monotonic()
    with torch.no_grad():
        compiled(x)
        torch.cuda.synchronize()
        compiling = time.monotonic() - start
        launch = lambda: compiled(x)  # noqa: E731
        return by_events(torch, launch, seconds), by_graph(torch, launch, seconds), compiling


# ---------------------------------------------------------------- both


def number(value):
    return f"{value:.1f}" if isinstance(value, float) else "-"


def ratio(ours, theirs):
    both = isinstance(ours, float) and isinstance(theirs, float)
    return f"{ours / theirs:.2f}" if both else "-"


def sizes(text):
    shape = tuple(int(size) for size in text.split(","))
    if len(shape) != 3 or min(shape) < 1:
        raise ValueError
    return shape


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", help="the program calorimeter, a release build")
    parser.add_argument("--model", default="linear", help="linear, ln_linear_silu, transformer_block, …")
    parser.add_argument("--shapes", nargs="+", type=sizes, default=[(4096, 4096, 4096)], metavar="M,K,N")
    parser.add_argument("--recipes", nargs="+", default=["baseline", "int8wo", "int4wo-128", "int8dq", "float8dq-row"])
    parser.add_argument("--regime", default="device-cold", help="of ours; device-hot has operands from the cache, too")
    parser.add_argument("--mode", default="max-autotune-no-cudagraphs", help="torch.compile's mode")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each timed loop")
    options = parser.parse_args()
    binary = Path(options.binary).resolve()
    if not binary.is_file():
        parser.error(f"there is no program {options.binary}")
    try:
        import torch
        import torchao
    except ImportError as error:
        sys.exit(f"error: this sets torchao beside Calorimeter, and {error.name} cannot be imported here")
    if not torch.cuda.is_available():
        sys.exit("error: this compares times on a CUDA device, and torch finds none here")

    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, torchao {torchao.__version__}, {options.mode}")
    print(f"{'µs':<36} {'ours':>9} {'loop':>9} {'graph':>9} {'ours/loop':>10} {'ours/graph':>10}")
    logs = []
    for shape in options.shapes:
        ours = by_calorimeter(str(binary), options.model, shape, options.recipes, options.regime)
        for recipe in options.recipes:
            try:
                loop, graph, compiling = by_torchao(
                    torch, options.model, shape, recipe, options.mode, options.seconds
                )
            except Exception as error:  # noqa: BLE001 - what torchao cannot do is a row of its own
                loop, graph, compiling = f"{type(error).__name__}: {error}".splitlines()[0], None, 0.0
            own = ours.get(recipe)
            name = f"{options.model} {'x'.join(map(str, shape))} {recipe}"
            cells = f"{number(own):>9} {number(loop):>9} {number(graph):>9} {ratio(own, loop):>10} {ratio(own, graph):>10}"
            print(f"{name:<36} {cells}", flush=True)
            for side, value in (("ours", own), ("torchao", loop)):
                if isinstance(value, str):
                    print(f"    {side}: {value[:200]}")
            if isinstance(own, float) and isinstance(loop, float):
                logs.append((math.log(own / loop), math.log(own / graph)))
    if logs:
        means = [math.exp(sum(column) / len(logs)) for column in zip(*logs)]
        print(f"geometric mean of {len(logs)}: ours/loop {means[0]:.3f}, ours/graph {means[1]:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
