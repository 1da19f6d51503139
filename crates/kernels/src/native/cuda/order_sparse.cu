// A weight whose kept numbers are stored row by row, in the order of `sparse_codes.cuh`, which is made once.
//
// Data flow: a warp makes a unit, thread by thread what it will be given. What lies beyond the weight becomes zeros, in places that
// hardware allows. Traffic: the weight once, in pieces of a number, and the units once; nobody waits for it twice.
// Roofline: the memory's.
#include "sparse_codes.cuh"

// A kept number of a row.
__device__ __forceinline__ unsigned kept_at(const unsigned *numbers, u64 row, unsigned at, u64 n) {
    if (row >= n || at >= K / 2) return 0;
    constexpr unsigned OF_WORD = 32 / KEPT_BITS;
    const unsigned word = numbers[row * (STORED_ROW / OF_WORD) + at / OF_WORD];
    const unsigned number = word >> KEPT_BITS * (at % OF_WORD);
    return KEPT_BITS == 16 ? number & 0xffffu : KEPT_BITS == 8 ? number & 0xffu : number & 0xfu;
}

// The places of 32 numbers of a row. Those of numbers that are not there are the first and the second of four.
__device__ __forceinline__ unsigned places_at(const unsigned *places, u64 row, unsigned word, u64 n) {
    if (row >= n || word >= PLACES_ROW) return 0x44444444u;
    const unsigned found = places[row * PLACES_ROW + word];
    const unsigned fours = K / 4 - 8 * word;
    if (fours >= 8) return found;
    const unsigned there = (1u << 4 * fours) - 1;
    return (found & there) | (0x44444444u & ~there);
}

extern "C" __global__ void __launch_bounds__(256)
    KERNEL(const unsigned *__restrict__ numbers, const unsigned *__restrict__ places, unsigned *__restrict__ units, u64 n, u64 count) {
    const u64 unit = (u64)blockIdx.x * 8 + threadIdx.x / 32;
    if (unit >= count) return;
    const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const u64 row = unit / UNITS * 16 + g;
    const unsigned of_row = unit % UNITS;
    unsigned *const to = units + unit * UNIT_WORDS;

#if defined(KEPT_BYTES)
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        unsigned word = 0;
        for (unsigned j = 0; j < 4; j++) {
            word |= kept_at(numbers, row + 8 * (i % 2), of_row * 32 + 16 * (i / 2) + 4 * t + j, n) << 8 * j;
        }
        to[lane * 4 + i] = word;
    }
    to[32 * THREAD_WORDS + lane] = places_at(places, row + 8 * (t % 2), of_row * 2 + t / 2, n);
#else
#pragma unroll
    for (unsigned half = 0; half < 2; half++) {
#if defined(KEPT_HALVES)
        unsigned codes = 0;
#endif
        for (unsigned i = 0; i < 4; i++) {
            const u64 of = row + 8 * (i % 2);
            const unsigned at = of_row * 32 + 16 * half + 8 * (i / 2) + 2 * t;
            const unsigned first = kept_at(numbers, of, at, n), second = kept_at(numbers, of, at + 1, n);
#if defined(KEPT_HALVES)
            codes |= (first ^ 8u) << 4 * i | (second ^ 8u) << 4 * (i + 4);
#else
            to[(half * 32 + lane) * 4 + i] = first | second << 16;
#endif
        }
#if defined(KEPT_HALVES)
        to[lane * 2 + half] = codes;
#endif
    }
    // Sixteen numbers of both rows.
    const unsigned shift = 16 * (t % 2);
    const unsigned low = places_at(places, row, of_row * 2 + t / 2, n) >> shift & 0xffffu;
    const unsigned high = places_at(places, row + 8, of_row * 2 + t / 2, n) >> shift & 0xffffu;
    to[32 * THREAD_WORDS + lane] = low | high << 16;
#endif
}
