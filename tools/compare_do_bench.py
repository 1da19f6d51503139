#!/usr/bin/env python3
"""Compares Calorimeter's times with times of Triton's `do_bench` and of CUDA events.

Three bf16 workloads are measured: a GEMM, a copy and a layer normalization. Calorimeter measures
them on `cuda` with operands from memory (`device-cold`) and from the cache (`device-hot`). Then
torch runs the same sizes, timed in two ways: by `triton.testing.do_bench`, which overwrites the
cache before each launch, and by two CUDA events around a long loop of launches on one set of
tensors.

    python3 tools/compare_do_bench.py target/release/calorimeter --shape 1 4096 4096

Interpretation of the ratios:

- GEMM and copy: both sides run the GEMM of cuBLAS, and both copies move the same bytes. `loop / hot`
  should be near 1 if a launch takes longer than the host needs to enqueue it.
- Short launches: `do_bench / cold` is above 1. The cache of `do_bench` is full of dirty lines that
  must be written back, and its events have overhead.
- Layer normalization: Calorimeter's kernel differs from torch's, so the ratio compares kernels, not
  clocks.

Needs torch, triton and a CUDA device. Run nothing else on the device at the same time.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

COPY_ELEMENTS = 1 << 26
ROWS, WIDTH = 8192, 4096


# ---------------------------------------------------------------- Calorimeter


def config(m, k, n):
    return f"""\
device: cuda
dtype: bf16
recipes: [baseline]
regimes: [device-cold, device-hot]
models:
  - {{name: gemm, model: linear, implementations: [native], shapes: [{{name: custom, shapes: [[{m}, {k}, {n}]]}}]}}
  - {{name: copy, model: single_device_hbm_copy, implementations: [native], axes: {{num_elements: {COPY_ELEMENTS}}}}}
  - name: layer norm
    model: layer_norm
    implementations: [cube]
    axes: {{batch: 1, sequence: {ROWS}, dimension: {WIDTH}}}
"""


def measure_calorimeter(binary, text):
    """Returns microseconds of each workload in each regime."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "c.yml").write_text(text)
        command = [binary, "run", "c.yml", "--out", "out", "--format", "jsonl"]
        process = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    times = {}
    for line in process.stdout.splitlines():
        record = json.loads(line)
        if record["status"] != "ok":
            sys.exit(f"error: {record['id']} has status {record['status']}: {record.get('reason', 'without a reason')}")
        times[record["name"], record["regime"]] = record["time_ns"]["median"] / 1e3
    if not times:
        sys.exit(f"error: {binary} wrote no records (exit code {process.returncode})")
    return times


# ---------------------------------------------------------------- torch


def workloads(torch, m, k, n):
    """Returns each workload as a closure; GEMM and copy write into preallocated tensors."""

    def random(*shape):
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)

    x, weight, y = random(m, k), random(n, k), random(m, n)
    source, target = random(COPY_ELEMENTS), random(COPY_ELEMENTS)
    rows, gain, bias = random(ROWS, WIDTH), random(WIDTH), random(WIDTH)
    return {
        "gemm": lambda: torch.mm(x, weight.t(), out=y),
        "copy": lambda: target.copy_(source),
        "layer norm": lambda: torch.nn.functional.layer_norm(rows, (WIDTH,), gain, bias),
    }


def time_with_events(torch, launch, seconds=0.5):
    """Returns microseconds per launch, from two events around a loop of about `seconds`."""

    def loop(launches):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(launches):
            launch()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e3 / launches

    loop(10)
    launches = max(10, int(seconds * 1e6 / max(loop(100), 0.1)))
    return loop(launches)


def time_with_do_bench(do_bench, launch):
    """Returns the median microseconds of a launch over half a second."""
    return do_bench(launch, warmup=100, rep=500, return_mode="median") * 1e3


def import_torch():
    try:
        import torch
        from triton.testing import do_bench
    except ImportError as error:
        sys.exit(f"error: cannot import {error.name}; this script needs torch and triton")
    if not torch.cuda.is_available():
        sys.exit("error: torch found no CUDA device")
    return torch, do_bench


# ---------------------------------------------------------------- comparison


def format_table(calorimeter, torch_times):
    header = f"{'µs':<11} {'device-cold':>12} {'do_bench':>10} {'do_bench / cold':>16}"
    lines = [header + f" {'device-hot':>12} {'loop':>10} {'loop / hot':>12}"]
    for name, (do_bench, loop) in torch_times.items():
        cold, hot = calorimeter[name, "device-cold"], calorimeter[name, "device-hot"]
        line = f"{name:<11} {cold:>12.2f} {do_bench:>10.2f} {do_bench / cold:>16.3f}"
        lines.append(line + f" {hot:>12.2f} {loop:>10.2f} {loop / hot:>12.3f}")
    return "\n".join(lines)


def parse_size(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", help="path of the calorimeter binary, a release build")
    parser.add_argument(
        "--shape", nargs=3, type=parse_size, default=(4096, 4096, 4096), metavar=("M", "K", "N"), help="size of the GEMM"
    )
    options = parser.parse_args()
    binary = Path(options.binary).resolve()
    if not binary.is_file():
        parser.error(f"file not found: {options.binary}")
    torch, do_bench = import_torch()
    calorimeter = measure_calorimeter(str(binary), config(*options.shape))
    torch_times = {
        name: (time_with_do_bench(do_bench, launch), time_with_events(torch, launch))
        for name, launch in workloads(torch, *options.shape).items()
    }
    m, k, n = options.shape
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; GEMM {m} x {k} x {n}")
    print(format_table(calorimeter, torch_times))
    return 0


if __name__ == "__main__":
    sys.exit(main())
