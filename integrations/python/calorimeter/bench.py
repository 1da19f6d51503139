"""Command ``bench``: compares all implementations of a source with others."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Any

from calorimeter import registry, worker


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("source", help="Python file or supported library")
    parser.add_argument("--against", default="eager,native", help="implementations to compare with [eager,native]")
    parser.add_argument("--subjects", help="only these operators and models, separated by commas")
    parser.add_argument("--preset", default="quick", help="sizes of operators [quick]")
    parser.add_argument("--device", default="cpu", help="device, for example cuda [cpu]")
    parser.add_argument("--dtype", default="f32", help="element type [f32]")
    parser.add_argument("--dry-run", action="store_true", help="print the configuration file and stop")
    parser.epilog = "Options behind -- are passed to `calorimeter run`."


def configuration(arguments: argparse.Namespace) -> dict[str, Any]:
    """Configuration for ``calorimeter run`` (JSON is YAML)."""
    others = [name for name in arguments.against.split(",") if name]
    wanted = arguments.subjects.split(",") if arguments.subjects else None
    names: dict[str, list[str]] = {}
    for one in registry.registered.values():
        if wanted is None or one.subject in wanted:
            names.setdefault(one.subject, []).append(one.name)
    if not names:
        raise SystemExit(f"error: {arguments.source} registers none of {arguments.subjects}")
    models = [
        {"model": subject, "preset": arguments.preset, "implementations": others + own}
        for subject, own in names.items()
    ]
    return {"device": arguments.device, "dtype": arguments.dtype, "recipes": ["baseline"], "models": models}


def run(arguments: argparse.Namespace, options: list[str]) -> int:
    """Measure the implementations of a source with ``calorimeter run`` and further options."""
    worker.load(arguments.source)
    text = json.dumps(configuration(arguments), indent=2)
    if arguments.dry_run:
        print(text)
        return 0
    program = os.environ.get("CALORIMETER") or shutil.which("calorimeter")
    if program is None:
        reason = "the program calorimeter is not on the path; the variable CALORIMETER may also state its path"
        print(f"error: {reason}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "bench.yml")
        with open(file, "w", encoding="utf-8") as config:
            config.write(text)
        return subprocess.run([program, "run", file, "--python", arguments.source, *options]).returncode
