"""References and solutions of data sets of flashinfer-bench, as implementations."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import inspect
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from calorimeter import buffers
from calorimeter.registry import Case, Unsupported, implementation

REFERENCE = "reference"
LANGUAGES = ("python", "triton")
# Modules whose functions take tensors of PyTorch.
TORCH_MODULES = {"torch", "triton"}
# Types that a shared buffer holds as bytes.
VIEWS = {"bool"}


class Call:
    """Signature of a definition at a size: shapes, element types and scalars."""

    def __init__(self, definition: dict[str, Any], case: Case) -> None:
        constants = {name: axis["value"] for name, axis in definition["axes"].items() if axis["type"] == "const"}
        self.sizes = {**constants, **case.axes}
        self.inputs, self.outputs = definition["inputs"], definition["outputs"]
        self.scalars = case.scalars

    def arguments(self, tensors: list[Any], arrays: str) -> list[Any]:
        """Inputs in the order of the definition: tensors with their shapes, and Python scalars."""
        remaining, scalars = iter(tensors), iter(self.scalars)
        return [
            scalar(next(scalars), spec["dtype"])
            if spec["shape"] is None
            else self.shaped(next(remaining), spec, arrays)
            for spec in self.inputs.values()
        ]

    def results(self, outputs: list[Any], arrays: str) -> list[Any]:
        """Outputs with their shapes; a scalar output has no dimension."""
        return [self.shaped(output, spec, arrays) for output, spec in zip(outputs, self.outputs.values())]

    def shaped(self, flat: Any, spec: dict[str, Any], arrays: str) -> Any:
        """View of a buffer with the shape and type of a tensor."""
        if spec["dtype"] in VIEWS:
            flat = flat.view(dtype_of(spec["dtype"], arrays))
        return flat.reshape([self.sizes[axis] for axis in spec["shape"] or ()])

    def store(self, result: Any, outputs: list[Any], arrays: str) -> None:
        """Copy a result to the outputs: a value, a tuple or list of values, or a dictionary by name of output."""
        if isinstance(result, dict):
            missing = [name for name in self.outputs if name not in result]
            if missing:
                raise ValueError(f"the function returned no output {missing[0]!r}")
            values = [result[name] for name in self.outputs]
        else:
            values = list(result) if isinstance(result, (tuple, list)) else [result]
        if len(values) != len(outputs):
            raise ValueError(f"the function returned {len(values)} values for {len(outputs)} outputs")
        places = self.results(outputs, arrays)
        tensors = []
        for (name, spec), value, place in zip(self.outputs.items(), values, places):
            if isinstance(value, (bool, int, float)):
                value = from_scalar(value, spec["dtype"], arrays)
            if tuple(value.shape) != tuple(place.shape):
                raise ValueError(f"output {name!r} has the shape {tuple(value.shape)} instead of {tuple(place.shape)}")
            tensors.append(value)
        buffers.store(tensors, places, arrays)


def scalar(value: float, dtype: str) -> bool | int | float:
    """Python scalar for a dtype of flashinfer-bench."""
    if dtype == "bool":
        return bool(value)
    return int(value) if dtype.startswith("int") else value


def dtype_of(dtype: str, arrays: str) -> Any:
    """Type of an array library, whose name flashinfer-bench uses."""
    return getattr(importlib.import_module("torch"), dtype) if arrays == "torch" else dtype


def from_scalar(value: Any, dtype: str, arrays: str) -> Any:
    """Array without dimensions."""
    if arrays == "torch":
        return importlib.import_module("torch").tensor(value, dtype=dtype_of(dtype, arrays))
    return importlib.import_module("numpy").asarray(value, dtype=dtype)


def array_library(reference: str) -> str:
    """Library of the tensors of a definition: NumPy if its reference imports NumPy and not PyTorch."""
    modules = set()
    for node in ast.walk(ast.parse(reference)):
        if isinstance(node, ast.Import):
            modules |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module.partition(".")[0])
    return "numpy" if "numpy" in modules and not modules & TORCH_MODULES else "torch"


def cache_dir() -> Path:
    """Folder of source files. It is permanent, because compilers cache their results by path."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(home, "calorimeter", "flashinfer-bench")


def write_sources(sources: list[dict[str, str]]) -> Path:
    """Folder of a package with source files, whose name is a hash of their content."""
    paths = [PurePosixPath(source["path"]) for source in sources]
    for path in paths:
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise ValueError(f"invalid path of a source file {str(path)!r}: expected a path inside the solution")
    digest = hashlib.sha256(json.dumps(sorted((one["path"], one["content"]) for one in sources)).encode())
    package = cache_dir() / f"solution_{digest.hexdigest()[:32]}"
    if package.is_dir():
        return package
    package.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=package.parent) as folder:
        for path, source in zip(paths, sources):
            file = Path(folder, "package", path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(source["content"], encoding="utf-8")
        try:
            os.rename(Path(folder, "package"), package)
        except OSError:
            # Another process has written the same package.
            if not package.is_dir():
                raise
    return package


@functools.lru_cache(maxsize=None)
def load_function(sources: str, entry_point: str) -> Callable[..., Any]:
    """Function of source files, which are the JSON of a list."""
    path, _, name = entry_point.partition("::")
    if not path.endswith(".py") or not name:
        raise ValueError(f"invalid entry_point {entry_point!r}: expected file.py::function")
    package = write_sources(json.loads(sources))
    sys.path.insert(0, str(package.parent))
    module = importlib.import_module(".".join([package.name, *PurePosixPath(path).with_suffix("").parts]))
    function = getattr(module, name, None)
    if not callable(function):
        raise ValueError(f"{path} has no function {name!r}")
    return function


def check_signature(function: Callable[..., Any], count: int) -> None:
    """Raise TypeError for a function that does not accept a number of positional arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*range(count))
    except TypeError as error:
        raise TypeError(f"the entry point does not accept {count} positional arguments: {error}") from None


def register(definition_path: str, solution_path: str | None) -> None:
    """Register a solution of a definition, or its reference."""
    definition = json.loads(Path(definition_path).read_text(encoding="utf-8"))
    arrays = array_library(definition["reference"])
    if solution_path is None:
        name, in_place, language = REFERENCE, False, "python"
        entry_point, sources = "main.py::run", [{"path": "main.py", "content": definition["reference"]}]
    else:
        solution = json.loads(Path(solution_path).read_text(encoding="utf-8"))
        spec = solution["spec"]
        name, language, entry_point = solution["name"], spec["language"], spec["entry_point"]
        in_place, sources = spec.get("destination_passing_style", True), solution["sources"]
    code = json.dumps(sources)
    # The library takes seconds to load, and is loaded while other processes start.
    library = importlib.import_module(arrays)
    if arrays == "torch":
        library.set_grad_enabled(False)

    def open_solution(case: Case, inputs: list[Any], outputs: list[Any]) -> Callable[[], Any]:
        if language not in LANGUAGES:
            raise Unsupported(f"the language {language} is not supported: expected {' or '.join(LANGUAGES)}")
        if case.device.startswith("cuda"):
            library.cuda.set_device(buffers.device_index(case.device))
        call = Call(definition, case)
        arguments = call.arguments(inputs, arrays)
        function = load_function(code, entry_point)
        if in_place:
            arguments += call.results(outputs, arrays)
        check_signature(function, len(arguments))
        if not in_place:
            return lambda: function(*arguments)

        def run() -> None:
            function(*arguments)

        return run

    def store(case: Case, result: Any, outputs: list[Any]) -> None:
        Call(definition, case).store(result, outputs, arrays)

    implementation(
        definition["name"],
        name=name,
        devices=("cpu", "cuda"),
        arrays=arrays,
        libraries=("triton",),
        store=store,
    )(open_solution)
