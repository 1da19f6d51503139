#!/usr/bin/env python3
"""Set Calorimeter's times beside those of Triton's `do_bench` and of CUDA events.

Three workloads of bf16 numbers: a matrix product, a copy and a layer normalization. Calorimeter
measures them on `cuda`, with operands from memory (`device-cold`) and from the cache
(`device-hot`). Then torch runs the same sizes here, timed in two ways: by
`triton.testing.do_bench`, which overwrites the cache before each launch, and by two CUDA events
around a long loop of launches on one set of tensors.

    python3 tools/beside_do_bench.py target/release/calorimeter --shape 1 4096 4096

How to read the ratios: the product is cuBLAS's on both sides, and the copy moves the same bytes,
so `loop / hot` should be near 1 as long as a launch is longer than the host needs to enqueue it.
`do_bench / cold` is above 1 for short launches: its cache is full of lines that must be written
back, and its events have a cost of their own. The layer normalization is another kernel than
torch's: there the ratio compares kernels, not clocks.

It needs torch, triton and a CUDA device; nothing else on the device should run meanwhile.
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
  - {{name: product, model: linear, implementations: [native], shapes: [{{name: custom, shapes: [[{m}, {k}, {n}]]}}]}}
  - {{name: copy, model: single_device_hbm_copy, implementations: [native], axes: {{num_elements: {COPY_ELEMENTS}}}}}
  - name: layer norm
    model: layer_norm
    implementations: [cube]
    axes: {{batch: 1, sequence: {ROWS}, dimension: {WIDTH}}}
"""


def by_calorimeter(binary, text):
    """Microseconds of each workload in each regime."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "c.yml").write_text(text)
        command = [binary, "run", "c.yml", "--out", "out", "--format", "jsonl"]
        ran = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    found = {}
    for line in ran.stdout.splitlines():
        record = json.loads(line)
        if record["status"] != "ok":
            sys.exit(f"error: {record['id']} is {record['status']}: {record.get('reason', 'no reason is given')}")
        found[record["name"], record["regime"]] = record["time_ns"]["median"] / 1e3
    if not found:
        sys.exit(f"error: {binary} measured nothing and ended with exit code {ran.returncode}")
    return found


# ---------------------------------------------------------------- torch


def workloads(torch, m, k, n):
    """The same computations as closures that write where they wrote before."""

    def numbers(*shape):
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)

    x, weight, y = numbers(m, k), numbers(n, k), numbers(m, n)
    source, target = numbers(COPY_ELEMENTS), numbers(COPY_ELEMENTS)
    rows, gain, bias = numbers(ROWS, WIDTH), numbers(WIDTH), numbers(WIDTH)
    return {
        "product": lambda: torch.mm(x, weight.t(), out=y),
        "copy": lambda: target.copy_(source),
        "layer norm": lambda: torch.nn.functional.layer_norm(rows, (WIDTH,), gain, bias),
    }


def by_events(torch, launch, seconds=0.5):
    """Microseconds of a launch by two events around a loop that lasts about so long."""

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


def by_do_bench(do_bench, launch):
    """Microseconds of a launch, the median over half a second of them."""
    return do_bench(launch, warmup=100, rep=500, return_mode="median") * 1e3


def import_torch():
    try:
        import torch
        from triton.testing import do_bench
    except ImportError as error:
        sys.exit(f"error: this sets torch and triton beside Calorimeter, and {error.name} cannot be imported here")
    if not torch.cuda.is_available():
        sys.exit("error: this compares times on a CUDA device, and torch finds none here")
    return torch, do_bench


# ---------------------------------------------------------------- both


def table(ours, theirs):
    head = f"{'µs':<11} {'device-cold':>12} {'do_bench':>10} {'do_bench / cold':>16}"
    lines = [head + f" {'device-hot':>12} {'loop':>10} {'loop / hot':>12}"]
    for name, (benched, looped) in theirs.items():
        cold, hot = ours[name, "device-cold"], ours[name, "device-hot"]
        line = f"{name:<11} {cold:>12.2f} {benched:>10.2f} {benched / cold:>16.3f}"
        lines.append(line + f" {hot:>12.2f} {looped:>10.2f} {looped / hot:>12.3f}")
    return "\n".join(lines)


def size(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", help="the program calorimeter, a release build")
    parser.add_argument(
        "--shape", nargs=3, type=size, default=(4096, 4096, 4096), metavar=("M", "K", "N"), help="of the product"
    )
    options = parser.parse_args()
    binary = Path(options.binary).resolve()
    if not binary.is_file():
        parser.error(f"there is no program {options.binary}")
    torch, do_bench = import_torch()
    ours = by_calorimeter(str(binary), config(*options.shape))
    theirs = {
        name: (by_do_bench(do_bench, launch), by_events(torch, launch))
        for name, launch in workloads(torch, *options.shape).items()
    }
    m, k, n = options.shape
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; product {m} x {k} x {n}")
    print(table(ours, theirs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
