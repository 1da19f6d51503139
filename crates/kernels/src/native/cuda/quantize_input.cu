// Rows of x in codes, in one pass: x -> [norm or activation] -> largest magnitude -> scale -> codes[rows, STRIDE], scales[rows].
// With TENSOR defined the scale is that of all rows, which `largest_input.cu` has found.
//
// With STAGES defined BLOCKS of a multiprocessor take rows in turn, ROWS at a time, from their memory, where copies of the next
// STAGES are on their way meanwhile: where numbers take long to make, memory need not wait for them.
//
// Traffic: rows * columns elements read, as many bytes written, 4 bytes a row. Roofline: memory; 4096 x 4096 of bf16 are
// 50 MB, 12 us at the 4.3 TB/s that a copy reaches on an H200. Of what comes before the codes nothing is written. What rows are
// filled up with is not touched.
#ifndef STAGES
#define BLOCKS 1
#define READ_ONCE
#endif
#include "input_row.cuh"
#ifdef STAGES
#include "hopper.cuh"
#endif

#ifndef TENSOR
// The largest over all threads of a row, given to each of them. Every thread of the block must call it.
__device__ __forceinline__ unsigned row_largest(unsigned largest) {
    __shared__ unsigned of_warps[ROWS][WARPS];
    largest = __reduce_max_sync(0xffffffffu, largest);
    if (WARPS == 1) return largest;
    const int lane = threadIdx.x % 32;
    if (lane == 0) of_warps[threadIdx.y][threadIdx.x / 32] = largest;
    __syncthreads();
    return __reduce_max_sync(0xffffffffu, lane < WARPS ? of_warps[threadIdx.y][lane] : 0u);
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS * ROWS, BLOCKS)
    KERNEL(const element *__restrict__ x,
#ifdef TENSOR
           const float *__restrict__ scale_of_all, unsigned char *__restrict__ codes,
#else
           unsigned char *__restrict__ codes, float *__restrict__ scales,
#endif
           u64 rows, u64 columns) {
    const u64 turns = (rows + ROWS - 1) / ROWS;
    // Where the rows of a turn begin: with LAST_FIRST those come first that were written last, so that a cache may still have them.
    const auto first_of = [&](u64 turn) { return (LAST_FIRST ? turns - 1 - turn : turn) * ROWS; };
    const auto finish = [&](input_row &input, u64 row) {
        input.prepare((float)columns);
#ifdef TENSOR
        const float scale = *scale_of_all;
#else
        const float scale = scale_of(row_largest(input.largest()));
        if (row < rows && threadIdx.x == 0) scales[row] = scale;
#endif
        input.store(codes + row * STRIDE, encoder(scale));
    };
#ifdef STAGES
    extern __shared__ __align__(128) unsigned char shared[];
    __shared__ __align__(8) u64 barriers[STAGES];
    const bool leads = threadIdx.x == 0 && threadIdx.y == 0;
    const unsigned ready = shared_address(barriers), row_bytes = (unsigned)columns * sizeof(element);
    const auto bring = [&](u64 turn, int stage) {
        if (turn >= turns) return;
        const u64 first = first_of(turn), left = rows - first;
        const unsigned bytes = (left < ROWS ? (unsigned)left : ROWS) * row_bytes;
        expect(ready + 8 * stage, bytes);
        bring_bytes(shared_address(shared) + stage * ROWS * row_bytes, x + first * columns, bytes, ready + 8 * stage);
    };
    if (leads) {
        for (int stage = 0; stage < STAGES; stage++) initialize(ready + 8 * stage, 1);
    }
    show_barriers();
    if (leads) {
        for (int stage = 0; stage < STAGES; stage++) bring(blockIdx.x + (u64)stage * gridDim.x, stage);
    }
    place<STAGES> at = {0, 0};
    for (u64 turn = blockIdx.x; turn < turns; turn += gridDim.x, at.next()) {
        wait(ready + 8 * at.stage, at.round % 2);
        input_row input;
        const element *const there = reinterpret_cast<const element *>(shared + at.stage * ROWS * row_bytes);
        const u64 first = first_of(turn);
        input.take(there, threadIdx.y, rows - first, columns);
        // All have taken theirs: the next may come to this place.
        __syncthreads();
        if (leads) bring(turn + (u64)STAGES * gridDim.x, at.stage);
        finish(input, first + threadIdx.y);
    }
#else
    const u64 row = first_of(blockIdx.x) + threadIdx.y;
    input_row input;
    input.take(x, row, rows, columns);
    finish(input, row);
#endif
}
