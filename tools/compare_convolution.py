#!/usr/bin/env python3
"""Compares Calorimeter's convolution with batch normalization and ReLU with torch's on one NVIDIA GPU.

Calorimeter measures `conv2d_bn_relu` by `native` in bf16. Then torch runs the same computation in channels-last layout,
in a loop after one second of the same load, in two variants:

- folded: the normalization is folded into the filters, and `cudnn_convolution_relu` runs one kernel of cuDNN, selected
  by cuDNN's benchmark mode;
- compiled: `conv2d`, `batch_norm` and `relu` under `torch.compile`.

    python3 tools/compare_convolution.py target/release/calorimeter --shapes 32,256,256,56,3 32,64,64,56,3

Needs torch and a CUDA device. Run nothing else on the device at the same time. Calorimeter finds cuDNN in
torch's CUDA packages or in the folders of LD_LIBRARY_PATH. --without-cudnn hides torch's cuDNN, so that Calorimeter uses
its own kernel.
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

AXES = ["batch", "in_channels", "out_channels", "size", "kernel"]


def cuda_library_folders():
    """Returns the folders of the CUDA libraries that were installed with torch."""
    import nvidia

    return [str(folder) for root in nvidia.__path__ for folder in sorted(Path(root).glob("*/lib"))]


def measure_calorimeter(binary, shape, with_cudnn):
    """Returns microseconds, or the reason why there is no time, and the name of the kernel."""
    folders = [os.environ.get("LD_LIBRARY_PATH", "")]
    folders += [folder for folder in cuda_library_folders() if with_cudnn or "cudnn" not in folder]
    environment = dict(os.environ, LD_LIBRARY_PATH=":".join(filter(None, folders)))
    model = {"model": "conv2d_bn_relu", "implementations": ["native"], "axes": dict(zip(AXES, shape))}
    with tempfile.TemporaryDirectory() as folder:
        # JSON is valid YAML.
        config = {"device": "cuda", "dtype": "bf16", "recipes": ["baseline"], "models": [model]}
        (Path(folder) / "c.yml").write_text(json.dumps(config))
        command = [binary, "run", "c.yml", "--out", "out", "--format", "jsonl"]
        process = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    for line in process.stdout.splitlines():
        record = json.loads(line)
        time_ns = record.get("time_ns")
        time_us = time_ns["median"] / 1e3 if time_ns else record.get("reason", record["status"])
        return time_us, record.get("kernel", "")
    sys.exit(f"error: {binary} wrote no records (exit code {process.returncode})")


def measure_torch(shape):
    """Returns microseconds of the folded and of the compiled variant."""
    import torch

    torch.backends.cudnn.benchmark = True
    batch, channels, filters, size, side = shape
    padding = (side - 1) // 2

    def random(*sizes):
        return torch.randn(sizes, device="cuda", dtype=torch.bfloat16)

    x = random(batch, channels, size, size).to(memory_format=torch.channels_last)
    w = (random(filters, channels, side, side) / (channels * side * side) ** 0.5).to(memory_format=torch.channels_last)
    mean, gain, bias = random(filters), random(filters), random(filters)
    variance = torch.rand(filters, device="cuda", dtype=torch.bfloat16) + 0.5

    def folded():
        return torch.cudnn_convolution_relu(x, w, bias, [1, 1], [padding, padding], [1, 1], 1)

    @torch.compile
    def compiled():
        y = torch.nn.functional.conv2d(x, w, None, 1, padding)
        return torch.relu(torch.nn.functional.batch_norm(y, mean, variance, gain, bias))

    return [measure_steady_state(launch) for launch in [folded, compiled]]


def measure_steady_state(launch):
    """Returns the median microseconds of a call after one second of load."""
    import torch

    warm_up_start = time.monotonic()
    while time.monotonic() - warm_up_start < 1.0:
        for _ in range(10):
            launch()
        torch.cuda.synchronize()
    times = []
    for _ in range(20):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(20):
            launch()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 20 * 1e3)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", help="path of the calorimeter binary, built with CUDA")
    parser.add_argument("--shapes", nargs="+", default=["32,256,256,56,3"], help=",".join(AXES))
    parser.add_argument("--without-cudnn", action="store_true", help="hide torch's cuDNN from Calorimeter")
    arguments = parser.parse_args()
    binary = str(Path(arguments.binary).resolve())
    print(f"{','.join(AXES):>44} {'native us':>9} {'folded':>8} {'ratio':>6} {'compiled':>8} {'ratio':>6}", flush=True)
    for text in arguments.shapes:
        shape = [int(size) for size in text.split(",")]
        native_us, kernel = measure_calorimeter(binary, shape, not arguments.without_cudnn)
        torch_us = measure_torch(shape)
        if isinstance(native_us, str):
            print(f"{text:>44} {native_us}; torch {torch_us[0]:.1f}, {torch_us[1]:.1f}", flush=True)
        else:
            cells = " ".join(f"{time_us:>8.1f} {native_us / time_us:>6.2f}" for time_us in torch_us)
            print(f"{text:>44} {native_us:>9.1f} {cells}  {kernel}", flush=True)


if __name__ == "__main__":
    main()
