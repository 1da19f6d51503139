#!/usr/bin/env python3
"""Set Calorimeter's `native` operators of rows, and products, beside torch's, on the processor of this machine.

Calorimeter measures each operator in `eager`, and then in `native` in turn with torch, which runs the same here, into
memory that is kept where torch lets it, in a loop after half a second of the same load. The arrays are larger than caches.
Then linear layers of one row and of 1024: torch has them in f32, ours also under recipes, beside the f32 baseline of one run.

    python3 tools/beside_torch_on_cpu.py target/release/calorimeter --axes 4,1024,4096

It needs torch, not a GPU; nothing else should run on the machine meanwhile.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

AXES = ["batch", "sequence", "dimension"]
OPERATORS = ["layer_norm", "rms_norm", "softmax", "gelu", "gelu_tanh", "silu", "swiglu", "mse_loss", "cross_entropy"]


LINEAR = [[1, 4096, 4096], [1024, 4096, 4096]]
RECIPES = ["baseline", "int8dq", "int8wo", "int4wo-128"]


def operators(binary, sizes, dtype, threads, implementation):
    """Milliseconds of each operator, the reason in their place where there are none."""
    axes = dict(zip(AXES, sizes))
    models = [{"model": name, "implementations": [implementation], "axes": axes} for name in OPERATORS]
    config = {"dtype": dtype, "timing": {"max_time": "1s"}, "models": models}
    times = {record["workload"]: milliseconds(record) for record in by_calorimeter(binary, config, threads)}
    return {name: times.get(name, "not measured") for name in OPERATORS}


def middle(values):
    """Their median, or the first reason why there is none."""
    reasons = [value for value in values if isinstance(value, str)]
    return reasons[0] if reasons else statistics.median(values)


def products(binary, threads):
    """Milliseconds of linear layers by rows, recipe and implementation, and how much faster than the baseline they are."""
    models = [{"implementations": ["eager", "native"], "shapes": [{"name": "custom", "shapes": LINEAR}]}]
    config = {"dtype": "f32", "recipes": RECIPES, "timing": {"max_time": "2s"}, "models": models}
    return {
        (record["shape"]["m"], record["recipe"], record["implementation"]): (milliseconds(record), record.get("speedup"))
        for record in by_calorimeter(binary, config, threads)
    }


def milliseconds(record):
    time_ns = record.get("time_ns")
    return time_ns["median"] / 1e6 if time_ns else record.get("reason", record["status"])


def by_calorimeter(binary, config, threads):
    """The records of a run on the processor."""
    config["device"] = "cpu"
    with tempfile.TemporaryDirectory() as folder:
        # JSON is YAML.
        (Path(folder) / "c.yml").write_text(json.dumps(config))
        command = [binary, "run", "c.yml", "--out", "out", "--format", "jsonl"]
        environment = {**os.environ, "RAYON_NUM_THREADS": str(threads)}
        ran = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    records = [json.loads(line) for line in ran.stdout.splitlines()]
    if not records:
        sys.exit(f"error: {binary} measured nothing and ended with exit code {ran.returncode}")
    return records


def launches(torch, sizes, dtype):
    """The same operators as closures."""
    aten, rows, n = torch.ops.aten, sizes[0] * sizes[1], sizes[2]
    x, y = (torch.randn(rows, n, dtype=dtype) for _ in range(2))
    gain, bias = torch.rand(n, dtype=dtype) + 0.5, torch.randn(n, dtype=dtype)
    mean, inverse = (torch.empty(rows, 1, dtype=dtype) for _ in range(2))
    classes = torch.randint(n, (rows,))
    out = torch.empty_like(x)
    return {
        "layer_norm": lambda: aten.native_layer_norm.out(x, [n], gain, bias, 1e-5, out0=out, out1=mean, out2=inverse),
        "rms_norm": lambda: torch.nn.functional.rms_norm(x, (n,), gain, 1e-5),
        "softmax": lambda: aten._softmax.out(x, -1, False, out=out),
        "gelu": lambda: aten.gelu.out(x, approximate="none", out=out),
        "gelu_tanh": lambda: aten.gelu.out(x, approximate="tanh", out=out),
        "silu": lambda: aten.silu.out(x, out=out),
        "swiglu": lambda: aten.silu.out(x, out=out).mul_(y),
        "mse_loss": lambda: torch.nn.functional.mse_loss(x, y),
        "cross_entropy": lambda: torch.nn.functional.cross_entropy(x, classes),
    }


def steady(launch, seconds=0.5):
    """The median milliseconds of a call, after as long of the same load."""
    for timed in [False, True]:
        times, begun = [], time.perf_counter()
        while len(times) < 5 or time.perf_counter() - begun < seconds:
            start = time.perf_counter()
            launch()
            times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", help="the program calorimeter, a release build")
    parser.add_argument("--axes", default="4,1024,4096", help=",".join(AXES))
    parser.add_argument("--dtypes", nargs="+", default=["f32", "bf16"])
    parser.add_argument("--rounds", type=int, default=5, help="how often `native` and torch run in turn")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(arguments.threads)
    sizes = [int(size) for size in arguments.axes.split(",")]
    binary = str(Path(arguments.binary).resolve())
    print(f"{arguments.axes}, {arguments.threads} threads, torch {torch.__version__}, milliseconds")
    print(f"{'':<22} {'eager':>9} {'native':>9} {'torch':>9} {'native / torch':>15}", flush=True)
    for dtype, kind in [("f32", torch.float32), ("bf16", torch.bfloat16)]:
        if dtype not in arguments.dtypes:
            continue
        eager = operators(binary, sizes, dtype, arguments.threads, "eager")
        native, theirs = {name: [] for name in OPERATORS}, {name: [] for name in OPERATORS}
        # In turn, so that a busy neighbor of the machine takes from both sides.
        for _ in range(arguments.rounds):
            for name, value in operators(binary, sizes, dtype, arguments.threads, "native").items():
                native[name].append(value)
            with torch.no_grad():
                for name, launch in launches(torch, sizes, kind).items():
                    theirs[name].append(steady(launch))
        for name in OPERATORS:
            ours, torchs = middle(native[name]), middle(theirs[name])
            cells = "".join(f" {value:>9.3f}" if isinstance(value, float) else f" {value[:60]}" for value in [eager[name], ours])
            ratio = f"{ours / torchs:>15.2f}" if isinstance(ours, float) else ""
            print(f"{name:<16} {dtype:<5}{cells} {torchs:>9.3f} {ratio}", flush=True)
    beside_products(torch, binary, arguments.threads)


def beside_products(torch, binary, threads):
    """Prints each product of ours with its time and its speed-up, and torch's."""
    ours = products(binary, threads)
    for shape in LINEAR:
        x, w = torch.randn(shape[0], shape[1]), torch.randn(shape[2], shape[1])
        with torch.no_grad():
            theirs = steady(lambda: torch.nn.functional.linear(x, w), 2.0)
        print(f"linear {'x'.join(map(str, shape))} f32: torch {theirs:.3f}")
        for (rows, recipe, implementation), (value, speedup) in ours.items():
            if rows != shape[0]:
                continue
            beside = f"{value:>9.3f} {value / theirs:>6.2f} of torch's" if isinstance(value, float) else value[:80]
            faster = f", {speedup['ratio']:.2f}x its baseline" if speedup else ""
            print(f"    {recipe:<12} {implementation:<8} {beside}{faster}", flush=True)


if __name__ == "__main__":
    main()
