#!/usr/bin/env python3
"""Measures the tables of docs/src/performance.md: all of them, or those named with --only.

Each table is a run of another script in this folder, or of the kernels' CUDA tests. The output goes to one file per
table, and the last lines to the terminal. A table that fails or times out does not stop the others.

    python3 tools/measure_tables.py target/release/calorimeter --out tables
    python3 tools/measure_tables.py target/release/calorimeter --out tables --only weights attention

The GPU tables need torch and a GPU; the tables of recipes and training also need torchao (see compare_torchao.py).
`correctness` and `kernels` need the path of the test binary, `--kernels target/release/deps/cuda-…`. This command prints
the path:

    cargo test --release -p calorimeter-kernels --features cuda --test cuda --no-run
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

TOOLS = Path(__file__).parent
LARGE_SHAPES = ["4096,4096,4096", "8192,8192,8192"]
DYNAMIC_RECIPES = ["baseline", "int8dq", "float8dq-row", "float8dq-row-fast", "float8dq-tensor", "float8dq-tensor-fast"]
# Torch loops long enough for the steady state of a power-throttled GPU. Calorimeter waits for it by itself.
STEADY_STATE = ["--seconds", "8"]


def comparison(script, *arguments):
    """Command of a compare_*.py script."""
    return lambda options: [sys.executable, str(TOOLS / f"compare_{script}.py"), options.binary, *arguments]


def kernel_tests(*arguments):
    """Command that runs CUDA tests of the kernels and prints their output."""
    return lambda options: options.kernels and [
        options.kernels, *arguments, "--ignored", "--nocapture", "--test-threads=1"
    ]


# In the order of the page. Correctness comes first: the time of a wrong kernel has no value.
TABLES = {
    "correctness": kernel_tests("--skip", "times_of"),
    "weights": comparison("torchao", "--shapes", "1,4096,4096", "32,4096,4096", "512,4096,4096", "4096,4096,4096",
                          "--recipes", "baseline", "int8wo", "int4wo-128", "float8wo"),
    "wide": comparison("torchao", "--shapes", "1,8192,28672",
                       "--recipes", "baseline", "int8wo", "float8wo", "int4wo-128"),
    "inputs": comparison("torchao", "--shapes", *LARGE_SHAPES, "--recipes", *DYNAMIC_RECIPES, *STEADY_STATE),
    "layers": comparison("torchao", "--model", "ln_linear_silu", "--shapes", "1024,4096,4096",
                         "--recipes", *DYNAMIC_RECIPES),
    "blocks": comparison("torchao", "--model", "transformer_block", "--shapes", "1024,4096,4096", "--mode", "default",
                         "--recipes", *DYNAMIC_RECIPES, *STEADY_STATE),
    "kernels": kernel_tests("times_of"),
    "training": comparison("training", "--sides", "8192", "16384"),
    "attention": comparison("attention", "--shapes", "8,32,4096,128", "4,16,2048,128", "4,16,2048,64"),
    "convolution": comparison("convolution", "--shapes", "32,256,256,56,3", "32,64,64,56,3"),
    "cpu": comparison("torch_on_cpu", "--threads", "2"),
}
PRINTED_LINES = 40


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", help="path of the calorimeter binary, a release build")
    parser.add_argument("--out", type=Path, default=Path("tables"), help="output folder")
    tables = list(TABLES)
    parser.add_argument("--only", nargs="+", choices=tables, default=tables, metavar="TABLE", help=", ".join(tables))
    parser.add_argument("--kernels", help="path of the test binary `cuda` of calorimeter-kernels")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds per table")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    failed = [name for name in options.only if not measure_table(name, options)]
    if failed:
        sys.exit(f"error: failed tables: {', '.join(failed)}")


def measure_table(name, options):
    """Runs the command of a table, keeps its output, and returns True on success."""
    command, path, start = TABLES[name](options), options.out / f"{name}.txt", time.monotonic()
    if not command:
        print(f"== {name}: skipped: pass the test binary with --kernels", flush=True)
        return False
    with path.open("wb") as file:
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        # In a new session, so that a timeout also ends child processes.
        process = subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
        try:
            code = process.wait(options.timeout)
            failure = "" if code == 0 else f", exit code {code}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            failure = ", timed out"
    print(f"== {name}: {time.monotonic() - start:.0f} s{failure}, {path}")
    lines = path.read_text(errors="replace").splitlines()
    print("\n".join(lines[-PRINTED_LINES:]), flush=True)
    return not failure


if __name__ == "__main__":
    main()
