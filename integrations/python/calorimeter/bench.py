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
    parser.add_argument("--against", help="implementations to compare with [cpu: eager,native; cuda: torch,native]")
    parser.add_argument("--subjects", help="only these operators and models, separated by commas")
    parser.add_argument("--preset", default="quick", help="sizes of operators [quick]")
    parser.add_argument("--device", default="cpu", help="device, for example cuda [cpu]")
    parser.add_argument("--dtype", default="f32", help="element type [f32]")
    parser.add_argument("--dry-run", action="store_true", help="print the configuration file and stop")
    parser.epilog = "Options behind -- are passed to `calorimeter run`."


def configuration(arguments: argparse.Namespace, others: list[str]) -> dict[str, Any]:
    """Configuration for ``calorimeter run`` (JSON is YAML) with further implementations to compare with."""
    wanted = arguments.subjects.split(",") if arguments.subjects else None
    names: dict[str, list[str]] = {}
    for one in registry.registered.values():
        if wanted is None or one.subject in wanted:
            names.setdefault(one.subject, []).append(one.name)
    if not names:
        raise SystemExit(f"error: {arguments.source} registers none of {arguments.subjects}")
    if uses_torch(others) and arguments.source != "torch":
        worker.load("torch")
    models = []
    for subject, own in names.items():
        present = [name for name in others if not uses_torch([name]) or (subject, name) in registry.registered]
        models.append({"model": subject, "preset": arguments.preset, "implementations": present + own})
    return {"device": arguments.device, "dtype": arguments.dtype, "recipes": ["baseline"], "models": models}


def against(arguments: argparse.Namespace) -> list[str]:
    """Implementations to compare with; speed-ups refer to the first one."""
    on_gpu = arguments.device.startswith("cuda")
    default = "torch,native" if on_gpu and arguments.source != "torch" else "eager,native"
    names = default if arguments.against is None else arguments.against
    return [name for name in names.split(",") if name]


def uses_torch(names: list[str]) -> bool:
    """Return true if an implementation belongs to the supported library PyTorch."""
    return any(name.startswith("torch") for name in names)


def run(arguments: argparse.Namespace, options: list[str]) -> int:
    """Measure the implementations of a source with ``calorimeter run`` and further options."""
    worker.load(arguments.source)
    others = against(arguments)
    text = json.dumps(configuration(arguments, others), indent=2)
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
        sources = dict.fromkeys([arguments.source, *(["torch"] if uses_torch(others) else [])])
        python = [word for source in sources for word in ("--python", source)]
        return subprocess.run([program, "run", file, *python, *options]).returncode
