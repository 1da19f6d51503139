"""Arrays that view the buffers of a shared file."""

from __future__ import annotations

import mmap
from typing import Any

from calorimeter.registry import Unsupported

# Format characters of `memoryview.cast`.
FORMATS = {"f32": "f", "i8": "b", "u8": "B", "i32": "i", "e4m3": "B", "e5m2": "B", "f16": "H", "bf16": "H"}
NUMPY = {"f32": "float32", "f16": "float16", "i8": "int8", "u8": "uint8", "i32": "int32"}
TORCH = {
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "i8": "int8",
    "u8": "uint8",
    "i32": "int32",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
}


class SharedFile:
    """Memory shared with Calorimeter."""

    def __init__(self, path: str, size: int) -> None:
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), size)

    def array(self, buffer: dict[str, Any], kind: str) -> Any:
        """Array of a buffer as one of `registry.ARRAYS`."""
        return getattr(self, f"_{kind}")(buffer)

    def _memoryview(self, buffer: dict[str, Any]) -> memoryview:
        """Flat view, in which types without a format in Python appear as unsigned integers."""
        code = _lookup(FORMATS, buffer["dtype"], "memoryview")
        width = memoryview(b"").cast(code).itemsize
        rows, cols = buffer["shape"]
        start = buffer["offset"]
        return memoryview(self.memory)[start : start + rows * cols * width].cast(code)

    def _numpy(self, buffer: dict[str, Any]) -> Any:
        import numpy

        dtype = numpy.dtype(_lookup(NUMPY, buffer["dtype"], "numpy"))
        rows, cols = buffer["shape"]
        return numpy.frombuffer(self.memory, dtype, rows * cols, buffer["offset"]).reshape(rows, cols)

    def _torch(self, buffer: dict[str, Any]) -> Any:
        import torch

        dtype = getattr(torch, _lookup(TORCH, buffer["dtype"], "torch"), None)
        if dtype is None:
            raise Unsupported(f"torch {torch.__version__} has no type for {buffer['dtype']}")
        rows, cols = buffer["shape"]
        flat = torch.frombuffer(self.memory, dtype=dtype, count=rows * cols, offset=buffer["offset"])
        return flat.view(rows, cols)


def _lookup(table: dict[str, str], dtype: str, kind: str) -> str:
    try:
        return table[dtype]
    except KeyError:
        raise Unsupported(f"{kind} has no type for {dtype}") from None
