// The codes of a packed weight w[n, K] in the order of `tiled_codes.cuh`, which is made once.
//
// Data flow: a block makes a tile. What lies beyond the weight becomes zero. Traffic: the codes once, in pieces of a byte, and
// the tiles once; nobody waits for it twice.
// Roofline: the memory's.
#include "element.cuh"
#include "tiled_codes.cuh"

// A code of the packed rows.
__device__ __forceinline__ unsigned code_at(const unsigned char *codes, u64 row, unsigned k, u64 n) {
    if (row >= n || k >= ROW_CODES) return 0;
    const u64 at = row * ROW_CODES + k;
    return BITS == 8 ? codes[at] : codes[at / 2] >> 4 * (at % 2) & 0xf;
}

extern "C" __global__ void __launch_bounds__(256)
    KERNEL(const unsigned char *__restrict__ codes,
#if defined(GROUP)
           const stored_scale *__restrict__ scales,
#if defined(ZEROS)
           const stored_zero *__restrict__ zeros,
#endif
#endif
           unsigned char *__restrict__ tiles, u64 n, u64) {
    const u64 first_row = (u64)(blockIdx.x / K_TILES) * TILE_ROWS;
    const unsigned first_k = blockIdx.x % K_TILES * STEP;
    unsigned char *const tile = tiles + (u64)blockIdx.x * WEIGHT_BYTES;

    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const u64 row = first_row + threadIdx.x / 32 * 16 + g;
    for (int piece = 0; piece < THREAD_PIECES; piece++) {
        unsigned words[4] = {};
        for (int w = 0; w < 4; w++) {
            // Which step a word is of, and of bytes which of the two rows.
            const int step = BITS == 8 ? 2 * piece + w / 2 : w;
            for (int i = 0; i < 4; i++) {
                // Of the four numbers of a row.
                const unsigned k = first_k + 16 * step + 2 * t + i % 2 + 8 * (i / 2);
                if (BITS == 8) {
                    words[w] |= code_at(codes, row + 8 * (w % 2), k, n) << 8 * (2 * (i % 2) + i / 2);
                } else {
                    for (int h = 0; h < 2; h++) {
                        words[w] |= code_at(codes, row + 8 * h, k, n) << 4 * (2 * (i / 2) + h + 4 * (i % 2));
                    }
                }
            }
        }
        reinterpret_cast<uint4 *>(tile)[piece * 256 + threadIdx.x] = make_uint4(words[0], words[1], words[2], words[3]);
    }
#if defined(GROUP)
    element *const to = reinterpret_cast<element *>(tile + CODE_BYTES);
    for (int at = threadIdx.x; at < TILE_GROUPS * TILE_ROWS; at += 256) {
        const u64 of = first_row + at % TILE_ROWS;
        const unsigned of_tile = first_k / GROUP + at / TILE_ROWS;
        pair_scale found = {0, 0};
        // What lies beyond the weight has a scale of nothing.
        if (of < n && of_tile < GROUPS) {
            const u64 group = of * GROUPS + of_tile;
#if defined(ZEROS)
            found = for_pairs(SCALE::number(scales[group]), zero_of(load_zero(zeros, group), group));
#else
            found = for_pairs(SCALE::number(scales[group]), 0.0f);
#endif
        }
        to[at] = (element)found.scale;
#if defined(ZEROS)
        to[TILE_GROUPS * TILE_ROWS + at] = (element)found.zero;
#endif
    }
#endif
}
