#!/usr/bin/env python3
"""Compares Calorimeter's row-wise operators and linear layers with torch's on the CPU of this machine.

Row-wise operators: Calorimeter measures each one with `eager` once, then with `native` alternating with torch. torch
runs the same computation in a loop after half a second of load, into preallocated memory if torch has an `out` variant.
The arrays are larger than the caches.

Linear layers with 1 and 1024 rows: torch runs them in f32. Calorimeter also runs quantized recipes, compared with its
f32 baseline.

    python3 tools/compare_torch_on_cpu.py target/release/calorimeter --axes 4,1024,4096

Needs torch, but no GPU. Run nothing else on the machine at the same time.
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
LINEAR_SHAPES = [[1, 4096, 4096], [1024, 4096, 4096]]
RECIPES = ["baseline", "int8dq", "int8wo", "int4wo-128"]


def measure_operators(binary, sizes, dtype, threads, implementation):
    """Returns milliseconds of each operator, or the reason why there is no time."""
    axes = dict(zip(AXES, sizes))
    models = [{"model": name, "implementations": [implementation], "axes": axes} for name in OPERATORS]
    config = {"dtype": dtype, "timing": {"max_time": "1s"}, "models": models}
    times = {record["workload"]: milliseconds(record) for record in run_calorimeter(binary, config, threads)}
    return {name: times.get(name, "not measured") for name in OPERATORS}


def median_or_reason(values):
    """Returns the median, or the first reason why there is no time."""
    reasons = [value for value in values if isinstance(value, str)]
    return reasons[0] if reasons else statistics.median(values)


def measure_linear_layers(binary, threads):
    """Returns milliseconds and speed-up of linear layers by rows, recipe and implementation."""
    models = [{"implementations": ["eager", "native"], "shapes": [{"name": "custom", "shapes": LINEAR_SHAPES}]}]
    config = {"dtype": "f32", "recipes": RECIPES, "timing": {"max_time": "2s"}, "models": models}
    times = {}
    for record in run_calorimeter(binary, config, threads):
        key = record["shape"]["m"], record["recipe"], record["implementation"]
        times[key] = milliseconds(record), record.get("speedup")
    return times


def milliseconds(record):
    """Returns the time of a record, or the reason why there is no time."""
    time_ns = record.get("time_ns")
    return time_ns["median"] / 1e6 if time_ns else record.get("reason", record["status"])


def run_calorimeter(binary, config, threads):
    """Returns the records of a run on the CPU."""
    config["device"] = "cpu"
    with tempfile.TemporaryDirectory() as folder:
        # JSON is valid YAML.
        (Path(folder) / "c.yml").write_text(json.dumps(config))
        command = [binary, "run", "c.yml", "--out", "out", "--format", "jsonl"]
        environment = {**os.environ, "RAYON_NUM_THREADS": str(threads)}
        process = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    records = [json.loads(line) for line in process.stdout.splitlines()]
    if not records:
        sys.exit(f"error: {binary} wrote no records (exit code {process.returncode})")
    return records


def torch_operators(torch, sizes, dtype):
    """Returns each operator as a closure."""
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


def measure_steady_state(launch, seconds=0.5):
    """Returns the median milliseconds of a call over `seconds`, after a warm-up of equal length."""
    for _phase in ["warm-up", "timed"]:
        times, phase_start = [], time.perf_counter()
        while len(times) < 5 or time.perf_counter() - phase_start < seconds:
            start = time.perf_counter()
            launch()
            times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", help="path of the calorimeter binary, a release build")
    parser.add_argument("--axes", default="4,1024,4096", help=",".join(AXES))
    parser.add_argument("--dtypes", nargs="+", default=["f32", "bf16"])
    parser.add_argument("--rounds", type=int, default=5, help="repetitions of `native` and torch, alternating")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(arguments.threads)
    sizes = [int(size) for size in arguments.axes.split(",")]
    binary = str(Path(arguments.binary).resolve())
    print(f"{arguments.axes}, {arguments.threads} threads, torch {torch.__version__}, milliseconds")
    print(f"{'':<22} {'eager':>9} {'native':>9} {'torch':>9} {'native / torch':>15}", flush=True)
    for dtype, torch_dtype in [("f32", torch.float32), ("bf16", torch.bfloat16)]:
        if dtype not in arguments.dtypes:
            continue
        eager = measure_operators(binary, sizes, dtype, arguments.threads, "eager")
        native_times, torch_times = {name: [] for name in OPERATORS}, {name: [] for name in OPERATORS}
        # Alternating, so that other load on the machine affects both sides alike.
        for _ in range(arguments.rounds):
            for name, value in measure_operators(binary, sizes, dtype, arguments.threads, "native").items():
                native_times[name].append(value)
            with torch.no_grad():
                for name, launch in torch_operators(torch, sizes, torch_dtype).items():
                    torch_times[name].append(measure_steady_state(launch))
        for name in OPERATORS:
            native_ms, torch_ms = median_or_reason(native_times[name]), median_or_reason(torch_times[name])
            values = [eager[name], native_ms]
            cells = "".join(f" {value:>9.3f}" if isinstance(value, float) else f" {value[:60]}" for value in values)
            ratio = f"{native_ms / torch_ms:>15.2f}" if isinstance(native_ms, float) else ""
            print(f"{name:<16} {dtype:<5}{cells} {torch_ms:>9.3f} {ratio}", flush=True)
    compare_linear_layers(torch, binary, arguments.threads)


def compare_linear_layers(torch, binary, threads):
    """Prints the time of each linear layer in torch, then Calorimeter's times and speed-ups."""
    calorimeter = measure_linear_layers(binary, threads)
    for shape in LINEAR_SHAPES:
        x, w = torch.randn(shape[0], shape[1]), torch.randn(shape[2], shape[1])
        with torch.no_grad():
            torch_ms = measure_steady_state(lambda: torch.nn.functional.linear(x, w), 2.0)
        print(f"linear {'x'.join(map(str, shape))} f32: torch {torch_ms:.3f}")
        for (rows, recipe, implementation), (value, speedup) in calorimeter.items():
            if rows != shape[0]:
                continue
            cells = f"{value:>9.3f} {value / torch_ms:>6.2f} of torch" if isinstance(value, float) else value[:80]
            suffix = f", speed-up {speedup['ratio']:.2f}" if speedup else ""
            print(f"    {recipe:<12} {implementation:<8} {cells}{suffix}", flush=True)


if __name__ == "__main__":
    main()
