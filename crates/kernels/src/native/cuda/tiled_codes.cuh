// Codes of a packed weight in the order in which Hopper's warp groups take them, so that nothing is turned when they are used.
//
// A tile is 128 rows of the weight by 64 numbers, rows of tiles after each other. In it each of 256 threads has 16 pairs of
// neighbors that it decodes: of its rows g and g + 8, with g = lane / 4, at each step of 16 numbers those at 2 t, 2 t + 1,
// 2 t + 8 and 2 t + 9, with t = lane % 4. Bytes are in pieces of 16, piece by piece, a word having one row's, the first and
// third of them being the neighbors at 2 t. Other codes are in planes of 4, 2 and 1 of their bits, from the lowest, as many as
// add up to them: in each a thread has its words one after the other, and of a pair the lower half of a word has one and the
// upper half, at the same bits, the other. Where groups have scales, behind the pieces are those of the tile's rows in
// the element type, as `scaled_pair` takes them, group by group, and then their zeros.
#pragma once
#include "packed.cuh"
#include "packed_pairs.cuh"

constexpr int TILE_ROWS = 128;
constexpr int STEP = 64;
constexpr int TILE_THREADS = 256, THREAD_PAIRS = 16;
constexpr int CODE_BYTES = TILE_ROWS * STEP * BITS / 8;
#if defined(GROUP)
static_assert(GROUP % STEP == 0 || GROUP == 16 || GROUP == 32, "steps of a tile have whole groups");
constexpr int TILE_GROUPS = GROUP < STEP ? STEP / GROUP : 1;
#if defined(ZEROS)
constexpr int SCALE_BYTES = 2 * TILE_GROUPS * TILE_ROWS * sizeof(element);
#else
constexpr int SCALE_BYTES = TILE_GROUPS * TILE_ROWS * sizeof(element);
#endif
#else
constexpr int SCALE_BYTES = 0;
#endif
constexpr int WEIGHT_BYTES = CODE_BYTES + SCALE_BYTES;
constexpr unsigned K_TILES = (K + STEP - 1) / STEP;

// The words that a thread has of a plane of so many bits of each code, which are those from BELOW on.
template <int OF_CODE> struct __align__(4 * OF_CODE) plane {
    static constexpr bool IS_THERE = BITS != 8 && (BITS & OF_CODE) != 0;
    static constexpr int BELOW = BITS & ~(2 * OF_CODE - 1) & 7;
    unsigned words[OF_CODE];

    __device__ __forceinline__ static plane *in(unsigned char *tile) {
        return reinterpret_cast<plane *>(tile + BELOW * (TILE_ROWS * STEP / 8));
    }
    __device__ __forceinline__ static const plane *in(const unsigned char *tile) {
        return in(const_cast<unsigned char *>(tile));
    }
    // Where the bits of a pair begin in its word, which is the `pair` * OF_CODE / 16th.
    __device__ __forceinline__ static constexpr int from(int pair) { return pair % (16 / OF_CODE) * OF_CODE; }
};
