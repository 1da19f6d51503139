"""Command line: ``python3 -m calorimeter``."""

from __future__ import annotations

import argparse
import sys

from calorimeter import bench, flashinfer_bench, worker


def main() -> int:
    """Run a command."""
    parser = argparse.ArgumentParser(prog="python3 -m calorimeter", description="Measure Python implementations.")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("worker", help="serve implementations to calorimeter over standard input and output")
    serve.add_argument("source", help="Python file or supported library")
    solution = commands.add_parser("flashinfer-bench", help="serve a solution of a data set of flashinfer-bench")
    solution.add_argument("definition", help="JSON file of the definition")
    solution.add_argument("solution", nargs="?", help="JSON file of the solution; without it, the reference is served")
    bench.add_arguments(commands.add_parser("bench", help="measure the implementations of a source"))
    own, options = sys.argv[1:], []
    if "--" in own:
        at = own.index("--")
        own, options = own[:at], own[at + 1 :]
    arguments = parser.parse_args(own)
    if arguments.command == "worker":
        worker.serve(lambda: worker.load(arguments.source))
        return 0
    if arguments.command == "flashinfer-bench":
        worker.serve(lambda: flashinfer_bench.register(arguments.definition, arguments.solution))
        return 0
    return bench.run(arguments, options)


if __name__ == "__main__":
    raise SystemExit(main())
