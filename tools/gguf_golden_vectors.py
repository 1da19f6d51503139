#!/usr/bin/env python3
"""Writes golden vectors: the values that the package gguf computes for Q8_0 and Q4_0.

One safetensors file per format goes into the directory given as argument. The Rust
implementation of the recipes q8_0 and q4_0 is tested against the files, bit for bit.

Usage (needs no GPU and takes less than a second):

    pip install gguf==0.19.0 numpy
    python3 tools/gguf_golden_vectors.py crates/recipes/tests/data/ggml

Tensors in a file:

    weight (n,k)        F32
    codes (n,k)         I8: quantized values, for Q4_0 minus 8
    scales (n,k/32)     F32: widened f16 scales
    dequantized (n,k)   F32: result of `gguf.quants.dequantize`
"""

import json
import os
import struct
import sys
from importlib.metadata import version

import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize

SEED = 20240607
BLOCK = 32
K = 2 * BLOCK
SAFETENSORS_DTYPES = {"float32": "F32", "int8": "I8"}


def normal(generator, scale=1.0):
    return generator.standard_normal(K) * scale


def with_value(row, at, value):
    row = row.copy()
    row[at] = value
    return row


def weight_rows(generator):
    """Returns rows with all cases in which an implementation may differ.

    For a block of negative zeros, the package gguf and the C code of ggml store scales of opposite
    signs, so the rows contain no such block.
    """
    steps = np.arange(K) - K / 2
    half_steps = (np.arange(K) % 15) - 7.5
    rows = [normal(generator) for _ in range(8)]
    rows += [
        np.zeros(K),
        np.full(K, 0.7),
        np.full(K, -1.3),
        # Outliers of both signs.
        with_value(normal(generator, 0.05), 21, 60.0),
        with_value(normal(generator, 0.05), 40, -60.0),
        # Scale 1 in Q8_0 and ties between all quantized values.
        with_value(with_value(steps + 0.5, 0, 127.0), BLOCK, -127.0),
        # Scales 1 and -1 in Q4_0 and ties.
        with_value(with_value(half_steps, 5, -8.0), BLOCK + 5, 8.0),
        # Equal magnitudes: the first determines the sign of the Q4_0 scale.
        with_value(with_value(normal(generator, 0.3), 3, 4.0), 9, -4.0),
        with_value(with_value(normal(generator, 0.3), 3, -4.0), 9, 4.0),
        # Scales that are subnormal in f16, that round to zero, and that are almost too large.
        normal(generator, 1e-3),
        normal(generator, 1e-5),
        normal(generator, 1e-7),
        normal(generator, 1e-30),
        with_value(normal(generator, 1e5), 11, 127.0 * 65000.0 / 16.0),
        # Values with one sign.
        np.abs(normal(generator)) + 0.25,
        -np.abs(normal(generator)) - 0.25,
    ]
    # Multiples of 1/8, as bf16 weights have.
    rows += [np.round(normal(generator) * 8) / 8 for _ in range(4)]
    rows += [normal(generator, 0.02) for _ in range(4)]
    return np.array(rows, dtype=np.float32)


def unpack(name, blocks, shape):
    """Returns quantized values and scales of the blocks of a GGUF tensor."""
    size = 34 if name == "q8_0" else 18
    blocks = blocks.reshape(-1, size)
    scales = np.ascontiguousarray(blocks[:, :2]).view(np.float16).astype(np.float32)
    values = blocks[:, 2:]
    if name == "q8_0":
        codes = values.view(np.int8)
    else:
        # The first half of a block is in the lower four bits.
        codes = np.concatenate([values & 15, values >> 4], axis=1).astype(np.int8) - np.int8(8)
    return codes.reshape(shape), scales.reshape(shape[0], -1)


def write_safetensors(path, tensors, metadata):
    header, blobs, offset = {"__metadata__": metadata}, [], 0
    # Four-byte types first, so that each tensor is aligned.
    for name in sorted(tensors, key=lambda name: (-tensors[name].itemsize, name)):
        blob = np.ascontiguousarray(tensors[name]).tobytes()
        header[name] = {
            "dtype": SAFETENSORS_DTYPES[tensors[name].dtype.name],
            "shape": list(tensors[name].shape),
            "data_offsets": [offset, offset + len(blob)],
        }
        offset += len(blob)
        blobs.append(blob)
    text = json.dumps(header, sort_keys=True).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def main():
    if len(sys.argv) != 2:
        print("usage: gguf_golden_vectors.py OUT_DIR", file=sys.stderr)
        return 2
    out_dir = sys.argv[1]
    os.makedirs(out_dir, exist_ok=True)
    weight = weight_rows(np.random.default_rng(SEED))
    for name in ("q8_0", "q4_0"):
        kind = GGMLQuantizationType[name.upper()]
        blocks = quantize(weight, kind)
        codes, scales = unpack(name, blocks, weight.shape)
        tensors = {
            "weight": weight,
            "codes": codes,
            "scales": scales,
            "dequantized": dequantize(blocks, kind),
        }
        metadata = {
            "recipe": name,
            "dtype": "f32",
            "gguf_version": version("gguf"),
            "numpy_version": np.__version__,
        }
        write_safetensors(os.path.join(out_dir, f"{name}.safetensors"), tensors, metadata)
    return 0


if __name__ == "__main__":
    sys.exit(main())
