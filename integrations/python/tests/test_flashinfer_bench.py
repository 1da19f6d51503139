"""Tests of references and solutions of data sets of flashinfer-bench."""

import os
import tempfile
import unittest
from unittest import mock

import numpy as np

from calorimeter import flashinfer_bench, registry
from calorimeter.flashinfer_bench import Call, array_library, load_function, write_sources

DEFINITION = {
    "name": "scale",
    "axes": {"M": {"type": "var"}, "H": {"type": "const", "value": 3}},
    "inputs": {
        "x": {"shape": ["M", "H"], "dtype": "float32"},
        "count": {"shape": None, "dtype": "int32"},
        "mask": {"shape": ["M"], "dtype": "bool"},
        "on": {"shape": None, "dtype": "bool"},
    },
    "outputs": {"y": {"shape": ["M", "H"], "dtype": "float32"}, "total": {"shape": None, "dtype": "int64"}},
}


def call():
    """Call of the definition with two rows."""
    case = registry.Case("scale", "mine", "cpu", "f32", {"M": 2}, scalars=(4.0, 1.0))
    return Call(DEFINITION, case)


def outputs():
    """Buffers of the outputs, as the worker creates them."""
    return [np.zeros((1, 6), np.float32), np.zeros((1, 1), np.int64)]


class CallTest(unittest.TestCase):
    """Conversion of buffers to arguments, and of results to buffers."""

    def test_arguments_have_shapes_and_types_of_the_definition(self):
        flat = [np.arange(6, dtype=np.float32).reshape(1, 6), np.array([[1, 0]], np.uint8)]
        x, count, mask, on = call().arguments(flat, "numpy")
        self.assertEqual((x.shape, mask.dtype, mask.tolist()), ((2, 3), np.bool_, [True, False]))
        self.assertTrue(np.shares_memory(x, flat[0]))
        self.assertEqual((count, type(count), on), (4, int, True))
        self.assertEqual([result.shape for result in call().results(outputs(), "numpy")], [(2, 3), ()])

    def test_results_are_stored_by_position_or_name(self):
        y = np.ones((2, 3), np.float32)
        for result in [(y, 5), [y, np.int64(5)], {"total": 5, "y": y, "extra": None}]:
            stored = outputs()
            call().store(result, stored, "numpy")
            self.assertEqual((stored[0].tolist(), stored[1].tolist()), ([[1.0] * 6], [[5]]))

    def test_wrong_results_are_rejected(self):
        y = np.ones((2, 3), np.float32)
        wrong = [
            (y, "2 outputs"),
            ({"y": y}, "'total'"),
            ((y.T, 5), r"\(3, 2\) instead of \(2, 3\)"),
            ((y.astype(np.float64), 5), "float64"),
        ]
        for result, reason in wrong:
            with self.assertRaisesRegex((TypeError, ValueError), reason):
                call().store(result, outputs(), "numpy")


class SourceTest(unittest.TestCase):
    """Source files of solutions."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        environment = mock.patch.dict(os.environ, {"XDG_CACHE_HOME": folder.name})
        environment.start()
        self.addCleanup(environment.stop)

    def test_reference_decides_the_array_library(self):
        self.assertEqual(array_library("import numpy as np\ndef run(x): return x"), "numpy")
        for reference in ["import torch", "import numpy\nfrom torch import nn", "def run(x): return x", "import math"]:
            self.assertEqual(array_library(reference), "torch")

    def test_functions_import_other_files_of_the_solution(self):
        sources = '[{"path": "a/main.py", "content": "from .b import f"}, {"path": "a/b.py", "content": "f = abs"}]'
        self.assertIs(load_function(sources, "a/main.py::f"), abs)
        for entry_point, reason in [("a/main.py::g", "no function 'g'"), ("a/main.cu::f", "entry_point")]:
            with self.assertRaisesRegex(ValueError, reason):
                load_function(sources, entry_point)

    def test_equal_sources_are_written_once(self):
        sources = [{"path": "main.py", "content": "x = 1"}]
        self.assertEqual(write_sources(sources), write_sources(sources))
        self.assertNotEqual(write_sources(sources), write_sources([{"path": "main.py", "content": "x = 2"}]))

    def test_source_files_stay_inside_the_package(self):
        for path in ["../main.py", "/main.py", "a/../../main.py", ""]:
            with self.assertRaisesRegex(ValueError, "inside the solution"):
                write_sources([{"path": path, "content": ""}])

    def test_signature_is_checked_before_the_first_launch(self):
        flashinfer_bench.check_signature(lambda *tensors: None, 3)
        with self.assertRaisesRegex(TypeError, "3 positional arguments"):
            flashinfer_bench.check_signature(lambda x, y: None, 3)


if __name__ == "__main__":
    unittest.main()
