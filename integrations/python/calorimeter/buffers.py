"""Arrays that view the buffers of memory shared with Calorimeter."""

from __future__ import annotations

import mmap
import sys
from typing import Any

from calorimeter import cuda
from calorimeter.registry import Unsupported

# Format characters of `memoryview.cast`.
FORMATS = {
    "f32": "f",
    "i8": "b",
    "u8": "B",
    "i16": "h",
    "i32": "i",
    "i64": "q",
    "e4m3": "B",
    "e5m2": "B",
    "f16": "H",
    "bf16": "H",
}
NUMPY = {
    "f32": "float32",
    "f16": "float16",
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
}
TORCH = {
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
}
# Libraries whose arrays a function may return.
LIBRARIES = ("torch", "numpy", "jaxlib", "cupy")


def open_memory(name: dict[str, str], size: int, device: str) -> SharedFile | SharedDeviceMemory:
    """Memory by the name in a request."""
    (kind, value), = name.items()
    if kind == "file":
        return SharedFile(value, size)
    if kind == "cuda_ipc":
        return SharedDeviceMemory(bytes.fromhex(value), size, device_index(device))
    raise Unsupported(f"unknown memory {kind}")


def device_index(device: str) -> int:
    """Index in the name of a device, such as ``cuda:1``."""
    return int(device.partition(":")[2] or 0)


class SharedFile:
    """Memory of the host shared with Calorimeter."""

    def __init__(self, path: str, size: int) -> None:
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), size)

    def array(self, buffer: dict[str, Any], kind: str) -> Any:
        """Array of a buffer as one of `registry.ARRAYS`."""
        return getattr(self, f"_{kind}")(buffer)

    def close(self) -> None:
        """Nothing: arrays may still view the memory, which ends with the last of them."""

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

        rows, cols = buffer["shape"]
        dtype = torch_dtype(buffer["dtype"])
        flat = torch.frombuffer(self.memory, dtype=dtype, count=rows * cols, offset=buffer["offset"])
        return flat.view(rows, cols)


class SharedDeviceMemory:
    """Memory of a CUDA device shared with Calorimeter."""

    def __init__(self, handle: bytes, size: int, index: int) -> None:
        self.driver, self.size, self.index = cuda.driver(index), size, index
        self.address = self.driver.open_memory(handle)

    def array(self, buffer: dict[str, Any], kind: str) -> Any:
        """Array of a buffer as one of `registry.ARRAYS`."""
        if kind != "torch":
            raise Unsupported(f"arrays of {kind} are on the CPU; arrays of torch are on both")
        import torch

        if not torch.cuda.is_available():
            raise Unsupported(f"torch {torch.__version__} finds no CUDA device")
        view = _CudaArray(self.address, self.size)
        whole = torch.as_tensor(view, device=f"cuda:{self.index}")
        rows, cols = buffer["shape"]
        dtype = torch_dtype(buffer["dtype"])
        end = buffer["offset"] + rows * cols * dtype.itemsize
        return whole[buffer["offset"] : end].view(dtype).view(rows, cols)

    def close(self) -> None:
        """Close the memory. Arrays that view it must not be used any more."""
        self.driver.close_memory(self.address)


class _CudaArray:
    """Bytes of a device with the interface from which libraries create arrays."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}


def torch_dtype(dtype: str) -> Any:
    """Type of torch for an element type."""
    import torch

    found = getattr(torch, _lookup(TORCH, dtype, "torch"), None)
    if found is None:
        raise Unsupported(f"torch {torch.__version__} has no type for {dtype}")
    return found


def store(result: Any, outputs: list[Any], arrays: str) -> None:
    """Copy what a launch returned to the outputs."""
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    if len(results) != len(outputs):
        raise ValueError(f"the function returned {len(results)} arrays for {len(outputs)} outputs")
    for value, output in zip(results, outputs):
        if arrays == "memoryview":
            raise TypeError("a function with arrays of type memoryview must write its outputs and return None")
        if not _is_library_array(value):
            libraries = ", ".join(LIBRARIES)
            raise TypeError(f"expected an array of {libraries}, not {type(value).__name__}: it may compute when it is read")
        if arrays == "torch" and not type(value).__module__.startswith("torch"):
            import torch

            value = torch.from_dlpack(value)
        if value.dtype != output.dtype:
            raise TypeError(f"the function returned {value.dtype} for an output of {output.dtype}")
        if arrays == "torch":
            output.copy_(value.reshape(output.shape))
        else:
            output[...] = value.reshape(output.shape)


def _is_library_array(value: Any) -> bool:
    """Return true for arrays of libraries that compute in the launch, and false for other classes."""
    kind = type(value)
    module = sys.modules.get(kind.__module__)
    return kind.__module__.partition(".")[0] in LIBRARIES and getattr(module, kind.__qualname__, None) is kind


def _lookup(table: dict[str, str], dtype: str, kind: str) -> str:
    try:
        return table[dtype]
    except KeyError:
        raise Unsupported(f"{kind} has no type for {dtype}") from None
