#!/usr/bin/env python3
"""Set Calorimeter's attention beside torch's, by cuDNN and by FlashAttention 2, on one NVIDIA GPU.

For each size and both with and without a causal mask, Calorimeter measures `native` in bf16; then torch does the same with
`scaled_dot_product_attention`, held to one of its libraries, in a loop after a second of the same load.

    python3 tools/beside_attention.py target/release/calorimeter --shapes 8,32,4096,128 4,16,2048,64

It needs torch and a CUDA device; nothing else on the device should run meanwhile.
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


def by_calorimeter(binary, shape):
    """Microseconds without a mask and with one, the reason in its place where there is none."""
    axes = dict(zip(AXES, shape))
    models = [
        {"model": name, "implementations": ["native"], "axes": axes} for name in ["attention", "attention_causal"]
    ]
    with tempfile.TemporaryDirectory() as folder:
        # JSON is YAML.
        config = {"device": "cuda", "dtype": "bf16", "recipes": ["baseline"], "models": models}
        (Path(folder) / "c.yml").write_text(json.dumps(config))
        command = [binary, "run", "c.yml", "--out", "out", "--format", "jsonl"]
        ran = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    found = {}
    for line in ran.stdout.splitlines():
        record = json.loads(line)
        time_ns = record.get("time_ns")
        found["causal" in record["id"]] = time_ns["median"] / 1e3 if time_ns else record.get("reason", record["status"])
    if not found:
        sys.exit(f"error: {binary} measured nothing and ended with exit code {ran.returncode}")
    return found


def by_torch(shape, causal, library):
    """Microseconds of attention by one of torch's libraries."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))

    def launches(count):
        for _ in range(count):
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    with sdpa_kernel(getattr(SDPBackend, library)):
        begun = time.monotonic()
        while time.monotonic() - begun < 1.0:
            launches(10)
            torch.cuda.synchronize()
        times = []
        for _ in range(20):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            launches(20)
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) / 20 * 1e3)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", help="the program calorimeter, built with CUDA")
    parser.add_argument("--shapes", nargs="+", default=["8,32,4096,128"], help=",".join(AXES))
    arguments = parser.parse_args()
    binary = str(Path(arguments.binary).resolve())
    print(f"{','.join(AXES):>32}  {'mask':<6} {'ours us':>8} {'cuDNN':>8} {'ratio':>6} {'Flash 2':>8} {'ratio':>6}", flush=True)
    for text in arguments.shapes:
        shape = [int(size) for size in text.split(",")]
        ours = by_calorimeter(binary, shape)
        for causal in [False, True]:
            time_us = ours.get(causal, "not measured")
            theirs = [by_torch(shape, causal, library) for library in ["CUDNN_ATTENTION", "FLASH_ATTENTION"]]
            said = f"{text:>32}  {'causal' if causal else '-':<6} "
            if isinstance(time_us, str):
                print(f"{said}{time_us}; theirs {theirs[0]:.1f}, {theirs[1]:.1f}", flush=True)
            else:
                beside = " ".join(f"{time:>8.1f} {time_us / time:>6.2f}" for time in theirs)
                print(f"{said}{time_us:>8.1f} {beside}", flush=True)


if __name__ == "__main__":
    main()
