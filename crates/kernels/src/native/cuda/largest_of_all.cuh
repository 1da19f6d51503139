// The scale of all that a launch has looked at: the block that comes last makes it of what all have found.
//
// `state` is the largest so far and the number of blocks that are done, both 0 before and after.
#pragma once
#include "input_codes.cuh"

// Every thread of a block of BLOCK_WARPS whole warps calls it with the largest magnitude that it has found, as bits.
template <int BLOCK_WARPS>
__device__ __forceinline__ void scale_of_all(unsigned largest, float *scale, unsigned *state) {
    __shared__ unsigned of_warps[BLOCK_WARPS];
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    largest = __reduce_max_sync(0xffffffffu, largest);
    if (thread % 32 == 0) of_warps[thread / 32] = largest;
    __syncthreads();
    if (thread != 0) return;
#pragma unroll
    for (int w = 1; w < BLOCK_WARPS; w++) largest = max(largest, of_warps[w]);
    atomicMax(state, largest);
    __threadfence();
    if (atomicAdd(state + 1, 1u) != gridDim.x - 1) return;
    __threadfence();
    *scale = scale_of(atomicExch(state, 0u));
    state[1] = 0;
}
