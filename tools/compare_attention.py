#!/usr/bin/env python3
"""Compares Calorimeter's attention with torch's (cuDNN and FlashAttention 2) on one NVIDIA GPU.

Each size is measured with and without a causal mask. Calorimeter measures `native` in bf16. Then torch runs
`scaled_dot_product_attention`, restricted to one library, in a loop after one second of the same load.

    python3 tools/compare_attention.py target/release/calorimeter --shapes 8,32,4096,128 4,16,2048,64

Needs torch and a CUDA device. Run nothing else on the device at the same time.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

AXES = ["batch", "heads", "sequence", "head_dim"]


def measure_calorimeter(binary, shape):
    """Returns microseconds by causal flag, or the reason why there is no time."""
    axes = dict(zip(AXES, shape))
    models = [
        {"model": name, "implementations": ["native"], "axes": axes} for name in ["attention", "attention_causal"]
    ]
    with tempfile.TemporaryDirectory() as folder:
        # JSON is valid YAML.
        config = {"device": "cuda", "dtype": "bf16", "recipes": ["baseline"], "models": models}
        (Path(folder) / "c.yml").write_text(json.dumps(config))
        command = [binary, "run", "c.yml", "--out", "out", "--format", "jsonl"]
        process = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    times = {}
    for line in process.stdout.splitlines():
        record = json.loads(line)
        time_ns = record.get("time_ns")
        times["causal" in record["id"]] = time_ns["median"] / 1e3 if time_ns else record.get("reason", record["status"])
    if not times:
        sys.exit(f"error: {binary} wrote no records (exit code {process.returncode})")
    return times


def measure_torch(shape, causal, backend):
    """Returns the median microseconds of attention by one backend of torch."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))

    def launch(count):
        for _ in range(count):
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    with sdpa_kernel(getattr(SDPBackend, backend)):
        warm_up_start = time.monotonic()
        while time.monotonic() - warm_up_start < 1.0:
            launch(10)
            torch.cuda.synchronize()
        times = []
        for _ in range(20):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            launch(20)
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) / 20 * 1e3)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", help="path of the calorimeter binary, built with CUDA")
    parser.add_argument("--shapes", nargs="+", default=["8,32,4096,128"], help=",".join(AXES))
    arguments = parser.parse_args()
    binary = str(Path(arguments.binary).resolve())
    columns = f"{'native us':>9} {'cuDNN':>8} {'ratio':>6} {'Flash 2':>8} {'ratio':>6}"
    print(f"{','.join(AXES):>32}  {'mask':<6} {columns}", flush=True)
    for text in arguments.shapes:
        shape = [int(size) for size in text.split(",")]
        native = measure_calorimeter(binary, shape)
        for causal in [False, True]:
            native_us = native.get(causal, "not measured")
            torch_us = [measure_torch(shape, causal, backend) for backend in ["CUDNN_ATTENTION", "FLASH_ATTENTION"]]
            label = f"{text:>32}  {'causal' if causal else '-':<6} "
            if isinstance(native_us, str):
                print(f"{label}{native_us}; torch {torch_us[0]:.1f}, {torch_us[1]:.1f}", flush=True)
            else:
                cells = " ".join(f"{time_us:>8.1f} {native_us / time_us:>6.2f}" for time_us in torch_us)
                print(f"{label}{native_us:>9.1f} {cells}", flush=True)


if __name__ == "__main__":
    main()
