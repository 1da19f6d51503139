// Deterministic sum of one f32 per thread over the whole grid, in a single launch.
//
// Each block writes its partial sum, executes a fence, and increments a counter; the block that arrives last adds the
// partial sums in block order (pattern of the CUDA sample threadFenceReduction).
//
// Workspace: `partials` has one f32 per block; `arrived` is a counter that is 0 before and after each launch.
//
// Parameters: none.
#pragma once

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

// Sum over a block of WARPS warps, returned to its first warp. Every thread of the block must call it.
template <int WARPS> __device__ __forceinline__ float block_sum(float value, int thread) {
    __shared__ float warp_sums[WARPS];
    // All reads of an earlier call are complete.
    __syncthreads();
    value = warp_sum(value);
    if (thread % 32 == 0) warp_sums[thread / 32] = value;
    __syncthreads();
    return thread < 32 ? warp_sum(thread < WARPS ? warp_sums[thread] : 0.0f) : 0.0f;
}

// Returns true to the first thread of the last block; only for that thread `value` becomes the sum over the grid.
template <int WARPS>
__device__ __forceinline__ bool grid_sum(float &value, int thread, float *partials, unsigned *arrived) {
    __shared__ bool is_last;
    const float partial = block_sum<WARPS>(value, thread);
    if (thread == 0) {
        partials[blockIdx.x] = partial;
        __threadfence();
        is_last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return false;
    __threadfence();
    float sum = 0.0f;
    for (unsigned block = thread; block < gridDim.x; block += WARPS * 32) sum += __ldcg(partials + block);
    value = block_sum<WARPS>(sum, thread);
    if (thread == 0) *arrived = 0;
    return thread == 0;
}
