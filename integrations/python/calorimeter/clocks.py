"""Clocks of a worker: each measures some launches of an open case, as the clock of the same name in Calorimeter does."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from calorimeter import cuda
from calorimeter.registry import Unsupported

if TYPE_CHECKING:
    from calorimeter.worker import OpenCase

# Function that times launches of a case, beginning with a buffer set.
Clock = Callable[["OpenCase", int, int], int]


# The timer is bound before any source is imported, so that a source that replaces it changes nothing.
def wall(case: OpenCase, first: int, launches: int, timer: Callable[[], int] = perf_counter_ns) -> int:
    """Host time of launches and of the wait for their end."""
    start = timer()
    case.launch(first, launches)
    case.synchronize()
    return timer() - start


def wall_each(case: OpenCase, first: int, launches: int, timer: Callable[[], int] = perf_counter_ns) -> int:
    """Host time of launches, each of which ends before the next one begins."""
    calls, results, synchronize = case.calls, case.results, case.synchronize
    start = timer()
    for launch in range(first, first + launches):
        at = launch % len(calls)
        results[at] = calls[at]()
        synchronize()
    return timer() - start


def enqueue(case: OpenCase, first: int, launches: int, timer: Callable[[], int] = perf_counter_ns) -> int:
    """Host time of asynchronous launches, without the wait for their end."""
    start = timer()
    case.launch(first, launches)
    nanos = timer() - start
    case.synchronize()
    return nanos


def kernels(case: OpenCase, first: int, launches: int) -> int:
    """Time in which the device executed at least one kernel, copy or memset."""
    return cuda.busy_ns(case.record(first, launches))


def events(case: OpenCase, first: int, launches: int) -> int:
    """Time between two events on the default stream."""
    return between_events(case, lambda: case.launch(first, launches))


def graph(case: OpenCase, first: int, launches: int) -> int:
    """Time between two events around replays of a graph with one launch per buffer set."""
    sets = len(case.calls)
    if launches % sets:
        raise ValueError(f"a graph replays {sets} launches at a time")
    if launches == 0:
        return 0
    if case.graph is None:
        case.graph = capture(case)
    replay, results = case.graph

    def replays() -> None:
        for _ in range(launches // sets):
            replay()

    nanos = between_events(case, replays)
    case.results = list(results)
    return nanos


def between_events(case: OpenCase, body: Callable[[], None]) -> int:
    """Time between two events around some work."""
    driver = case.driver
    if case.events is None:
        case.events = driver.event(), driver.event()
    start, end = case.events
    driver.record(start)
    body()
    driver.record(end)
    driver.synchronize()
    return driver.elapsed_ns(start, end)


def capture(case: OpenCase) -> tuple[Callable[[], None], list[Any]]:
    """Function that replays one launch per buffer set, and the results of the launches."""
    if case.arrays != "torch":
        raise Unsupported("only implementations with arrays of torch are captured in a graph")
    import torch

    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        results = [call() for call in case.calls]
    return captured.replay, results


def available(device: str) -> dict[str, tuple[str, Clock]]:
    """Name and function of each kind of clock on a kind of device."""
    clocks: dict[str, tuple[str, Clock]] = {"device": ("wall", wall), "waiting": ("wall-e2e", wall_each)}
    if device == "cuda":
        recorded = cuda.kernel_records() is not None
        clocks["device"] = ("cupti", kernels) if recorded else ("cuda-events", events)
        clocks["graph"] = ("cuda-graph", graph)
        clocks["enqueuing"] = ("wall-enqueue", enqueue)
    return clocks
