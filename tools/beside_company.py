#!/usr/bin/env python3
"""Set the times of one product alone, in company, and in torch side by side, on one NVIDIA GPU.

A GPU that power holds back runs faster beside something lighter. Here the same products of one size are measured by
Calorimeter alone, beside burn's own (`--eager`), and first and last of eight arms; before and after that torch runs
the same product in a loop, at its steady state. All should agree, whatever the company.

    python3 tools/beside_company.py target/release/calorimeter --side 8192

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

ARMS = ["baseline", "float8dq-tensor", "int8wo", "float8wo", "int4wo-128", "int4wo-64", "int8dq", "float8dq-row"]
FOLLOWED = ["baseline", "float8dq-tensor", "float8dq-row"]


# ---------------------------------------------------------------- Calorimeter


def by_calorimeter(binary, model, max_time, recipes=()):
    """Microseconds of each measured case of one model, by recipe and implementation."""
    config = {"device": "cuda", "timing": {"max_time": max_time}, "models": [model]}
    if recipes:
        config["recipes"] = list(recipes)
    with tempfile.TemporaryDirectory() as folder:
        # JSON is YAML.
        (Path(folder) / "c.yml").write_text(json.dumps(config))
        command = [binary, "run", "c.yml", "--out", "out", "--format", "jsonl"]
        ran = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    found = {}
    for line in ran.stdout.splitlines():
        record = json.loads(line)
        time_ns = record.get("time_ns")
        if not time_ns:
            print(f"    {record['id']}: {record.get('reason', record['status'])}", flush=True)
            continue
        in_turns = record.get("in_turns_ns", {}).get("median")
        found[record["recipe"], record["implementation"]] = (time_ns["median"] / 1e3, in_turns and in_turns / 1e3)
    if not found:
        sys.exit(f"error: {binary} measured nothing and ended with exit code {ran.returncode}: {ran.stderr[-500:]}")
    return found


def linear(side, implementations):
    shapes = [{"name": "custom", "shapes": [[side] * 3]}]
    return {"model": "linear", "dtype": "bf16", "implementations": implementations, "shapes": shapes}


def e4m3(side, implementations):
    axes = dict.fromkeys("mkn", side)
    return {"model": "gemm_simple", "dtype": "e4m3", "implementations": implementations, "axes": axes}


def show(what, found, keep):
    for (recipe, implementation), (median, in_turns) in found.items():
        if recipe in keep and implementation == "native":
            turns = f"   in turns {in_turns:.1f}" if in_turns else ""
            print(f"{what:<34} {recipe:<16} {median:9.1f}{turns}", flush=True)


# ---------------------------------------------------------------- torch


def steady(torch, launch, seconds):
    """The median microseconds of a launch in the second half of a loop of so many seconds."""
    times, begun = [], time.monotonic()
    while (gone := time.monotonic() - begun) < seconds:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(20):
            launch()
        end.record()
        end.synchronize()
        if gone > seconds / 2:
            times.append(start.elapsed_time(end) / 20 * 1e3)
    return statistics.median(times)


def by_torch(side, seconds):
    """The same products, of numbers drawn as Calorimeter draws them."""
    import torch

    edge = side**-0.5
    x = torch.randn(side, side, device="cuda")
    weight = torch.empty(side, side, device="cuda").uniform_(-edge, edge)
    y = torch.empty(side, side, device="cuda", dtype=torch.bfloat16)
    a, b = x.bfloat16(), weight.bfloat16()
    print(f"{'torch, mm':<34} {'bf16':<16} {steady(torch, lambda: torch.mm(a, b.t(), out=y), seconds):9.1f}", flush=True)
    # Both factors of gemm_simple are normal; what multiplies them takes more power than small numbers would let it.
    a, b = x.to(torch.float8_e4m3fn), torch.randn_like(x).to(torch.float8_e4m3fn)
    one = torch.ones((), device="cuda")

    def product(columns):
        torch._scaled_mm(a, columns, one, one, out_dtype=torch.bfloat16, use_fast_accum=False)

    copied = torch.empty_like(b)

    def copy_and_product():
        copied.copy_(b)
        product(copied.t())

    # Ours turns B in every pass, as the operator's B lies; a copy moves as many bytes.
    for what, launch in [
        ("torch, _scaled_mm", lambda: product(b.t())),
        ("torch, copy of B, _scaled_mm", copy_and_product),
    ]:
        print(f"{what:<34} {'e4m3':<16} {steady(torch, launch, seconds):9.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", help="the program calorimeter, built with CUDA")
    parser.add_argument("--side", type=int, default=8192, help="rows and columns of each matrix")
    parser.add_argument("--max-time", default="2s", help="Calorimeter's, for each comparison")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each of torch's loops")
    parser.add_argument("--alone", action="store_true", help="leave out the groups of eight arms")
    parser.add_argument("--eager", action="store_true", help="also beside burn's own products, which are tuned first")
    arguments = parser.parse_args()
    binary, side, most = str(Path(arguments.binary).resolve()), arguments.side, arguments.max_time
    print(f"{side}³, microseconds", flush=True)
    by_torch(side, arguments.seconds)
    show("alone", by_calorimeter(binary, linear(side, ["native"]), most, ["baseline"]), FOLLOWED)
    show("gemm_simple e4m3, alone", by_calorimeter(binary, e4m3(side, ["native"]), most), FOLLOWED)
    if not arguments.alone:
        show("first of eight", by_calorimeter(binary, linear(side, ["native"]), most, ARMS), FOLLOWED)
        show("last of eight", by_calorimeter(binary, linear(side, ["native"]), most, ARMS[::-1]), FOLLOWED)
    by_torch(side, arguments.seconds)
    if arguments.eager:
        show("beside eager", by_calorimeter(binary, linear(side, ["eager", "native"]), most, ["baseline"]), FOLLOWED)
        show("gemm_simple e4m3, beside eager", by_calorimeter(binary, e4m3(side, ["eager", "native"]), most), FOLLOWED)


if __name__ == "__main__":
    main()
