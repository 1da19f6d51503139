#!/usr/bin/env python3
"""Compares the clock of Triton's `do_bench` with Calorimeter's clocks on three kernels of torch.

A run of Calorimeter cannot use the clock of `do_bench`, which overwrites the cache before each launch. This script
therefore measures a GEMM, a copy and a layer normalization in bf16 twice: by `calorimeter run --python torch`, with
operands from memory (`device-cold`) and from the cache (`device-hot`), and by `do_bench`.

    python3 tools/do_bench_clock.py target/release/calorimeter --shape 1 4096 4096

For short launches, `do_bench / cold` is above 1: dirty cache lines must be written back, and events have overhead.

Needs torch, triton, the Python package of Calorimeter and a CUDA device. Run nothing else on the device at the same
time.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

COPY_ELEMENTS = 1 << 26
ROWS, WIDTH = 8192, 4096


def measure_calorimeter(binary, shape):
    """Returns microseconds of each workload in each regime."""
    models = [
        {"name": "gemm", "model": "linear", "shapes": [shape]},
        {"name": "copy", "model": "stream_copy", "axes": {"elements": COPY_ELEMENTS}},
        {"name": "layer norm", "model": "layer_norm", "axes": {"batch": 1, "sequence": ROWS, "dimension": WIDTH}},
    ]
    settings = {"device": "cuda", "dtype": "bf16", "recipes": ["baseline"], "implementations": ["torch"]}
    config = {**settings, "regimes": ["device-cold", "device-hot"], "models": models}
    with tempfile.TemporaryDirectory() as folder:
        # JSON is valid YAML.
        (Path(folder) / "c.yml").write_text(json.dumps(config))
        command = [binary, "run", "c.yml", "--python", "torch", "--out", "out", "--format", "jsonl"]
        process = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    records = [json.loads(line) for line in process.stdout.splitlines()]
    for record in records:
        if record["status"] != "ok":
            sys.exit(f"error: {record['id']} has status {record['status']}: {record.get('reason', 'without a reason')}")
    if not records:
        sys.exit(f"error: {binary} wrote no records (exit code {process.returncode})")
    return {(record["name"], record["regime"]): record["time_ns"]["median"] / 1e3 for record in records}


def workloads(torch, m, k, n):
    """Returns each workload as a closure."""

    def random(*shape):
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)

    x, weight, source = random(m, k), random(n, k), random(COPY_ELEMENTS)
    rows, gain, bias = random(ROWS, WIDTH), random(WIDTH), random(WIDTH)
    return {
        "gemm": lambda: torch.nn.functional.linear(x, weight),
        "copy": lambda: torch.clone(source),
        "layer norm": lambda: torch.nn.functional.layer_norm(rows, (WIDTH,), gain, bias),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", help="path of the calorimeter binary, a release build")
    parser.add_argument(
        "--shape", nargs=3, type=int, default=(4096, 4096, 4096), metavar=("M", "K", "N"), help="size of the GEMM"
    )
    options = parser.parse_args()
    try:
        import torch
        from triton.testing import do_bench
    except ImportError as error:
        sys.exit(f"error: cannot import {error.name}; this script needs torch and triton")
    if not torch.cuda.is_available():
        sys.exit("error: torch found no CUDA device")
    calorimeter = measure_calorimeter(str(Path(options.binary).resolve()), list(options.shape))
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; GEMM {' x '.join(map(str, options.shape))}")
    print(f"{'µs':<11} {'device-cold':>12} {'device-hot':>12} {'do_bench':>10} {'do_bench / cold':>16}")
    for name, launch in workloads(torch, *options.shape).items():
        time_us = do_bench(launch, warmup=100, rep=500, return_mode="median") * 1e3
        cold, hot = calorimeter[name, "device-cold"], calorimeter[name, "device-hot"]
        print(f"{name:<11} {cold:>12.2f} {hot:>12.2f} {time_us:>10.2f} {time_us / cold:>16.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
