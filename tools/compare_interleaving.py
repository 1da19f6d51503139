#!/usr/bin/env python3
"""Compares isolated and interleaved times of one GEMM with each other and with torch on one NVIDIA GPU.

A power-throttled GPU runs a GEMM faster if it is interleaved with a lighter load. Calorimeter measures the GEMMs of one
size isolated, as the first and the last of eight interleaved arms, and with `--eager` interleaved with burn's GEMM.
Before and after, torch runs the same GEMM in a loop and reports its steady state. All times should agree.

    python3 tools/compare_interleaving.py target/release/calorimeter --side 8192

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

ARMS = ["baseline", "float8dq-tensor", "int8wo", "float8wo", "int4wo-128", "int4wo-64", "int8dq", "float8dq-row"]
REPORTED_RECIPES = ["baseline", "float8dq-tensor", "float8dq-row"]


# ---------------------------------------------------------------- Calorimeter


def measure_calorimeter(binary, model, max_time, recipes=()):
    """Returns reported and interleaved microseconds of each case of a model, by recipe and implementation."""
    config = {"device": "cuda", "timing": {"max_time": max_time}, "models": [model]}
    if recipes:
        config["recipes"] = list(recipes)
    with tempfile.TemporaryDirectory() as folder:
        # JSON is valid YAML.
        (Path(folder) / "c.yml").write_text(json.dumps(config))
        command = [binary, "run", "c.yml", "--out", "out", "--format", "jsonl"]
        process = subprocess.run(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False
        )
    times = {}
    for line in process.stdout.splitlines():
        record = json.loads(line)
        time_ns = record.get("time_ns")
        if not time_ns:
            print(f"    {record['id']}: {record.get('reason', record['status'])}", flush=True)
            continue
        interleaved = record.get("in_turns_ns", {}).get("median")
        times[record["recipe"], record["implementation"]] = (time_ns["median"] / 1e3, interleaved and interleaved / 1e3)
    if not times:
        sys.exit(f"error: {binary} measured no case (exit code {process.returncode}): {process.stderr[-500:]}")
    return times


def linear_model(side, implementations):
    shapes = [{"name": "custom", "shapes": [[side] * 3]}]
    return {"model": "linear", "dtype": "bf16", "implementations": implementations, "shapes": shapes}


def e4m3_model(side, implementations):
    axes = dict.fromkeys("mkn", side)
    return {"model": "gemm_simple", "dtype": "e4m3", "implementations": implementations, "axes": axes}


def print_times(label, times):
    """Prints the `native` times of the reported recipes."""
    for (recipe, implementation), (median, interleaved) in times.items():
        if recipe in REPORTED_RECIPES and implementation == "native":
            suffix = f"   interleaved {interleaved:.1f}" if interleaved else ""
            print(f"{label:<42} {recipe:<16} {median:9.1f}{suffix}", flush=True)


# ---------------------------------------------------------------- torch


def measure_steady_state(torch, launch, seconds):
    """Returns the median microseconds of a launch in the second half of a loop of `seconds`."""
    times, loop_start = [], time.monotonic()
    while (elapsed := time.monotonic() - loop_start) < seconds:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(20):
            launch()
        end.record()
        end.synchronize()
        if elapsed > seconds / 2:
            times.append(start.elapsed_time(end) / 20 * 1e3)
    return statistics.median(times)


def print_torch_times(side, seconds):
    """Measures the GEMMs in torch, with data from the distributions that Calorimeter uses, and prints their times."""
    import torch

    bound = side**-0.5
    x = torch.randn(side, side, device="cuda")
    weight = torch.empty(side, side, device="cuda").uniform_(-bound, bound)
    y = torch.empty(side, side, device="cuda", dtype=torch.bfloat16)
    a, b = x.bfloat16(), weight.bfloat16()
    time_us = measure_steady_state(torch, lambda: torch.mm(a, b.t(), out=y), seconds)
    print(f"{'torch, mm':<42} {'bf16':<16} {time_us:9.1f}", flush=True)
    # Both operands of gemm_simple are normally distributed. Smaller values would draw less power.
    a, b = x.to(torch.float8_e4m3fn), torch.randn_like(x).to(torch.float8_e4m3fn)
    unit_scale = torch.ones((), device="cuda")

    def gemm(column_major):
        torch._scaled_mm(a, column_major, unit_scale, unit_scale, out_dtype=torch.bfloat16, use_fast_accum=False)

    b_copy = torch.empty_like(b)

    def copy_and_gemm():
        b_copy.copy_(b)
        gemm(b_copy.t())

    # Calorimeter transposes the row-major B in every pass. A copy moves the same number of bytes.
    for label, launch in [
        ("torch, _scaled_mm", lambda: gemm(b.t())),
        ("torch, copy of B, _scaled_mm", copy_and_gemm),
    ]:
        print(f"{label:<42} {'e4m3':<16} {measure_steady_state(torch, launch, seconds):9.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", help="path of the calorimeter binary, built with CUDA")
    parser.add_argument("--side", type=int, default=8192, help="rows and columns of each matrix")
    parser.add_argument("--max-time", default="2s", help="Calorimeter's max_time of each group")
    parser.add_argument("--seconds", type=float, default=4.0, help="duration of each torch loop")
    parser.add_argument("--isolated", action="store_true", help="skip the groups of eight arms")
    parser.add_argument("--eager", action="store_true", help="also interleave with burn's autotuned GEMM")
    arguments = parser.parse_args()
    binary, side = str(Path(arguments.binary).resolve()), arguments.side

    def measure(label, model, recipes=()):
        print_times(label, measure_calorimeter(binary, model, arguments.max_time, recipes))

    print(f"{side}³, microseconds", flush=True)
    print_torch_times(side, arguments.seconds)
    measure("isolated", linear_model(side, ["native"]), ["baseline"])
    measure("gemm_simple e4m3, isolated", e4m3_model(side, ["native"]))
    if not arguments.isolated:
        measure("first of eight arms", linear_model(side, ["native"]), ARMS)
        measure("last of eight arms", linear_model(side, ["native"]), ARMS[::-1])
    print_torch_times(side, arguments.seconds)
    if arguments.eager:
        measure("interleaved with eager", linear_model(side, ["eager", "native"]), ["baseline"])
        measure("gemm_simple e4m3, interleaved with eager", e4m3_model(side, ["eager", "native"]))


if __name__ == "__main__":
    main()
