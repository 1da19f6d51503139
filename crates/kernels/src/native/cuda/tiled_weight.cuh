// Tiled layout of a packed weight for wgmma: each thread of a consumer warp group loads its own fragment, already in
// register order. The layout plays the role of Marlin's offline weight permutation ("MARLIN: Mixed-Precision
// Auto-Regressive Parallel Inference on Large Language Models", Frantar et al., 2024).
//
// A tile is TILE_N = 64 weight rows by TILE_K = 64 elements; tiles of the same rows follow each other. Thread 4 g + t of
// warp w of a warp group holds 16 pairs of adjacent elements, four per step of 16 elements: fragment A of m64n*k16, see
// PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16".
//
//     pair   row          k                     pair   row          k
//     4 s    16 w + g     16 s + 2 t, + 1       4 s+2  16 w + g     16 s + 2 t + 8, + 9
//     4 s+1  16 w + g+8   16 s + 2 t, + 1       4 s+3  16 w + g+8   16 s + 2 t + 8, + 9
//
//     tile in memory (BITS = 5):   | plane of bits 0-3      | plane of bit 4 | scales | zero points |
//     plane of B bits per value:   | thread 0: B words | thread 1: B words | ... | thread 127 |
//
// BITS = 8: two vectors of 16 bytes per thread, one word per row and step; bytes 0 and 2 of a word are the elements k =
// 2 t and 2 t + 1, bytes 1 and 3 are k = 2 t + 8 and 2 t + 9. Other widths: planes of 4, 2 and 1 bits, from the lowest
// bits up, as many as add up to BITS. In a plane the lower half of a word has the first value of a pair, the upper half
// the second, at equal bit positions. With group scales, the scales of the tile's rows follow, one array of TILE_N per
// group in dtype `element`, then the zero points, in the form that `scale_pair` takes.
//
// Parameters:
//   ELEMENT_*  dtype `element`: ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   ...        all parameters of packed_weight.cuh, except K
#pragma once
#include "packed_weight.cuh"
#include "dequantize_pairs.cuh"

constexpr int TILE_N = 64;
constexpr int TILE_K = 64;
constexpr int TILE_THREADS = 128, THREAD_PAIRS = 16;
constexpr int VALUE_BYTES = TILE_N * TILE_K * BITS / 8;
#if defined(GROUP_SIZE)
static_assert(GROUP_SIZE % TILE_K == 0 || GROUP_SIZE == 16 || GROUP_SIZE == 32,
              "groups must divide or span whole wgmma steps");
constexpr int TILE_GROUPS = GROUP_SIZE < TILE_K ? TILE_K / GROUP_SIZE : 1;
#if defined(HAS_ZERO_POINTS)
constexpr int SCALE_BYTES = 2 * TILE_GROUPS * TILE_N * sizeof(element);
#else
constexpr int SCALE_BYTES = TILE_GROUPS * TILE_N * sizeof(element);
#endif
#else
constexpr int SCALE_BYTES = 0;
#endif
constexpr int TILE_BYTES = VALUE_BYTES + SCALE_BYTES;

// Tiles of a row of k elements.
__host__ __device__ constexpr unsigned row_tiles(unsigned k) { return (k + TILE_K - 1) / TILE_K; }

// Words of a thread in the plane of PLANE_BITS bits per value, which start at bit LOW_BIT of the value.
template <int PLANE_BITS> struct __align__(4 * PLANE_BITS) plane {
    static constexpr bool EXISTS = BITS != 8 && (BITS & PLANE_BITS) != 0;
    static constexpr int LOW_BIT = BITS & ~(2 * PLANE_BITS - 1) & 7;
    unsigned words[PLANE_BITS];

    __device__ __forceinline__ static plane *in(unsigned char *tile) {
        return reinterpret_cast<plane *>(tile + LOW_BIT * (TILE_N * TILE_K / 8));
    }
    __device__ __forceinline__ static const plane *in(const unsigned char *tile) {
        return in(const_cast<unsigned char *>(tile));
    }
    // First bit of a pair in word `pair * PLANE_BITS / 16`.
    __device__ __forceinline__ static constexpr int first_bit(int pair) {
        return pair % (16 / PLANE_BITS) * PLANE_BITS;
    }
};
