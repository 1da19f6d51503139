// The scale of a whole x[rows, columns]: each block takes rows in turn, x -> [norm or activation] -> largest magnitude, and the
// block that comes last makes the scale of what all have found.
//
// Traffic: rows * columns elements read; an x that fits into the L2 cache stays there for `quantise_input.cu`, which reads
// it again. Roofline: memory. `state` is the largest so far and the number of blocks that are done, both 0 before and after.
#include "input_row.cuh"

extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
    KERNEL(const element *__restrict__ x, float *__restrict__ scale, unsigned *state, u64 rows, u64 columns) {
    unsigned largest = 0;
    const u64 turns = (rows + ROWS - 1) / ROWS;
    // The last come first: they were written last, so that a cache may still have them.
    for (u64 turn = blockIdx.x; turn < turns; turn += gridDim.x) {
        input_row input;
        input.load(x, (turns - 1 - turn) * ROWS + threadIdx.y, rows, columns);
        largest = max(largest, input.largest());
#ifdef RMS_NORM
        // The sums that its threads share are those of the next row then.
        __syncthreads();
#endif
    }

    __shared__ unsigned of_warps[ROWS * WARPS];
    largest = __reduce_max_sync(0xffffffffu, largest);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.y * WARPS + threadIdx.x / 32] = largest;
    __syncthreads();
    if (threadIdx.x != 0 || threadIdx.y != 0) return;
#pragma unroll
    for (int w = 1; w < ROWS * WARPS; w++) largest = max(largest, of_warps[w]);
    atomicMax(state, largest);
    __threadfence();
    if (atomicAdd(state + 1, 1u) != gridDim.x - 1) return;
    __threadfence();
    *scale = scale_of(atomicExch(state, 0u));
    state[1] = 0;
}
