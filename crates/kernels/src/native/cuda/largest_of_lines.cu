// The largest magnitudes of x[rows, columns] in bf16, as bits: with OF_ROWS of each row, with OF_COLUMNS of each column, with
// neither of all of it. What is written is 0 before.
//
// A block takes a tile of ROWS rows and 256 columns: x -> a row's maximum over the lanes of a warp, a column's over the rows
// that a thread reads and then over warps -> the maximum of what all tiles found, by atomics. A thread has AHEAD pieces on their way.
// Traffic: 2 * rows * columns bytes read. Roofline: memory. Columns come in eights.
#include "line_codes.cuh"

constexpr int COLUMNS = 256;
constexpr int WARPS = 8;
constexpr int PAIRS = 4;
constexpr int AHEAD = 4;
static_assert(ROWS % (WARPS * AHEAD) == 0, "whole steps");

extern "C" __global__ void __launch_bounds__(WARPS * 32)
    KERNEL(const bf16 *__restrict__ x,
#ifdef OF_ROWS
           unsigned *of_rows,
#endif
#ifdef OF_COLUMNS
           unsigned *of_columns,
#endif
#if !defined(OF_ROWS) && !defined(OF_COLUMNS)
           unsigned *of_all,
#endif
           u64 rows, u64 columns) {
    const unsigned tiles = ((unsigned)columns + COLUMNS - 1) / COLUMNS;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u64 column = (u64)(blockIdx.x % tiles) * COLUMNS + lane * 2 * PAIRS;
    const u64 first = (u64)(blockIdx.x / tiles) * ROWS;
    const bool within = column < columns;

    unsigned largest[PAIRS] = {};
    for (int step = 0; step < ROWS; step += WARPS * AHEAD) {
        uint4 pieces[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const u64 row = first + step + i * WARPS + warp;
            pieces[i] = make_uint4(0, 0, 0, 0);
            if (within && row < rows) pieces[i] = __ldg(reinterpret_cast<const uint4 *>(x + row * columns + column));
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const uint4 loaded = pieces[i];
            largest[0] = larger(largest[0], loaded.x);
            largest[1] = larger(largest[1], loaded.y);
            largest[2] = larger(largest[2], loaded.z);
            largest[3] = larger(largest[3], loaded.w);
#ifdef OF_ROWS
            const u64 row = first + step + i * WARPS + warp;
            const unsigned pair = larger(larger(loaded.x & 0x7fff7fffu, loaded.y), larger(loaded.z & 0x7fff7fffu, loaded.w));
            const unsigned of_row = __reduce_max_sync(0xffffffffu, max(pair & 0xffffu, pair >> 16));
            if (lane == 0 && row < rows) atomicMax(of_rows + row, of_row);
#endif
        }
    }

#ifdef OF_COLUMNS
    __shared__ unsigned of_warps[WARPS][32 * PAIRS];
#pragma unroll
    for (int p = 0; p < PAIRS; p++) of_warps[warp][lane * PAIRS + p] = largest[p];
    __syncthreads();
    if (threadIdx.x < 32 * PAIRS) {
        unsigned pair = of_warps[0][threadIdx.x];
#pragma unroll
        for (int w = 1; w < WARPS; w++) pair = __vmaxu2(pair, of_warps[w][threadIdx.x]);
        const u64 at = (u64)(blockIdx.x % tiles) * COLUMNS + 2 * threadIdx.x;
        if (at < columns) {
            atomicMax(of_columns + at, pair & 0xffffu);
            atomicMax(of_columns + at + 1, pair >> 16);
        }
    }
#endif
#if !defined(OF_ROWS) && !defined(OF_COLUMNS)
    __shared__ unsigned of_warps[WARPS];
    unsigned pair = __vmaxu2(__vmaxu2(largest[0], largest[1]), __vmaxu2(largest[2], largest[3]));
    const unsigned of_warp = __reduce_max_sync(0xffffffffu, max(pair & 0xffffu, pair >> 16));
    if (lane == 0) of_warps[warp] = of_warp;
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned of_block = of_warps[0];
#pragma unroll
        for (int w = 1; w < WARPS; w++) of_block = max(of_block, of_warps[w]);
        atomicMax(of_all, of_block);
    }
#endif
}
