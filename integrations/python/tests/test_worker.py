"""Tests of registration, buffers, worker and the command `bench`."""

import argparse
import ctypes
import importlib.util
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest

from calorimeter import bench, clocks, cuda, registry
from calorimeter.buffers import SharedFile, store
from calorimeter.launches import Launches

SOURCE = """
import calorimeter

@calorimeter.implementation("stream_copy", name="copy", arrays="memoryview", dtypes=["f32"])
def open_copy(case, inputs, outputs):
    '''Copy by slice assignment.

    More text.
    '''
    (x,), (y,) = inputs, outputs
    if case["elements"] > 8:
        raise calorimeter.Unsupported("at most 8 elements")

    def run():
        print("text on standard output")
        if x[0] < 0:
            raise ValueError("negative input")
        y[:] = x

    return run

@calorimeter.implementation("stream_scale", name="doubled", arrays="numpy", quantizes=True)
def open_doubled(case, inputs, outputs):
    return lambda: inputs[0] * 2 if case.recipe == "baseline" else inputs[0]
"""

SOURCE_WITH_LIBRARY = """
import calorimeter

def import_libraries():
    raise ImportError("a broken library")

@calorimeter.implementation("stream_copy", name="copy", arrays="memoryview")
def open_copy(case, inputs, outputs):
    return lambda: None
"""
CONVOLUTION = """
from unittest import mock
import calorimeter
import torch
from calorimeter.sources import torch as source

source.import_libraries()
axes = {"batch": 2, "in_channels": 3, "out_channels": 4, "size": 5, "kernel": 3}
case = calorimeter.Case("conv2d_relu", "torch", "cpu", "f32", axes)
inputs = [torch.randn(2 * 25, 3), torch.randn(4 * 9, 3), torch.randn(1, 4)]
run = source.open_eager(case, inputs, [])
with mock.patch("torch.nn.functional.conv2d", wraps=torch.nn.functional.conv2d) as conv2d:
    y = run()
for given, buffer in zip(conv2d.call_args.args, inputs[:2]):
    assert given.is_contiguous(memory_format=torch.channels_last), given.stride()
    assert given.data_ptr() == buffer.data_ptr()
assert y.is_contiguous() and y.shape == (2, 5, 5, 4), y.stride()
images, filters = inputs[0].view(2, 5, 5, 3).permute(0, 3, 1, 2), inputs[1].view(4, 3, 3, 3).permute(0, 3, 1, 2)
expected = torch.nn.functional.conv2d(images.contiguous(), filters.contiguous(), inputs[2].view(-1), padding=1)
torch.testing.assert_close(y.permute(0, 3, 1, 2), expected.relu())
"""
# Bytes between the beginnings of two buffers.
STRIDE = 256


class WorkerTest(unittest.TestCase):
    """Conversation with a worker process."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source = os.path.join(folder.name, "kernels.py")
        self.file = os.path.join(folder.name, "shared")
        with open(self.source, "w", encoding="utf-8") as file:
            file.write(SOURCE)
        self.start(self.source)

    def start(self, source, **variables):
        command = [sys.executable, "-m", "calorimeter", "worker", source]
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        environment = {**os.environ, **variables}
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=null, text=True, env=environment)
        self.process = process

        def stop():
            process.stdin.close()
            self.assertEqual(process.wait(timeout=20), 0)
            process.stdout.close()

        self.addCleanup(stop)

    def ask(self, **request):
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def open(self, elements=4, sets=2, **changes):
        with open(self.file, "wb") as file:
            file.write(bytes(2 * STRIDE * sets))

        def buffer(index):
            return {"offset": index * STRIDE, "shape": [1, elements], "dtype": "f32"}

        buffers = [{"inputs": [buffer(2 * at)], "outputs": [buffer(2 * at + 1)]} for at in range(sets)]
        case = {"id": 3, "subject": "stream_copy", "implementation": "copy", "device": "cpu", "dtype": "f32"}
        place = {"recipe": "baseline", "memory": {"file": self.file}, "bytes": 2 * STRIDE * sets}
        return self.ask(open={**case, **place, "axes": {"elements": elements}, "sets": buffers, **changes})

    def run_launches(self, first, launches, clock=None):
        return self.ask(run={"id": 3, "set": first, "launches": launches, "clock": clock})

    def write(self, index, values):
        with open(self.file, "r+b") as file:
            file.seek(index * STRIDE)
            file.write(struct.pack("4f", *values))

    def read(self, index):
        with open(self.file, "rb") as file:
            file.seek(index * STRIDE)
            return struct.unpack("4f", file.read(16))

    def test_implementations_are_offered(self):
        offer, other = self.ask(hello={"version": 1})["hello"]["implementations"]
        self.assertEqual((offer["subject"], offer["name"]), ("stream_copy", "copy"))
        self.assertEqual((offer["quantizes"], other["quantizes"]), (False, True))
        self.assertEqual(offer["description"], "Copy by slice assignment.")
        self.assertEqual((offer["devices"], offer["dtypes"]), (["cpu"], ["f32"]))
        self.assertFalse(offer["channels_last"])

    def test_launches_rotate_through_the_sets(self):
        zeros = (0,) * 4
        self.assertEqual(self.open(), {"opened": {"kernel": "copy", "quantization_nanos": None}})
        self.write(0, (1, 2, 3, 4))
        self.write(2, (5, 6, 7, 8))
        self.assertEqual(self.run_launches(1, 0), {"ran": {}})
        self.assertEqual((self.read(1), self.read(3)), (zeros, zeros))
        self.assertGreater(self.run_launches(1, 1, "device")["ran"]["time"]["nanos"], 0)
        self.assertEqual((self.read(1), self.read(3)), (zeros, (5, 6, 7, 8)))
        self.run_launches(1, 2)
        self.assertEqual(self.read(1), (1, 2, 3, 4))
        self.assertEqual(self.ask(close={"id": 3}), {"closed": {}})
        self.assertIn("KeyError", self.run_launches(0, 1)["error"]["reason"])

    def test_libraries_are_imported_only_for_cases(self):
        with open(self.source, "w", encoding="utf-8") as file:
            file.write(SOURCE_WITH_LIBRARY)
        self.start(self.source)
        self.assertIn("hello", self.ask(hello={"version": 1}))
        for _ in range(2):
            self.assertIn("a broken library", self.open()["error"]["reason"])
        self.start(self.source, CALORIMETER_IMPLEMENTATION="copy")
        self.assertIn("a broken library", self.ask(hello={"version": 1})["error"]["reason"])

    def test_sources_of_libraries_do_not_import_them(self):
        imports = "import sys, calorimeter.sources.torch; print(*sys.modules)"
        try:
            modules = subprocess.run([sys.executable, "-c", imports], capture_output=True, text=True, check=True)
        except subprocess.CalledProcessError:
            self.skipTest("needs PyTorch")
        self.assertNotIn("torch", modules.stdout.split())

    def test_convolutions_view_images_in_channels_last_format(self):
        if importlib.util.find_spec("torch") is None:
            self.skipTest("needs PyTorch")
        subprocess.run([sys.executable, "-c", CONVOLUTION], check=True)

    def test_each_kind_of_clock_has_a_name(self):
        self.open()
        for clock, name in [("device", "wall"), ("waiting", "wall-e2e")]:
            for launches in [0, 3]:
                self.assertEqual(self.run_launches(0, launches, clock)["ran"]["time"]["clock"], name)
        self.assertIn("graph", self.run_launches(0, 2, "graph")["unsupported"]["reason"])

    def test_returned_arrays_are_stored_on_request(self):
        scale = {"subject": "stream_scale", "implementation": "doubled"}
        self.assertEqual(self.open(**scale)["opened"]["quantization_nanos"], None)
        self.write(0, (1, 2, 3, 4))
        self.write(2, (5, 6, 7, 8))
        self.run_launches(0, 2, "waiting")
        self.assertEqual(self.read(1), (0,) * 4)
        self.assertEqual(self.ask(store={"id": 3, "set": 1}), {"stored": {}})
        self.assertEqual((self.read(1), self.read(3)), ((0,) * 4, (10, 12, 14, 16)))
        self.ask(close={"id": 3})
        self.assertGreaterEqual(self.open(**scale, recipe="int8wo")["opened"]["quantization_nanos"], 0)
        self.write(0, (1, 2, 3, 4))
        self.run_launches(0, 1)
        self.ask(store={"id": 3, "set": 0})
        self.assertEqual(self.read(1), (1, 2, 3, 4))

    def test_returned_arrays_must_have_the_type_of_the_output(self):
        import numpy

        output = numpy.zeros((2, 2), "float32")
        store((numpy.ones(4, "float32"),), [output], "numpy")
        self.assertEqual(output.sum(), 4)
        for result in [numpy.ones(4), (output, output), numpy.ones(3, "float32")]:
            with self.assertRaises((TypeError, ValueError)):
                store(result, [output], "numpy")

    def test_errors_are_replies(self):
        self.assertEqual(self.open(elements=9), {"unsupported": {"reason": "at most 8 elements"}})
        self.open()
        self.write(0, (-1, 2, 3, 4))
        first, frame = self.run_launches(0, 1)["error"]["reason"].splitlines()
        self.assertEqual(first, "ValueError: negative input")
        self.assertIn("kernels.py, line ", frame)
        self.assertIn("in run: raise ValueError", frame)

    def test_unusable_sources_reply_with_the_reason(self):
        for source, expected in [("nump", "one of gemlite, jax, liger, numpy, torch"), (self.source + "x.py", "FileNotFoundError")]:
            self.start(source)
            self.assertIn(expected, self.ask(hello={"version": 1})["error"]["reason"])


class FakeCupti:
    """Steps through records of known sizes, as CUPTI does."""

    SIZES = {10: 216, 1: 64, 2: 56, 7: 40}

    def cuptiActivityGetNextRecord(self, buffer, valid, record):
        position = record._obj
        if position.value is None:
            position.value = buffer.value
        else:
            position.value += self.SIZES[ctypes.c_uint32.from_address(position.value).value]
        return 0 if position.value < buffer.value + valid.value else cuda.KernelRecords.END_OF_BUFFER


class KernelRecordsTest(unittest.TestCase):
    """Records of CUPTI."""

    def test_records_of_any_order_are_read(self):
        for kernels in [1.0, 0.9, 0.3]:
            random_numbers = random.Random(7)
            records = cuda.KernelRecords.__new__(cuda.KernelRecords)
            records.library, records.sizes, records.free = FakeCupti(), {}, []
            memory = (ctypes.c_uint64 * (1 << 16))()
            address = ctypes.addressof(memory)
            records.buffers = {address: memory}
            expected, end = [], 0
            for number in range(1, 2000):
                is_kernel = random_numbers.random() < kernels
                kind = 10 if is_kernel else random_numbers.choice([1, 2, 7])
                record = bytearray(FakeCupti.SIZES[kind])
                struct.pack_into("I", record, 0, kind)
                struct.pack_into("QQ", record, records.START, number, number + 5)
                if is_kernel:
                    struct.pack_into("Q", record, records.NAME, number * 8)
                ctypes.memmove(address + end, bytes(record), len(record))
                end += len(record)
                name = {10: number * 8, 1: "memcpy", 2: "memset"}.get(kind)
                if name is not None:
                    expected.append((number, number + 5, name))
            self.assertEqual(records._read(address, end), expected)
            self.assertEqual(records.free, [memory])

    def test_overlapping_records_count_once(self):
        self.assertEqual(cuda.busy_ns([]), 0)
        self.assertEqual(cuda.busy_ns([(30, 45, "c"), (10, 40, "a"), (15, 25, 3), (50, 60, "d")]), 45)


class FakeLaunches:
    """Records the steps of a measurement."""

    def __init__(self):
        self.steps = []
        self.driver = self

    def timer(self):
        self.steps.append("timer")
        return len(self.steps)

    def rotation(self, first, launches):
        self.steps.append("rotation")
        return iter([])

    def launch(self, rotation):
        self.steps.append("launch")

    def launch_each(self, rotation):
        self.steps.append("launch each")

    def synchronize(self):
        self.steps.append("synchronize")


class ClockTest(unittest.TestCase):
    """Order of the steps of a measurement."""

    def test_rotation_is_prepared_before_the_clock_is_read(self):
        whole = ["rotation", "timer", "launch", "synchronize", "timer"]
        for clock, expected in [
            (clocks.wall, whole),
            (clocks.wall_each, ["rotation", "timer", "launch each", "timer"]),
            (clocks.enqueue, ["rotation", "timer", "launch", "timer", "synchronize"]),
        ]:
            work = FakeLaunches()
            clock(work, 0, 3, timer=work.timer)
            self.assertEqual(work.steps, expected)

    def test_launches_rotate_and_keep_results_by_set(self):
        launches = Launches([lambda: "a", lambda: "b", lambda: "c"], "numpy", None)
        launches.run(2, 2)
        self.assertEqual(launches.results, ["a", None, "c"])
        launches.launch_each(launches.rotation(1, 1))
        self.assertEqual(launches.results, ["a", "b", "c"])


class RegistryTest(unittest.TestCase):
    """Registration in this process."""

    def tearDown(self):
        registry.registered.clear()

    def test_one_function_implements_several_subjects_once(self):
        register = registry.implementation("gelu", "silu", name="mine")
        register(lambda case, inputs, outputs: None)
        self.assertEqual(list(registry.registered), [("gelu", "mine"), ("silu", "mine")])
        with self.assertRaises(ValueError):
            registry.implementation("silu", name="mine")(lambda case, inputs, outputs: None)
        with self.assertRaises(ValueError):
            registry.implementation(name="mine")
        with self.assertRaises(ValueError):
            registry.implementation("silu", name="other", arrays="lists")

    def test_bench_compares_everything_registered(self):
        for name in ["one", "two"]:
            registry.implementation("gelu", name=name)(lambda case, inputs, outputs: None)
        registry.implementation("linear", name="one")(lambda case, inputs, outputs: None)
        parser = argparse.ArgumentParser()
        bench.add_arguments(parser)
        arguments = parser.parse_args(["mine.py", "--against", "eager", "--subjects", "gelu"])
        (model,) = bench.configuration(arguments, bench.against(arguments))["models"]
        self.assertEqual((model["model"], model["implementations"]), ("gelu", ["eager", "one", "two"]))
        self.assertEqual(bench.against(parser.parse_args(["mine.py"])), ["eager", "native"])
        self.assertEqual(bench.against(parser.parse_args(["mine.py", "--device", "cuda:1"])), ["torch", "native"])


class BufferTest(unittest.TestCase):
    """Views of a shared file."""

    def setUp(self):
        self.file = tempfile.NamedTemporaryFile()
        self.addCleanup(self.file.close)
        self.file.write(bytes(range(64)))
        self.file.flush()
        self.shared = SharedFile(self.file.name, 64)

    def test_memoryviews_have_the_type_and_place_of_the_buffer(self):
        view = self.shared.array({"offset": 8, "shape": [2, 3], "dtype": "i32"}, "memoryview")
        self.assertEqual((len(view), view[0]), (6, int.from_bytes(bytes(range(8, 12)), sys.byteorder)))
        view[5] = -1
        self.file.seek(8 + 20)
        self.assertEqual(self.file.read(4), b"\xff" * 4)

    def test_types_that_a_library_lacks_are_unsupported(self):
        with self.assertRaises(registry.Unsupported):
            self.shared.array({"offset": 0, "shape": [1, 1], "dtype": "e8m0"}, "memoryview")

    def test_numpy_arrays_share_memory(self):
        import numpy

        array = self.shared.array({"offset": 16, "shape": [2, 4], "dtype": "f32"}, "numpy")
        self.assertEqual((array.shape, array.dtype, array.flags.writeable), ((2, 4), numpy.float32, True))
        array[:] = 0
        self.file.seek(16)
        self.assertEqual(self.file.read(32), bytes(32))
        with self.assertRaises(registry.Unsupported):
            self.shared.array({"offset": 0, "shape": [1, 1], "dtype": "bf16"}, "numpy")


if __name__ == "__main__":
    unittest.main()
