"""CUDA driver and CUPTI, called through `ctypes`, so that every library of a source is measured in the same way."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import lru_cache
from itertools import chain
from typing import Any

# Names of the shared libraries, newest first. Libraries that a source has already loaded are found by name.
DRIVER = ("libcuda.so.1",)
CUPTI = ("libcupti.so.13", "libcupti.so.12", "libcupti.so")
IPC_LAZY_PEER_ACCESS = 1


class CudaError(Exception):
    """Error of the CUDA driver or of CUPTI."""


class IpcHandle(ctypes.Structure):
    """``CUipcMemHandle``."""

    _fields_ = [("reserved", ctypes.c_char * 64)]


def library(names: tuple[str, ...]) -> ctypes.CDLL:
    """First library that can be loaded."""
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise CudaError(f"cannot load {names[0]}")


def check(action: str, status: int) -> None:
    """Raise an error for a status other than success."""
    if status:
        raise CudaError(f"{action}: CUDA error {status}")


class Driver:
    """Primary context of a device, which the libraries of the process share."""

    def __init__(self, index: int) -> None:
        self.library = library(DRIVER)
        context = ctypes.c_void_p()
        check("initializing the driver", self.library.cuInit(0))
        check("opening the device", self.library.cuDevicePrimaryCtxRetain(ctypes.byref(context), index))
        check("selecting the device", self.library.cuCtxSetCurrent(context))
        self.events = ctypes.c_void_p(), ctypes.c_void_p()
        for event in self.events:
            check("creating an event", self.library.cuEventCreate(ctypes.byref(event), 0))

    def synchronize(self) -> None:
        """Wait for the work of all streams."""
        check("running the launches", self.library.cuCtxSynchronize())

    def open_memory(self, handle: bytes) -> int:
        """Address of memory that another process shares."""
        address, shared = ctypes.c_uint64(), IpcHandle()
        ctypes.memmove(ctypes.byref(shared), handle, ctypes.sizeof(shared))
        opened = self.library.cuIpcOpenMemHandle_v2(ctypes.byref(address), shared, IPC_LAZY_PEER_ACCESS)
        check("opening the shared memory", opened)
        return address.value

    def close_memory(self, address: int) -> None:
        """Close memory that another process shares."""
        self.library.cuIpcCloseMemHandle(ctypes.c_uint64(address))

    def elapsed_ns(self, body: Callable[[], None]) -> int:
        """Time between two events on the default stream around some work."""
        start, end = self.events
        check("recording an event", self.library.cuEventRecord(start, None))
        body()
        check("recording an event", self.library.cuEventRecord(end, None))
        self.synchronize()
        elapsed = ctypes.c_float()
        function = getattr(self.library, "cuEventElapsedTime_v2", None) or self.library.cuEventElapsedTime
        check("reading the time of an event", function(ctypes.byref(elapsed), start, end))
        return round(elapsed.value * 1e6)


@lru_cache(maxsize=None)
def driver(index: int) -> Driver:
    """Driver of a device."""
    return Driver(index)


BufferRequested = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)
)
BufferCompleted = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
)


class KernelRecords:
    """Start and end of each kernel, copy and memset of this process, recorded by CUPTI."""

    KINDS = {"memcpy": 1, "memset": 2, "kernel": 10}
    BUFFER_BYTES = 8 << 20
    FLUSH_FORCED = 1
    END_OF_BUFFER = 12
    # Positions in records of all kinds above, and in records of kernels.
    START, END, NAME = 16, 24, 104

    def __init__(self) -> None:
        self.library = library(CUPTI)
        self.buffers: dict[int, Any] = {}
        self.free: list[Any] = []
        self.filled: list[tuple[int, int]] = []
        # Bytes of a record of each kind, as seen.
        self.sizes: dict[int, int] = {}
        # CUPTI holds the callbacks as long as the process runs.
        self.callbacks = BufferRequested(self._request), BufferCompleted(self._complete)
        registered = self.library.cuptiActivityRegisterCallbacks(*self.callbacks)
        check("registering the buffers of CUPTI", registered)
        # Errors and costs of the first recording occur here.
        self.record(lambda: None)

    def _request(self, buffer: Any, size: Any, max_records: Any) -> None:
        memory = self.free.pop() if self.free else (ctypes.c_uint64 * (self.BUFFER_BYTES // 8))()
        address = ctypes.addressof(memory)
        self.buffers[address] = memory
        buffer[0], size[0], max_records[0] = address, self.BUFFER_BYTES, 0

    def _complete(self, context: Any, stream: int, buffer: int, size: int, valid: int) -> None:
        self.filled.append((buffer, valid))

    def record(self, body: Callable[[], None]) -> list[tuple[int, int, Any]]:
        """Start, end and name of everything that the device executes while `body` runs and the context synchronizes."""
        for kind in self.KINDS.values():
            check("enabling kernel records", self.library.cuptiActivityEnable(kind))
        try:
            body()
        finally:
            flushed = self.library.cuptiActivityFlushAll(self.FLUSH_FORCED)
            for kind in self.KINDS.values():
                check("disabling kernel records", self.library.cuptiActivityDisable(kind))
            filled, self.filled = self.filled, []
            # Also after an exception, so that the buffers are used again.
            records = list(chain.from_iterable(self._read(*buffer) for buffer in filled))
        check("collecting kernel records", flushed)
        dropped = ctypes.c_size_t()
        counted = self.library.cuptiActivityGetNumDroppedRecords(None, 0, ctypes.byref(dropped))
        check("counting dropped records", counted)
        if dropped.value or any(not 0 < start <= end for start, end, _ in records):
            raise CudaError("CUPTI has no time for some of the kernels")
        return records

    def _read(self, buffer: int, valid: int) -> list[tuple[int, int, Any]]:
        """Start, end and name of each record in a buffer; a kernel has the address of its name."""
        records: list[tuple[int, int, Any]] = []
        names = {kind: name for name, kind in self.KINDS.items()}
        record, offset = ctypes.c_void_p(), None
        memory = memoryview(self.buffers[buffer]).cast("B")
        words, kinds = memory.cast("Q"), memory.cast("I")
        arguments = ctypes.c_void_p(buffer), ctypes.c_size_t(valid), ctypes.byref(record)
        while (status := self.library.cuptiActivityGetNextRecord(*arguments)) == 0:
            previous, offset = offset, record.value - buffer
            if previous is not None:
                self.sizes[kinds[previous // 4]] = offset - previous
            kind = kinds[offset // 4]
            size = self.sizes.get(kind)
            # Records follow each other without gaps, and most of them are of the same kind.
            run = 1
            if size is not None:
                following = kinds[offset // 4 : valid // 4 : size // 4].tolist()
                run = next((at for at, other in enumerate(following) if other != kind), len(following))
                record.value += (run - 1) * size
            first, end, step = offset // 8, offset // 8 + run * ((size or 8) // 8), (size or 8) // 8
            columns = [words[first + field // 8 : end + field // 8 : step].tolist() for field in (self.START, self.END)]
            name: Any = names.get(kind)
            if name == "kernel":
                records += zip(*columns, words[first + self.NAME // 8 : end + self.NAME // 8 : step].tolist())
            elif name is not None:
                records += zip(*columns, [name] * run)
            offset += (run - 1) * (size or 0)
        if status != self.END_OF_BUFFER:
            check("reading kernel records", status)
        del memory, words, kinds
        self.free.append(self.buffers.pop(buffer))
        return records


@lru_cache(maxsize=None)
def kernel_records() -> KernelRecords:
    """Recorder of the process."""
    return KernelRecords()


@lru_cache(maxsize=None)
def has_kernel_records() -> bool:
    """Whether CUPTI can be loaded and records kernels; standard error receives the reason otherwise."""
    try:
        kernel_records()
    except CudaError as error:
        print(f"no records of kernels: {error}", file=sys.stderr)
        return False
    return True


def kernel_name(address: int) -> str:
    """Name of a kernel in the source, without template arguments and parameters."""
    mangled = ctypes.string_at(address)
    try:
        runtime = library(("libstdc++.so.6",))
    except CudaError:
        return mangled.decode()
    runtime.__cxa_demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    text = runtime.__cxa_demangle(mangled, None, None, ctypes.byref(status))
    if not text:
        return mangled.decode()
    name = ctypes.string_at(text).decode()
    runtime.free(ctypes.c_void_p(text))
    return name.removeprefix("void ").partition("<")[0].partition("(")[0]


def busy_ns(records: list[tuple[int, int, Any]]) -> int:
    """Time in which at least one of the recorded intervals was running."""
    total = covered = 0
    for start, end, _ in sorted(records, key=lambda record: record[:2]):
        total += max(0, end - max(start, covered))
        covered = max(covered, end)
    return total
