"""Server of the protocol between Calorimeter and this process: one JSON object per line, each request with one reply."""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from time import perf_counter_ns
from types import ModuleType
from typing import Any

from calorimeter import clocks, cuda, registry
from calorimeter.buffers import device_index, open_memory, store
from calorimeter.launches import Launches

VERSION = 1
# Last frames of a traceback that are reported.
TRACEBACK_FRAMES = 3
MAX_ERROR_CHARACTERS = 500
PACKAGE = os.path.dirname(os.path.abspath(__file__))
# Variable that names the implementation whose cases a process opens; absent if the process only lists implementations.
IMPLEMENTATION = "CALORIMETER_IMPLEMENTATION"


class OpenCase:
    """Open case: shared memory, launches and clocks."""

    def __init__(self, request: dict[str, Any]) -> None:
        key = request["subject"], request["implementation"]
        implementation = registry.registered[key]
        axes = dict(request["axes"])
        scalars = tuple(request.get("scalars", ()))
        case = registry.Case(*key, request["device"], request["dtype"], axes, request["recipe"], scalars)
        self.case, self.implementation = case, implementation
        kind = case.device.partition(":")[0]
        self.clocks = clocks.available(kind)
        self.driver = cuda.driver(device_index(case.device)) if kind == "cuda" else None
        self.memory = open_memory(request["memory"], request["bytes"], case.device)
        self.outputs: list[list[Any]] = []
        self.launches: Launches | None = None
        try:
            self.open_sets(implementation, case, request["sets"])
        except BaseException:
            self.close()
            raise
        self.kernel = f"{implementation.name}{library_version(implementation)}"

    def open_sets(self, implementation: registry.Implementation, case: registry.Case, sets: list[Any]) -> None:
        """Open an implementation for each buffer set."""
        calls: list[Callable[[], Any]] = []
        opening: list[int] = []
        for buffers in sets:
            inputs = [self.memory.array(buffer, implementation.arrays) for buffer in buffers["inputs"]]
            outputs = [self.memory.array(buffer, implementation.arrays) for buffer in buffers["outputs"]]
            start = perf_counter_ns()
            call = implementation.open(case, inputs, outputs)
            if self.driver is not None:
                self.driver.synchronize()
            opening.append(perf_counter_ns() - start)
            if not callable(call):
                raise TypeError(f"{implementation.open.__name__} must return a function, not {type(call).__name__}")
            calls.append(call)
            self.outputs.append(outputs)
        self.launches = Launches(calls, implementation.arrays, self.driver)
        # The first opening also loads code.
        self.quantization_ns = None if case.recipe == "baseline" else min(opening)

    def trace(self, first: int, launches: int) -> list[tuple[str, int]]:
        """Name and number of calls of each kernel, in the order of the first calls."""
        records = sorted(self.launches.record(first, launches))
        names = (name if isinstance(name, str) else cuda.kernel_name(name) for _, _, name in records)
        return list(Counter(names).items())

    def run(self, first: int, launches: int, clock: str | None) -> dict[str, Any]:
        """Run launches, and time them by a kind of clock."""
        gc.disable()
        try:
            if clock is None:
                self.launches.run(first, launches)
                return {}
            if clock not in self.clocks:
                raise registry.Unsupported(f"this device has no clock of kind {clock}")
            name, measure = self.clocks[clock]
            return {"time": {"clock": name, "nanos": measure(self.launches, first, launches)}}
        finally:
            gc.enable()

    def store(self, at: int) -> None:
        """Copy the last results of a buffer set to its outputs."""
        result = self.launches.results[at]
        if result is not None:
            if self.implementation.store is not None:
                self.implementation.store(self.case, result, self.outputs[at])
            else:
                store(result, self.outputs[at], self.launches.arrays)
            self.launches.synchronize()

    def close(self) -> None:
        """Free everything that views the memory, then the memory."""
        if self.driver is not None:
            self.driver.synchronize()
        self.launches, self.outputs = None, []
        gc.collect()
        torch = sys.modules.get("torch")
        if self.driver is not None and torch is not None:
            # Other processes need the memory that PyTorch would keep.
            torch.cuda.empty_cache()
        self.memory.close()


def library_version(implementation: registry.Implementation) -> str:
    """Names and versions of the libraries of an implementation, for the record."""
    loaded = {name: getattr(sys.modules.get(name), "__version__", None) for name in implementation.libraries}
    versions = ", ".join(f"{name} {version}" for name, version in loaded.items() if version is not None)
    return f" ({versions})" if versions else ""


class Server:
    """Replies to requests."""

    def __init__(self, source: ModuleType | None) -> None:
        self.open_cases: dict[int, OpenCase] = {}
        # Function by which a source imports its libraries; None after the imports.
        self.pending_imports = getattr(source, "import_libraries", None)

    def import_libraries(self) -> None:
        """Import the libraries of the source, unless it has imported them."""
        if self.pending_imports is not None:
            self.pending_imports()
            self.pending_imports = None

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """Reply to a request."""
        (kind, content), = request.items()
        try:
            return getattr(self, kind)(content)
        except registry.Unsupported as reason:
            return {"unsupported": {"reason": str(reason)}}
        except Exception as error:  # A source may raise anything, and only its own case must fail.
            return {"error": {"reason": error_text(error)}}

    def hello(self, _: dict[str, Any]) -> dict[str, Any]:
        """Version and implementations."""
        offers = [
            {
                "subject": one.subject,
                "name": one.name,
                "description": one.description,
                "devices": list(one.devices),
                "quantizes": one.quantizes,
                "dtypes": None if one.dtypes is None else list(one.dtypes),
                "channels_last": one.channels_last,
            }
            for one in registry.registered.values()
        ]
        return {"hello": {"version": VERSION, "implementations": offers}}

    def open(self, request: dict[str, Any]) -> dict[str, Any]:
        """Prepare a case."""
        self.import_libraries()
        case = OpenCase(request)
        self.open_cases[request["id"]] = case
        return {"opened": {"kernel": case.kernel, "quantization_nanos": case.quantization_ns}}

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run launches."""
        case = self.open_cases[request["id"]]
        return {"ran": case.run(request["set"], request["launches"], request.get("clock"))}

    def trace(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run launches and report their kernels."""
        case = self.open_cases[request["id"]]
        return {"traced": {"kernels": case.trace(request["set"], request["launches"])}}

    def store(self, request: dict[str, Any]) -> dict[str, Any]:
        """Copy results to the outputs."""
        self.open_cases[request["id"]].store(request["set"])
        return {"stored": {}}

    def close(self, request: dict[str, Any]) -> dict[str, Any]:
        """Free a case."""
        self.open_cases.pop(request["id"]).close()
        return {"closed": {}}


def error_text(error: Exception) -> str:
    """Exception, followed by the last frames of its traceback outside this package and the import system."""
    whole = traceback.TracebackException.from_exception(error)
    foreign = [frame for frame in whole.stack if not frame.filename.startswith((PACKAGE + os.sep, "<frozen "))]
    lines = [f"{frame.filename}, line {frame.lineno}, in {frame.name}: {frame.line}" for frame in foreign]
    text = "".join(whole.format_exception_only()).strip()
    if len(text) > MAX_ERROR_CHARACTERS:
        text = f"{text[:MAX_ERROR_CHARACTERS]} …"
    return "\n".join([text, *reversed(lines[-TRACEBACK_FRAMES:])])


def load(source: str) -> ModuleType:
    """Import a source: a Python file, or a library that the folder `sources` supports."""
    if source.endswith(".py"):
        sys.path.insert(0, os.path.dirname(os.path.abspath(source)))
        name = os.path.splitext(os.path.basename(source))[0]
        spec = importlib.util.spec_from_file_location(name, source)
        if spec is None or spec.loader is None:
            raise ImportError(f"cannot import {source}")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        if not registry.registered:
            raise ImportError(f"{source} registers no implementation")
        return module
    name = f"calorimeter.sources.{source}"
    if importlib.util.find_spec(name) is None:
        folder = os.path.join(os.path.dirname(__file__), "sources")
        known = sorted(file[:-3] for file in os.listdir(folder) if file.endswith(".py") and file != "__init__.py")
        raise ImportError(f"unknown library {source!r}: expected a .py file or one of {', '.join(known)}")
    return importlib.import_module(name)


def serve(register: Callable[[], ModuleType | None]) -> None:
    """Serve the implementations that a function registers until standard input ends. It may return their source."""
    # Output of the source must not mix with replies.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        server = Server(register())
        if IMPLEMENTATION in os.environ:
            # Calorimeter prepares inputs meanwhile.
            server.import_libraries()
        failure = None
    except Exception as error:  # The first reply reports it.
        failure = {"error": {"reason": error_text(error)}}
    for line in sys.stdin:
        print(json.dumps(failure or server.reply(json.loads(line))), file=replies, flush=True)
