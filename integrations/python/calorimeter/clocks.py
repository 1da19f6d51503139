"""Clocks of a worker: each measures launches as the clock of the same name in Calorimeter does."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns

from calorimeter import cuda
from calorimeter.launches import Launches
from calorimeter.registry import Unsupported

# Function that times launches, beginning with a buffer set.
Clock = Callable[[Launches, int, int], int]


# The timer is bound before any source is imported, so that a source that replaces it changes nothing.
def wall(work: Launches, first: int, launches: int, timer: Callable[[], int] = perf_counter_ns) -> int:
    """Host time of launches and of the wait for their end."""
    rotation = work.rotation(first, launches)
    start = timer()
    work.launch(rotation)
    work.synchronize()
    return timer() - start


def wall_each(work: Launches, first: int, launches: int, timer: Callable[[], int] = perf_counter_ns) -> int:
    """Host time of launches, each of which ends before the next one begins."""
    rotation = work.rotation(first, launches)
    start = timer()
    work.launch_each(rotation)
    return timer() - start


def enqueue(work: Launches, first: int, launches: int, timer: Callable[[], int] = perf_counter_ns) -> int:
    """Host time of asynchronous launches, without the wait for their end."""
    rotation = work.rotation(first, launches)
    start = timer()
    work.launch(rotation)
    nanos = timer() - start
    work.synchronize()
    return nanos


def kernels(work: Launches, first: int, launches: int) -> int:
    """Time in which the device executed at least one kernel, copy or memset."""
    return cuda.busy_ns(work.record(first, launches))


def events(work: Launches, first: int, launches: int) -> int:
    """Time between two events, the second of which follows the end of all streams."""
    return work.driver.elapsed_ns(lambda: work.run(first, launches))


def graph(work: Launches, first: int, launches: int) -> int:
    """Time between two events around replays of a graph with one launch per buffer set."""
    if work.arrays != "torch":
        raise Unsupported("only implementations with arrays of torch are captured in a graph")
    sets = len(work.calls)
    if launches % sets:
        raise ValueError(f"a graph replays {sets} launches at a time")
    if launches == 0:
        return 0
    replay, results = work.capture()

    def replays() -> None:
        for _ in range(launches // sets):
            replay()

    nanos = work.driver.elapsed_ns(replays)
    work.results = list(results)
    return nanos


def available(device: str) -> dict[str, tuple[str, Clock]]:
    """Name and function of each kind of clock on a kind of device."""
    clocks: dict[str, tuple[str, Clock]] = {"device": ("wall", wall), "waiting": ("wall-e2e", wall_each)}
    if device == "cuda":
        clocks["device"] = ("cupti", kernels) if cuda.has_kernel_records() else ("cuda-events", events)
        clocks["graph"] = ("cuda-graph", graph)
        clocks["enqueuing"] = ("wall-enqueue", enqueue)
    return clocks
