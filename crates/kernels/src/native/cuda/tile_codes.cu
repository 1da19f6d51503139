// The codes of a packed weight w[n, K] in the order of `tiled_codes.cuh`, which is made once.
//
// Data flow: a block makes a tile. What lies beyond the weight becomes zero. Traffic: the codes, in words, and the tiles once;
// nobody waits for it twice.
// Roofline: the memory's.
#include "element.cuh"
#include "tiled_codes.cuh"

// A code of the packed rows.
__device__ __forceinline__ unsigned code_at(const unsigned *words, u64 row, unsigned k, u64 n) {
    if (row >= n || k >= ROW_CODES) return 0;
    const u64 bit = (row * ROW_CODES + k) * BITS;
    const unsigned low = words[bit / 32], high = words[(bit + BITS - 1) / 32];
    return __funnelshift_r(low, high, (unsigned)(bit % 32)) & MASK;
}

// The first of the four numbers of a row that a thread has in a step is `first`; where the others are.
__device__ __forceinline__ unsigned place(unsigned first, int step, int half, int neighbor) {
    return first + 16 * step + 8 * half + neighbor;
}

// A thread's words of a plane.
template <int OF_CODE>
__device__ __forceinline__ void write_plane(const unsigned *codes, unsigned char *tile, u64 row, unsigned first, u64 n) {
    typedef plane<OF_CODE> own;
    if (!own::IS_THERE) return;
    own to = {};
    for (int i = 0; i < THREAD_PAIRS; i++) {
        for (int neighbor = 0; neighbor < 2; neighbor++) {
            const unsigned code = code_at(codes, row + 8 * (i % 2), place(first, i / 4, i / 2 % 2, neighbor), n);
            const unsigned bits = code >> own::BELOW & ((1u << OF_CODE) - 1);
            to.words[i * OF_CODE / 16] |= bits << (own::from(i) + 16 * neighbor);
        }
    }
    own::in(tile)[threadIdx.x] = to;
}

extern "C" __global__ void __launch_bounds__(TILE_THREADS)
    KERNEL(const unsigned *__restrict__ codes,
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
    const unsigned first = first_k + 2 * t;
#if BITS == 8
    for (int piece = 0; piece < 2; piece++) {
        unsigned words[4] = {};
        for (int w = 0; w < 4; w++) {
            for (int i = 0; i < 4; i++) {
                const unsigned k = place(first, 2 * piece + w / 2, i / 2, i % 2);
                words[w] |= code_at(codes, row + 8 * (w % 2), k, n) << 8 * (2 * (i % 2) + i / 2);
            }
        }
        reinterpret_cast<uint4 *>(tile)[piece * TILE_THREADS + threadIdx.x] =
            make_uint4(words[0], words[1], words[2], words[3]);
    }
#else
    write_plane<4>(codes, tile, row, first, n);
    write_plane<2>(codes, tile, row, first, n);
    write_plane<1>(codes, tile, row, first, n);
#endif
#if defined(GROUP)
    element *const to = reinterpret_cast<element *>(tile + CODE_BYTES);
    for (int at = threadIdx.x; at < TILE_GROUPS * TILE_ROWS; at += TILE_THREADS) {
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
