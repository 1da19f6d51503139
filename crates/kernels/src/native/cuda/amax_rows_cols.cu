// amax of x[rows, columns] in bf16: per row (ROW_AMAX), per column (COLUMN_AMAX), or of the tensor if neither is
// defined.
//
// Contract: x row-major, bf16, columns a multiple of 8; outputs are bits of bf16 in u32 words, 0 before the launch.
//
// One block of 8 warps per tile of ROWS rows x 256 columns; a lane owns 8 columns, a warp every eighth row, with
// PREFETCH loads in flight:
//   row      maximum over the warp (redux.sync), then atomicMax
//   column   maximum over the thread's rows, then over warps in shared memory, then atomicMax
//   tensor   maximum over the block, then one atomicMax
//
// Traffic: 2 * rows * columns bytes read. Roofline: memory.
//
// Parameters:
//   KERNEL       kernel name
//   ROWS         rows per tile: a multiple of 32
// Optional:
//   ROW_AMAX     compute the amax of each row
//   COLUMN_AMAX  compute the amax of each column

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif
#ifndef ROWS
#error "ROWS: rows per tile: a multiple of 32"
#endif

#include "float8_quant.cuh"

constexpr int COLUMNS = 256;
constexpr int WARPS = 8;
constexpr int PAIRS = 4;
constexpr int PREFETCH = 4;
static_assert(ROWS % (WARPS * PREFETCH) == 0, "a tile is a whole number of steps");

extern "C" __global__ void __launch_bounds__(WARPS * 32)
    KERNEL(const bf16 *__restrict__ x,
#ifdef ROW_AMAX
           unsigned *row_amax,
#endif
#ifdef COLUMN_AMAX
           unsigned *column_amax,
#endif
#if !defined(ROW_AMAX) && !defined(COLUMN_AMAX)
           unsigned *tensor_amax,
#endif
           u64 rows, u64 columns) {
    const unsigned tiles = ((unsigned)columns + COLUMNS - 1) / COLUMNS;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u64 column = (u64)(blockIdx.x % tiles) * COLUMNS + lane * 2 * PAIRS;
    const u64 first_row = (u64)(blockIdx.x / tiles) * ROWS;
    const bool is_inside = column < columns;

    unsigned amax[PAIRS] = {};
    for (int step = 0; step < ROWS; step += WARPS * PREFETCH) {
        uint4 vecs[PREFETCH];
#pragma unroll
        for (int i = 0; i < PREFETCH; i++) {
            const u64 row = first_row + step + i * WARPS + warp;
            vecs[i] = make_uint4(0, 0, 0, 0);
            if (is_inside && row < rows) vecs[i] = __ldg(reinterpret_cast<const uint4 *>(x + row * columns + column));
        }
#pragma unroll
        for (int i = 0; i < PREFETCH; i++) {
            const uint4 loaded = vecs[i];
            amax[0] = max_magnitude(amax[0], loaded.x);
            amax[1] = max_magnitude(amax[1], loaded.y);
            amax[2] = max_magnitude(amax[2], loaded.z);
            amax[3] = max_magnitude(amax[3], loaded.w);
#ifdef ROW_AMAX
            const u64 row = first_row + step + i * WARPS + warp;
            const unsigned pair = max_magnitude(max_magnitude(loaded.x & 0x7fff7fffu, loaded.y),
                                                max_magnitude(loaded.z & 0x7fff7fffu, loaded.w));
            const unsigned amax_of_row = __reduce_max_sync(0xffffffffu, max(pair & 0xffffu, pair >> 16));
            if (lane == 0 && row < rows) atomicMax(row_amax + row, amax_of_row);
#endif
        }
    }

#ifdef COLUMN_AMAX
    __shared__ unsigned warp_amax[WARPS][32 * PAIRS];
#pragma unroll
    for (int p = 0; p < PAIRS; p++) warp_amax[warp][lane * PAIRS + p] = amax[p];
    __syncthreads();
    if (threadIdx.x < 32 * PAIRS) {
        unsigned pair = warp_amax[0][threadIdx.x];
#pragma unroll
        for (int w = 1; w < WARPS; w++) pair = __vmaxu2(pair, warp_amax[w][threadIdx.x]);
        const u64 c = (u64)(blockIdx.x % tiles) * COLUMNS + 2 * threadIdx.x;
        if (c < columns) {
            atomicMax(column_amax + c, pair & 0xffffu);
            atomicMax(column_amax + c + 1, pair >> 16);
        }
    }
#endif
#if !defined(ROW_AMAX) && !defined(COLUMN_AMAX)
    __shared__ unsigned warp_amax[WARPS];
    unsigned pair = __vmaxu2(__vmaxu2(amax[0], amax[1]), __vmaxu2(amax[2], amax[3]));
    const unsigned amax_of_warp = __reduce_max_sync(0xffffffffu, max(pair & 0xffffu, pair >> 16));
    if (lane == 0) warp_amax[warp] = amax_of_warp;
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned block_amax = warp_amax[0];
#pragma unroll
        for (int w = 1; w < WARPS; w++) block_amax = max(block_amax, warp_amax[w]);
        atomicMax(tensor_amax, block_amax);
    }
#endif
}
