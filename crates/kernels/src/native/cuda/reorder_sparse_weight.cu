// Reorders a row-major 2:4 sparse weight into units (sparse_weight.cuh); runs once per weight. nonzeros[n,
// ROW_NONZEROS] and metadata[n, METADATA_WORDS] -> units.
//
// Algorithm: one warp per unit; each lane gathers its fragment. Rows and elements outside the weight become zeros with
// valid metadata (positions 0 and 1). Traffic: the weight once, element by element, and the units once. Roofline:
// memory bandwidth; not optimized, since it is not timed.
//
// Parameters:
//   KERNEL         name of the kernel
//   K              reduction size, a multiple of 4 (checked in sparse_weight.cuh)
//   NONZEROS_4BIT  optional: 4-bit nonzeros (sparse_weight.cuh)
//   NONZEROS_8BIT  optional: 8-bit nonzeros; 16 bits by default (sparse_weight.cuh)
//   ELEMENT_*      dtype `element`: ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   WIDTH          any value; required by element.cuh

#ifndef KERNEL
#error "KERNEL: name of the kernel"
#endif

#include "sparse_weight.cuh"

// Nonzero `index` of a row.
__device__ __forceinline__ unsigned nonzero_at(const unsigned *nonzeros, u64 row, unsigned index, u64 n) {
    if (row >= n || index >= K / 2) return 0;
    constexpr unsigned PER_WORD = 32 / NONZERO_BITS;
    const unsigned word = nonzeros[row * (ROW_NONZEROS / PER_WORD) + index / PER_WORD];
    const unsigned value = word >> NONZERO_BITS * (index % PER_WORD);
    return NONZERO_BITS == 16 ? value & 0xffffu : NONZERO_BITS == 8 ? value & 0xffu : value & 0xfu;
}

// Metadata of 32 elements of a row; positions 0 and 1 for elements outside the weight.
__device__ __forceinline__ unsigned metadata_at(const unsigned *metadata, u64 row, unsigned word, u64 n) {
    if (row >= n || word >= METADATA_WORDS) return 0x44444444u;
    const unsigned stored = metadata[row * METADATA_WORDS + word];
    const unsigned groups = K / 4 - 8 * word;
    if (groups >= 8) return stored;
    const unsigned valid = (1u << 4 * groups) - 1;
    return (stored & valid) | (0x44444444u & ~valid);
}

extern "C" __global__ void __launch_bounds__(256)
    KERNEL(const unsigned *__restrict__ nonzeros, const unsigned *__restrict__ metadata, unsigned *__restrict__ units,
           u64 n, u64 count) {
    const u64 unit = (u64)blockIdx.x * 8 + threadIdx.x / 32;
    if (unit >= count) return;
    const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const u64 row = unit / UNITS * 16 + g;
    const unsigned k_unit = unit % UNITS;
    unsigned *const destination = units + unit * UNIT_WORDS;

#if defined(NONZEROS_8BIT)
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        unsigned word = 0;
        for (unsigned j = 0; j < 4; j++) {
            word |= nonzero_at(nonzeros, row + 8 * (i % 2), k_unit * 32 + 16 * (i / 2) + 4 * t + j, n) << 8 * j;
        }
        destination[lane * 4 + i] = word;
    }
    destination[32 * THREAD_WORDS + lane] = metadata_at(metadata, row + 8 * (t % 2), k_unit * 2 + t / 2, n);
#else
#pragma unroll
    for (unsigned half = 0; half < 2; half++) {
#if defined(NONZEROS_4BIT)
        unsigned nibbles = 0;
#endif
        for (unsigned i = 0; i < 4; i++) {
            const u64 fragment_row = row + 8 * (i % 2);
            const unsigned index = k_unit * 32 + 16 * half + 8 * (i / 2) + 2 * t;
            const unsigned first = nonzero_at(nonzeros, fragment_row, index, n),
                           second = nonzero_at(nonzeros, fragment_row, index + 1, n);
#if defined(NONZEROS_4BIT)
            nibbles |= (first ^ 8u) << 4 * i | (second ^ 8u) << 4 * (i + 4);
#else
            destination[(half * 32 + lane) * 4 + i] = first | second << 16;
#endif
        }
#if defined(NONZEROS_4BIT)
        destination[lane * 2 + half] = nibbles;
#endif
    }
    // Metadata of 16 elements of both rows.
    const unsigned shift = 16 * (t % 2);
    const unsigned low = metadata_at(metadata, row, k_unit * 2 + t / 2, n) >> shift & 0xffffu;
    const unsigned high = metadata_at(metadata, row + 8, k_unit * 2 + t / 2, n) >> shift & 0xffffu;
    destination[32 * THREAD_WORDS + lane] = low | high << 16;
#endif
}
