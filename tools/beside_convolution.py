#!/usr/bin/env python3
"""Set Calorimeter's convolution with batch normalization and ReLU beside torch's on one NVIDIA GPU.

For each size Calorimeter measures `conv2d_bn_relu` by `native` in bf16; then torch does the same, channels last, in a loop
after a second of the same load: the normalization folded into the filters, by `cudnn_convolution_relu`, which is one kernel
of cuDNN's, with cuDNN's own benchmark on; and by `conv2d`, `batch_norm` and `relu`, compiled.

    python3 tools/beside_convolution.py target/release/calorimeter --shapes 32,256,256,56,3 32,64,64,56,3

It needs torch and a CUDA device; nothing else on the device should run meanwhile. Calorimeter has cuDNN too where
LD_LIBRARY_PATH names its folder; with --without-cudnn it is measured by its own kernel.
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


def libraries():
    """The folders of the CUDA libraries that torch brought."""
    import nvidia

    return [str(folder) for root in nvidia.__path__ for folder in sorted(Path(root).glob("*/lib"))]


def by_calorimeter(binary, shape, with_cudnn):
    """Microseconds and the kernel; the reason in place of the first where there is none."""
    folders = [os.environ.get("LD_LIBRARY_PATH", "")]
    folders += [folder for folder in libraries() if with_cudnn or "cudnn" not in folder]
    environment = dict(os.environ, LD_LIBRARY_PATH=":".join(filter(None, folders)))
    model = {"model": "conv2d_bn_relu", "implementations": ["native"], "axes": dict(zip(AXES, shape))}
    with tempfile.TemporaryDirectory() as folder:
        # JSON is YAML.
        config = {"device": "cuda", "dtype": "bf16", "recipes": ["baseline"], "models": [model]}
        (Path(folder) / "c.yml").write_text(json.dumps(config))
        command = [binary, "run", "c.yml", "--out", "out", "--format", "jsonl"]
        ran = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    for line in ran.stdout.splitlines():
        record = json.loads(line)
        time_ns = record.get("time_ns")
        time_us = time_ns["median"] / 1e3 if time_ns else record.get("reason", record["status"])
        return time_us, record.get("kernel", "")
    sys.exit(f"error: {binary} measured nothing and ended with exit code {ran.returncode}")


def by_torch(shape):
    """Microseconds of the folded convolution, and of the compiled steps."""
    import torch

    torch.backends.cudnn.benchmark = True
    batch, channels, filters, size, side = shape
    padding = (side - 1) // 2

    def some(*sizes):
        return torch.randn(sizes, device="cuda", dtype=torch.bfloat16)

    x = some(batch, channels, size, size).to(memory_format=torch.channels_last)
    w = (some(filters, channels, side, side) / (channels * side * side) ** 0.5).to(memory_format=torch.channels_last)
    mean, gain, bias = some(filters), some(filters), some(filters)
    variance = torch.rand(filters, device="cuda", dtype=torch.bfloat16) + 0.5

    def folded():
        return torch.cudnn_convolution_relu(x, w, bias, [1, 1], [padding, padding], [1, 1], 1)

    @torch.compile
    def steps():
        y = torch.nn.functional.conv2d(x, w, None, 1, padding)
        return torch.relu(torch.nn.functional.batch_norm(y, mean, variance, gain, bias))

    return [timed(way) for way in [folded, steps]]


def timed(way):
    """Microseconds of a call at its steady state."""
    import torch

    begun = time.monotonic()
    while time.monotonic() - begun < 1.0:
        for _ in range(10):
            way()
        torch.cuda.synchronize()
    times = []
    for _ in range(20):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(20):
            way()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 20 * 1e3)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", help="the program calorimeter, built with CUDA")
    parser.add_argument("--shapes", nargs="+", default=["32,256,256,56,3"], help=",".join(AXES))
    parser.add_argument("--without-cudnn", action="store_true", help="hide cuDNN from Calorimeter")
    arguments = parser.parse_args()
    binary = str(Path(arguments.binary).resolve())
    print(f"{','.join(AXES):>44} {'ours us':>8} {'folded':>8} {'ratio':>6} {'compiled':>8} {'ratio':>6}", flush=True)
    for text in arguments.shapes:
        shape = [int(size) for size in text.split(",")]
        ours, kernel = by_calorimeter(binary, shape, not arguments.without_cudnn)
        theirs = by_torch(shape)
        if isinstance(ours, str):
            print(f"{text:>44} {ours}; theirs {theirs[0]:.1f}, {theirs[1]:.1f}", flush=True)
        else:
            beside = " ".join(f"{time_us:>8.1f} {ours / time_us:>6.2f}" for time_us in theirs)
            print(f"{text:>44} {ours:>8.1f} {beside}  {kernel}", flush=True)


if __name__ == "__main__":
    main()
