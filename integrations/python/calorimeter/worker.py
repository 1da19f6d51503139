"""Server of the protocol between Calorimeter and this process: one JSON object per line, each request with one reply."""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Callable
from itertools import cycle, islice
from time import perf_counter_ns
from typing import Any

from calorimeter import registry
from calorimeter.buffers import SharedFile

VERSION = 1
# Last frames of a traceback that are reported.
TRACEBACK_FRAMES = 3
PACKAGE = os.path.dirname(os.path.abspath(__file__))


class OpenCase:
    """Functions of an open case, one per buffer set."""

    def __init__(self, request: dict[str, Any]) -> None:
        key = request["subject"], request["implementation"]
        implementation = registry.registered[key]
        axes = dict(request["axes"])
        case = registry.Case(*key, request["device"], request["dtype"], axes)
        self.file = SharedFile(request["file"], request["bytes"])
        self.calls: list[Callable[[], Any]] = []
        for buffers in request["sets"]:
            inputs = [self.file.array(buffer, implementation.arrays) for buffer in buffers["inputs"]]
            outputs = [self.file.array(buffer, implementation.arrays) for buffer in buffers["outputs"]]
            call = implementation.open(case, inputs, outputs)
            if not callable(call):
                raise TypeError(f"{implementation.open.__name__} must return a function, not {type(call).__name__}")
            self.calls.append(call)
        self.kernel = f"{implementation.name}{library_version(implementation.arrays)}"

    # The timer is bound before any source is imported, so that a source that replaces it changes nothing.
    def run(self, first: int, launches: int, timer: Callable[[], int] = perf_counter_ns) -> int:
        """Time of launches that rotate through the buffer sets, in nanoseconds."""
        calls = islice(cycle(self.calls[first:] + self.calls[:first]), launches)
        gc.disable()
        try:
            start = timer()
            for call in calls:
                call()
            return timer() - start
        finally:
            gc.enable()


def library_version(arrays: str) -> str:
    """Name and version of the library of the arrays, for the record."""
    version = getattr(sys.modules.get(arrays), "__version__", None)
    return "" if version is None else f" ({arrays} {version})"


class Server:
    """Replies to requests."""

    def __init__(self) -> None:
        self.open_cases: dict[int, OpenCase] = {}

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
                "dtypes": None if one.dtypes is None else list(one.dtypes),
            }
            for one in registry.registered.values()
        ]
        return {"hello": {"version": VERSION, "implementations": offers}}

    def open(self, request: dict[str, Any]) -> dict[str, Any]:
        """Prepare a case."""
        case = OpenCase(request)
        self.open_cases[request["id"]] = case
        return {"opened": {"kernel": case.kernel}}

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run and time launches."""
        case = self.open_cases[request["id"]]
        return {"ran": {"nanos": case.run(request["set"], request["launches"])}}

    def close(self, request: dict[str, Any]) -> dict[str, Any]:
        """Free a case."""
        del self.open_cases[request["id"]]
        gc.collect()
        return {"closed": {}}


def error_text(error: Exception) -> str:
    """Exception, followed by the last frames of its traceback outside this package and the import system."""
    whole = traceback.TracebackException.from_exception(error)
    foreign = [frame for frame in whole.stack if not frame.filename.startswith((PACKAGE + os.sep, "<frozen "))]
    lines = [f"{frame.filename}, line {frame.lineno}, in {frame.name}: {frame.line}" for frame in foreign]
    return "\n".join(["".join(whole.format_exception_only()).strip(), *reversed(lines[-TRACEBACK_FRAMES:])])


def load(source: str) -> None:
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
        return
    name = f"calorimeter.sources.{source}"
    if importlib.util.find_spec(name) is None:
        folder = os.path.join(os.path.dirname(__file__), "sources")
        known = sorted(file[:-3] for file in os.listdir(folder) if file.endswith(".py") and file != "__init__.py")
        raise ImportError(f"unknown library {source!r}: expected a .py file or one of {', '.join(known)}")
    importlib.import_module(name)


def serve(source: str) -> None:
    """Serve the implementations of a source until standard input ends."""
    # Output of the source must not mix with replies.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    server = Server()
    try:
        load(source)
        if not registry.registered:
            raise ImportError(f"{source} registers no implementation")
        failure = None
    except Exception as error:  # The first reply reports it.
        failure = {"error": {"reason": error_text(error)}}
    for line in sys.stdin:
        print(json.dumps(failure or server.reply(json.loads(line))), file=replies, flush=True)
