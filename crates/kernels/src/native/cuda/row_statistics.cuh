// The mean and the spread of a row that THREADS threads (whole warps) hold together, for each of ROWS rows of a block.
//
// The statistics take two passes: a mean, then the sums of the differences from it and of their squares. The first of
// these would be zero in exact arithmetic; it corrects what rounding did to the mean, which matters when the mean is
// large and the spread is not.
#pragma once

constexpr int WARPS = THREADS / 32;

__device__ __forceinline__ float2 warp_sum(float2 value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        value.x += __shfl_xor_sync(0xffffffffu, value.x, distance);
        value.y += __shfl_xor_sync(0xffffffffu, value.y, distance);
    }
    return value;
}

// The sum over all threads of a row, given to each of them. Every thread of the block must call it.
__device__ __forceinline__ float2 row_sum(float2 value, float2 (&shared)[ROWS][WARPS]) {
    value = warp_sum(value);
    if (WARPS == 1) return value;
    const int lane = threadIdx.x % 32;
    if (lane == 0) shared[threadIdx.y][threadIdx.x / 32] = value;
    __syncthreads();
    return warp_sum(lane < WARPS ? shared[threadIdx.y][lane] : make_float2(0.0f, 0.0f));
}

struct statistics {
    float mean;
    float scale;
};

__device__ __forceinline__ statistics from_sums(float rough_mean, float2 differences, float count) {
    const float correction = differences.x / count;
    const float variance = fmaxf(differences.y / count - correction * correction, 0.0f);
    return {rough_mean + correction, 1.0f / sqrtf(variance + EPSILON)};
}
