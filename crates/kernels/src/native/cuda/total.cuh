// One f32 number of a whole grid: the sum of what all threads have, in an order that is always the same.
//
// Each block leaves its part in `parts`, which has room for as many as there are blocks; the last to arrive adds them up.
// `arrived` is 0 before a launch and after it.
#pragma once

__device__ __forceinline__ float warp_total(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

// Of a block of so many warps, for its first thread. Every thread of the block must call it.
template <int WARPS> __device__ __forceinline__ float block_total(float value, int thread) {
    __shared__ float totals[WARPS];
    // What was left by an earlier call has been read.
    __syncthreads();
    value = warp_total(value);
    if (thread % 32 == 0) totals[thread / 32] = value;
    __syncthreads();
    return thread < 32 ? warp_total(thread < WARPS ? totals[thread] : 0.0f) : 0.0f;
}

// Whether this is the first thread of the last block, which alone is given the total.
template <int WARPS>
__device__ __forceinline__ bool grid_total(float &value, int thread, float *parts, unsigned *arrived) {
    __shared__ bool last;
    const float part = block_total<WARPS>(value, thread);
    if (thread == 0) {
        parts[blockIdx.x] = part;
        __threadfence();
        last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return false;
    __threadfence();
    float sum = 0.0f;
    for (unsigned at = thread; at < gridDim.x; at += WARPS * 32) sum += __ldcg(parts + at);
    value = block_total<WARPS>(sum, thread);
    if (thread == 0) *arrived = 0;
    return thread == 0;
}
