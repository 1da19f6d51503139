"""Launches of the functions of an open case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle, islice
from typing import Any

from calorimeter import cuda

# Index of a buffer set, and the function that computes on it.
Launch = tuple[int, Callable[[], Any]]


class Launches:
    """Functions of an open case, one per buffer set, and what they returned."""

    def __init__(self, calls: list[Callable[[], Any]], arrays: str, driver: cuda.Driver | None) -> None:
        self.arrays, self.driver = arrays, driver
        self.calls = list(enumerate(calls))
        # What the last launch of each set returned, or None if it wrote its outputs.
        self.results: list[Any] = [None] * len(calls)
        # Function that replays a captured graph of one launch per set, and the results of these launches.
        self.graph: tuple[Callable[[], None], list[Any]] | None = None

    def rotation(self, first: int, launches: int) -> Iterator[Launch]:
        """Launches that rotate through the buffer sets, to be prepared before a clock is read."""
        return islice(cycle(self.calls[first:] + self.calls[:first]), launches)

    def launch(self, rotation: Iterator[Launch]) -> None:
        """Launch functions."""
        results = self.results
        for at, call in rotation:
            results[at] = call()

    def launch_each(self, rotation: Iterator[Launch]) -> None:
        """Launch functions, each of which ends before the next one begins."""
        results, synchronize = self.results, self.synchronize
        for at, call in rotation:
            results[at] = call()
            synchronize()

    def run(self, first: int, launches: int) -> None:
        """Launch functions and wait for their end, without a clock."""
        self.launch(self.rotation(first, launches))
        self.synchronize()

    def synchronize(self) -> None:
        """Wait for the device."""
        if self.driver is not None:
            self.driver.synchronize()

    def record(self, first: int, launches: int) -> list[tuple[int, int, Any]]:
        """Start, end and name of the kernels of some launches."""
        return cuda.kernel_records().record(lambda: self.run(first, launches))

    def capture(self) -> tuple[Callable[[], None], list[Any]]:
        """Function that replays one launch per buffer set, and the results of the launches."""
        if self.graph is None:
            import torch

            captured = torch.cuda.CUDAGraph()
            with torch.cuda.graph(captured):
                results = [call() for _, call in self.calls]
            self.graph = captured.replay, results
        return self.graph
