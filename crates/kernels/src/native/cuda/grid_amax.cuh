// Quantization scale of a whole tensor, in the launch that computes its amax: the block that arrives last converts the
// amax of all blocks to the scale.
//
// Workspace: `state` holds the running amax (as bits) and the number of finished blocks; both are 0 before and after
// each launch.
//
// Parameters: those of dynamic_quant.cuh.
#pragma once
#include "dynamic_quant.cuh"

// Every thread of a block of BLOCK_WARPS whole warps calls it with its amax, as bits.
template <int BLOCK_WARPS>
__device__ __forceinline__ void write_grid_scale(unsigned amax, float *scale, unsigned *state) {
    __shared__ unsigned warp_amax[BLOCK_WARPS];
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    amax = __reduce_max_sync(0xffffffffu, amax);
    if (thread % 32 == 0) warp_amax[thread / 32] = amax;
    __syncthreads();
    if (thread != 0) return;
#pragma unroll
    for (int w = 1; w < BLOCK_WARPS; w++) amax = max(amax, warp_amax[w]);
    atomicMax(state, amax);
    __threadfence();
    if (atomicAdd(state + 1, 1u) != gridDim.x - 1) return;
    __threadfence();
    *scale = scale_from_amax(atomicExch(state, 0u));
    state[1] = 0;
}
