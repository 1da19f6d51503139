"""Registration of implementations."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class Unsupported(Exception):
    """Raised by an ``open`` function for a case that it does not support. Calorimeter skips the case."""


@dataclass(frozen=True)
class Case:
    """Case to prepare: an operator or model at a size."""

    subject: str
    """Name of the operator or model."""
    implementation: str
    """Name of the implementation."""
    device: str
    """Device, for example ``cpu``."""
    dtype: str
    """Element type of the inputs, for example ``f32``."""
    axes: Mapping[str, int]
    """Sizes by axis."""
    recipe: str = "baseline"
    """Recipe by which an implementation with ``quantizes=True`` computes a model or a training pass."""
    scalars: tuple[float, ...] = ()
    """Scalars of a kernel of a data set."""

    def __getitem__(self, axis: str) -> int:
        """Size of an axis."""
        return self.axes[axis]


# Types of the inputs and outputs of an implementation.
ARRAYS = ("torch", "numpy", "memoryview")

Open = Callable[[Case, list[Any], list[Any]], Callable[[], Any]]
# Copies what a launch returned to the outputs.
Store = Callable[[Case, Any, list[Any]], None]


@dataclass(frozen=True)
class Implementation:
    """Registered implementation of one operator or model."""

    subject: str
    name: str
    description: str
    devices: tuple[str, ...]
    dtypes: tuple[str, ...] | None
    arrays: str
    quantizes: bool
    libraries: tuple[str, ...]
    channels_last: bool
    open: Open
    store: Store | None = None


registered: dict[tuple[str, str], Implementation] = {}
"""Implementations by subject and name."""


def require(*modules: str) -> None:
    """Raise an error unless modules are installed. The modules are not imported, because an import may take seconds."""
    for name in modules:
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def implementation(
    *subjects: str,
    name: str,
    devices: Sequence[str] = ("cpu",),
    dtypes: Sequence[str] | None = None,
    arrays: str = "torch",
    quantizes: bool = False,
    libraries: Sequence[str] = (),
    channels_last: bool = False,
    store: Store | None = None,
) -> Callable[[Open], Open]:
    """Register a function that opens cases of operators or models.

    The function receives the case, the inputs and the outputs. It returns a function without arguments that computes
    all outputs from the inputs. That function writes the outputs and returns None, or returns new arrays with the
    values of the outputs. On a GPU it may return before the device has finished. Calorimeter opens a case several
    times, with different buffers.

    Args:
        subjects: Names of operators or models; ``calorimeter list operators`` prints them.
        name: Name of the implementation in configuration files and records.
        devices: Kinds of devices: ``cpu``, ``cuda`` or both.
        dtypes: Supported element types; with ``None`` the function raises `Unsupported` for others.
        arrays: Type of inputs and outputs: ``torch``, ``numpy`` or ``memoryview``; on ``cuda`` only ``torch``.
        quantizes: Whether the function computes models and training passes by the recipe of the case.
        libraries: Modules whose versions the record states, besides the library of the arrays.
        channels_last: Whether images and filters of convolutions have one row per pixel and one column per channel.
        store: Function that copies what a launch returned to the outputs; by default, arrays in the order of the
            outputs.
    """
    if not subjects:
        raise ValueError("implementation() needs the name of at least one operator or model")
    if arrays not in ARRAYS:
        raise ValueError(f"unknown arrays {arrays!r}: expected {', '.join(ARRAYS)}")

    def register(open_case: Open) -> Open:
        description = (open_case.__doc__ or "").strip().partition("\n")[0]
        for subject in subjects:
            if (subject, name) in registered:
                raise ValueError(f"{name} is already registered for {subject}")
            registered[subject, name] = Implementation(
                subject=subject,
                name=name,
                description=description,
                devices=tuple(devices),
                dtypes=None if dtypes is None else tuple(dtypes),
                arrays=arrays,
                quantizes=quantizes,
                libraries=(arrays, *libraries),
                channels_last=channels_last,
                open=open_case,
                store=store,
            )
        return open_case

    return register
