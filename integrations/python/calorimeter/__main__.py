"""Command line: ``python3 -m calorimeter``."""

from __future__ import annotations

import argparse
import sys

from calorimeter import bench, worker


def main() -> int:
    """Run a command."""
    parser = argparse.ArgumentParser(prog="python3 -m calorimeter", description="Measure Python implementations.")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("worker", help="serve implementations to calorimeter over standard input and output")
    serve.add_argument("source", help="Python file or supported library")
    bench.add_arguments(commands.add_parser("bench", help="measure the implementations of a source"))
    own, options = sys.argv[1:], []
    if "--" in own:
        at = own.index("--")
        own, options = own[:at], own[at + 1 :]
    arguments = parser.parse_args(own)
    if arguments.command == "worker":
        worker.serve(arguments.source)
        return 0
    return bench.run(arguments, options)


if __name__ == "__main__":
    raise SystemExit(main())
