#!/usr/bin/env python3
"""Writes ml_dtypes' conversions of up to a million f32 values to each of the small float formats.

Each format gets one file, with one byte per quantized value, in the directory given as argument. The
inputs are not written: `crates/recipes/tests/arithmetic/casts.rs` generates the same values.

    python3 -m venv casts-venv && casts-venv/bin/pip install ml_dtypes==0.6.0 numpy
    casts-venv/bin/python tools/float8_casts.py crates/recipes/tests/data/casts

ml_dtypes rounds to nearest, ties to even, and does not saturate: values above the range become NaN
in e4m3 and infinity in e5m2. In e3m2 and e2m1, which have neither, it saturates.
"""

import sys
from pathlib import Path

import ml_dtypes
import numpy as np

# Name, type, mantissa bits, exponents of the smallest and of the largest value, number of test values.
FORMATS = [
    ("e4m3", ml_dtypes.float8_e4m3fn, 3, -9, 8, 1 << 20),
    ("e5m2", ml_dtypes.float8_e5m2, 2, -16, 15, 1 << 20),
    ("e3m2", ml_dtypes.float6_e3m2fn, 2, -4, 4, 1 << 17),
    ("e2m1", ml_dtypes.float4_e2m1fn, 1, -1, 2, 1 << 17),
]


def splitmix64(count):
    """Returns the first `count` outputs of splitmix64 with seed zero."""
    z = (np.arange(1, count + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def test_values(mantissa, min_exponent, max_exponent, count):
    """Returns f32 inputs of three kinds.

    A quarter are arbitrary finite values. Half are within the range of the format or up to two octaves beyond.
    A quarter are normal numbers of the format, or halfway between two of them.
    """
    random = splitmix64(count)
    bits = (random >> np.uint64(32)).astype(np.uint32)
    kind = random & np.uint64(3)
    infinite = (bits & np.uint32(0x7F800000)) == np.uint32(0x7F800000)
    arbitrary = np.where(infinite, bits & np.uint32(0xBFFFFFFF), bits)
    lowest, span = 127 + min_exponent - 2, max_exponent - min_exponent + 4
    exponent = ((random >> np.uint64(8)) & np.uint64(0xFF)) % np.uint64(span) + np.uint64(lowest)
    inside = (bits & np.uint32(0x807FFFFF)) | (exponent.astype(np.uint32) << np.uint32(23))
    halfway = inside & np.uint32(0xFFFFFFFF << (22 - mantissa) & 0xFFFFFFFF)
    selected = np.where(kind == 0, arbitrary, np.where(kind == 3, halfway, inside))
    return selected.astype(np.uint32).view(np.float32)


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name, dtype, mantissa, min_exponent, max_exponent, count in FORMATS:
        with np.errstate(all="ignore"):
            values = test_values(mantissa, min_exponent, max_exponent, count)
            quantized = values.astype(dtype).view(np.uint8)
        (out / f"{name}.codes").write_bytes(quantized.tobytes())
    print(f"ml_dtypes {ml_dtypes.__version__}, numpy {np.__version__}")


if __name__ == "__main__":
    main()
