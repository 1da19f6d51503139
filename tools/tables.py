#!/usr/bin/env python3
"""Make the tables of docs/src/performance.md again: one command for all, or for those that are named.

Each table is a run of another tool here, or of the kernels' own tests. What it prints goes to a file of its own, and its last
lines to the terminal; one that fails or takes too long does not keep the others from being made.

    python3 tools/tables.py target/release/calorimeter --out tables
    python3 tools/tables.py target/release/calorimeter --out tables --only weights attention

A GPU's tables need torch on a machine with one, those of recipes and training torchao too (see beside_torchao.py); `kernels` and
`right` need the kernels' test program, `--kernels target/release/deps/native-…`, as `cargo test --no-run` names it.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
LARGE = ["4096,4096,4096", "8192,8192,8192"]
DYNAMIC = ["baseline", "int8dq", "float8dq-row", "float8dq-row-fast", "float8dq-tensor", "float8dq-tensor-fast"]
# Seconds of torch's loops where power holds a GPU back: ours are timed when their times stay the same.
STEADY = ["--seconds", "8"]


def beside(tool, *arguments):
    """A table that one of the tools makes."""
    return lambda options: [sys.executable, str(HERE / f"beside_{tool}.py"), options.binary, *arguments]


def kernels(*which):
    """What these tests of the kernels print."""
    return lambda options: options.kernels and [options.kernels, *which, "--nocapture", "--test-threads=1"]


# In the order of the page. What is right comes first: the time of a wrong kernel is worth nothing.
TABLES = {
    "right": kernels("--skip", "times_of"),
    "weights": beside("torchao", "--shapes", "1,4096,4096", "32,4096,4096", "512,4096,4096", "4096,4096,4096",
                      "--recipes", "baseline", "int8wo", "int4wo-128", "float8wo"),
    "wide": beside("torchao", "--shapes", "1,8192,28672", "--recipes", "baseline", "int8wo", "float8wo", "int4wo-128"),
    "inputs": beside("torchao", "--shapes", *LARGE, "--recipes", *DYNAMIC, *STEADY),
    "layers": beside("torchao", "--model", "ln_linear_silu", "--shapes", "1024,4096,4096", "--recipes", *DYNAMIC),
    "blocks": beside("torchao", "--model", "transformer_block", "--shapes", "1024,4096,4096", "--mode", "default",
                     "--recipes", *DYNAMIC, *STEADY),
    "kernels": kernels("times_of"),
    "training": beside("training", "--sides", "8192", "16384"),
    "attention": beside("attention", "--shapes", "8,32,4096,128", "4,16,2048,128", "4,16,2048,64"),
    "convolution": beside("convolution", "--shapes", "32,256,256,56,3", "32,64,64,56,3"),
    "processor": beside("torch_on_cpu", "--threads", "2"),
}
LAST_LINES = 40


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", help="the program calorimeter, a release build")
    parser.add_argument("--out", type=Path, default=Path("tables"), help="the folder of what is printed")
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES), metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument("--kernels", help="the test program `native` of calorimeter-kernels")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for each table")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    failed = [name for name in options.only if not made(name, options)]
    if failed:
        sys.exit(f"error: not made: {', '.join(failed)}")


def made(name, options):
    """Whether a table was made; what was printed is kept either way."""
    command, path, start = TABLES[name](options), options.out / f"{name}.txt", time.monotonic()
    if not command:
        print(f"== {name}: not made: --kernels names no test program", flush=True)
        return False
    with path.open("wb") as file:
        environment = {**os.environ, "CALORIMETER_TEST_DEVICE": os.environ.get("CALORIMETER_TEST_DEVICE", "cuda"),
                       "PYTHONUNBUFFERED": "1"}
        # A session of its own, so that what it has started ends with it.
        running = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment, start_new_session=True)
        try:
            code = running.wait(options.timeout)
            ending = "" if code == 0 else f", exit code {code}"
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
            ending = ", cut off"
    print(f"== {name}: {time.monotonic() - start:.0f} s{ending}, {path}")
    lines = path.read_text(errors="replace").splitlines()
    print("\n".join(lines[-LAST_LINES:]), flush=True)
    return not ending


if __name__ == "__main__":
    main()
