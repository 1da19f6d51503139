// y[m, n] = f(x[m, K] * w[n, K]^T times scales) [+ added[m, n]] for few rows of x in codes of a byte and weights of 4-bit codes,
// which are read as they are.
//
// Data flow: a block makes 16 * TILES columns of y for up to COLUMNS rows of x. Its TILES groups of WARPS warps take 16 rows of
// w each, a warp takes every WARPS * SPLITS-th chunk of 64 bytes of these rows. In a chunk the thread 4 g + t reads 16 bytes, a
// piece of 32 codes, of the rows g and g + 8, with FLIGHT chunks on their way at once, and the codes of x that meet them from a
// cache. Codes of w become bytes in registers: the upper halves of bytes as they are, whose sums are sixteen times too large; or,
// with GROUPED, where a chunk is a group, those of a table of sixteen that four threads make together. Tensor cores
// multiply bytes: a thread gives the k that it has to whatever place of the instruction is its own, since it has the same of x.
// Sums are 32-bit integers throughout and exact. Those of warps meet in shared memory, those of the SPLITS blocks that share
// columns in device memory, where the last block to arrive applies scales, activation and what is added.
//
// Traffic: w at 4 bits once for each COLUMNS rows of x; x at 8 bits from L2 once for each block. Roofline: the bytes of w over the
// memory's rate as long as the unpacking keeps up: of 3 instructions for each code that there is time for, a product of rows
// takes about 1, one of groups about 2.5.
#include "activations.cuh"
#include "half_byte_codes.cuh"
#include "shares.cuh"

constexpr int ROWS = 16 * TILES;
constexpr int THREADS = 32 * WARPS * TILES;
constexpr int SUMS = ROWS * COLUMNS;
constexpr unsigned ROW_PIECES = ROW_CODES / 32;
constexpr unsigned PIECES = (K + 31) / 32;
constexpr unsigned CHUNKS = (PIECES + 3) / 4;
constexpr unsigned SHARE = WARPS * SPLITS;
// Pieces in a row of x, whose codes are filled up with zeros.
constexpr unsigned X_PIECES = STRIDE / 32;
// Whether no piece that a thread comes to lies beyond the end.
constexpr bool WHOLE = PIECES % (4 * FLIGHT * SHARE) == 0;

__device__ __forceinline__ void multiply(int (&sums)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                                         unsigned b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

#ifdef GROUPED
// The integers of all sixteen codes, of which each of four neighboring threads makes four.
struct table {
    unsigned words[4];

    __device__ __forceinline__ table(float scale, int t) {
        unsigned own = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) own |= byte_of(4 * t + i, scale) << 8 * i;
#pragma unroll
        for (int i = 0; i < 4; i++) words[i] = __shfl_sync(0xffffffffu, own, i, 4);
    }

    // Those of the codes in the lower half of a word.
    __device__ __forceinline__ unsigned four(unsigned codes) const {
        const unsigned places = codes & 0x77777777u;
        const unsigned low = pick_bytes(words[0], words[1], places), high = pick_bytes(words[2], words[3], places);
        // All bits of a byte whose code is not negative: seven of them are a sign that was not asked for.
        const unsigned seven = pick_bytes(0x7f7f7f7fu, 0x7f7f7f7fu, codes);
        const unsigned mask = seven | ((seven + 0x01010101u) & 0x80808080u);
        return (low & mask) | (high & ~mask);
    }
};
#endif

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    KERNEL(const uint4 *__restrict__ x, const float *__restrict__ row_scales, const uint4 *__restrict__ codes,
#ifdef GROUPED
           const element *__restrict__ scales,
#endif
           const float *__restrict__ column_scales,
#ifdef ADDED
           const element *__restrict__ added,
#endif
           element *__restrict__ y,
#if SPLITS > 1
           int *__restrict__ parts, unsigned *__restrict__ arrived,
#endif
           u64 m, u64 n) {
    __shared__ int of_warps[WARPS][SUMS];

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int g = lane / 4, t = lane % 4;
    const unsigned split = blockIdx.x % SPLITS, block = blockIdx.x / SPLITS;
    const unsigned row_blocks = ((unsigned)n + ROWS - 1) / ROWS;
    const u64 first_row = (u64)(block % row_blocks) * ROWS;
    const u64 first_column = (u64)(block / row_blocks) * COLUMNS;

    // Beyond the last row the last one is read again, and what comes of it is not written.
    const uint4 *from[2];
#ifdef GROUPED
    const element *scales_from[2];
#endif
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const u64 row = first_row + 16 * threadIdx.y + g + 8 * h;
        const u64 read = row < n ? row : n - 1;
        from[h] = codes + read * ROW_PIECES;
#ifdef GROUPED
        scales_from[h] = scales + read * (ROW_CODES / 128);
#endif
    }

    int sums[COLUMNS / 8][4] = {};
    for (unsigned first = split * WARPS + warp; first < CHUNKS; first += FLIGHT * SHARE) {
        // All loads before any use, and no branch between. What is beyond the end meets zeros of x.
        uint4 loaded[FLIGHT][2];
#ifdef GROUPED
        element of_groups[FLIGHT][2];
#endif
#pragma unroll
        for (int f = 0; f < FLIGHT; f++) {
            const unsigned sought = (first + f * SHARE) * 4 + t;
            const unsigned piece = WHOLE || sought < PIECES ? sought : PIECES - 1;
#pragma unroll
            for (int h = 0; h < 2; h++) {
                loaded[f][h] = __ldcg(from[h] + piece);
#ifdef GROUPED
                of_groups[f][h] = __ldg(scales_from[h] + piece / 4);
#endif
            }
        }
#pragma unroll
        for (int f = 0; f < FLIGHT; f++) {
            const unsigned piece = (first + f * SHARE) * 4 + t;
            unsigned w[2][8];
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const unsigned words[4] = {loaded[f][h].x, loaded[f][h].y, loaded[f][h].z, loaded[f][h].w};
#ifdef GROUPED
                // The four threads have pieces of one group, or beyond the end.
                const table of_group(widen(of_groups[f][h]), t);
#endif
#pragma unroll
                for (int i = 0; i < 4; i++) {
#ifdef GROUPED
                    w[h][2 * i] = of_group.four(words[i]);
                    w[h][2 * i + 1] = of_group.four(words[i] >> 16);
#else
                    // Every other code: those of even places, then those of odd ones.
                    w[h][2 * i] = words[i] << 4 & 0xf0f0f0f0u;
                    w[h][2 * i + 1] = words[i] & 0xf0f0f0f0u;
#endif
                }
            }
#pragma unroll
            for (int tile = 0; tile < COLUMNS / 8; tile++) {
                const u64 column = first_column + tile * 8 + g;
                uint4 of_x[2] = {make_uint4(0, 0, 0, 0), make_uint4(0, 0, 0, 0)};
                if (column < m && (WHOLE || piece < X_PIECES)) {
                    const uint4 *const at = x + (column * X_PIECES + piece) * 2;
                    of_x[0] = __ldg(at);
                    of_x[1] = __ldg(at + 1);
                }
                const unsigned words[8] = {of_x[0].x, of_x[0].y, of_x[0].z, of_x[0].w,
                                           of_x[1].x, of_x[1].y, of_x[1].z, of_x[1].w};
#pragma unroll
                for (int i = 0; i < 4; i++) {
#ifdef GROUPED
                    const unsigned b0 = words[2 * i], b1 = words[2 * i + 1];
#else
                    const unsigned b0 = __byte_perm(words[2 * i], words[2 * i + 1], 0x6420);
                    const unsigned b1 = __byte_perm(words[2 * i], words[2 * i + 1], 0x7531);
#endif
                    multiply(sums[tile], w[0][2 * i], w[1][2 * i], w[0][2 * i + 1], w[1][2 * i + 1], b0, b1);
                }
            }
        }
    }

    // By columns of the tile, so that neighboring threads write neighbors of y.
    const int row = 16 * threadIdx.y + g;
#pragma unroll
    for (int tile = 0; tile < COLUMNS / 8; tile++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            of_warps[warp][(tile * 8 + 2 * t + i % 2) * ROWS + row + 8 * (i / 2)] = sums[tile][i];
        }
    }
    __syncthreads();

    const int thread = threadIdx.y * (32 * WARPS) + threadIdx.x;
    const auto finish = [&](int at, int sum) {
        const u64 of_y = first_row + at % ROWS, column = first_column + at / ROWS;
        if (of_y >= n || column >= m) return;
#ifndef GROUPED
        sum >>= 4;
#endif
        float number = (float)sum * row_scales[column] * column_scales[of_y];
#ifdef ACTIVATE
        number = ACTIVATE(number);
#endif
#ifdef ADDED
        number += widen(added[column * n + of_y]);
#endif
        y[column * n + of_y] = narrow(number);
    };
    const auto of_block = [&](int at) {
        int sum = 0;
#pragma unroll
        for (int i = 0; i < WARPS; i++) sum += of_warps[i][at];
        return sum;
    };

#if SPLITS > 1
    add_shares<SPLITS, SUMS, THREADS>(parts, arrived, thread, of_block, finish);
#else
    for (int at = thread; at < SUMS; at += THREADS) finish(at, of_block(at));
#endif
}
