// The mean and the spread of a row that THREADS threads (whole warps) hold together, for each of ROWS rows of a block.
//
// The statistics take two passes: a mean, then the sums of the differences from it and of their squares. The first of
// these would be zero in exact arithmetic; it corrects what rounding did to the mean, which matters when the mean is
// large and the spread is not.
#pragma once

constexpr int WARPS = THREADS / 32;

// As many lanes as there are warps, in a power of two.
constexpr int LANES = WARPS > 16 ? 32 : WARPS > 8 ? 16 : WARPS > 4 ? 8 : WARPS > 2 ? 4 : WARPS;

template <int AMONG> __device__ __forceinline__ float sum_of(float value) {
#pragma unroll
    for (int distance = AMONG / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

template <int AMONG> __device__ __forceinline__ float2 sum_of(float2 value) {
    return make_float2(sum_of<AMONG>(value.x), sum_of<AMONG>(value.y));
}

// The sum over all threads of a row, given to each of them: of a float or of two. Every thread of the block must call it.
template <class Sum> __device__ __forceinline__ Sum row_sum(Sum value, Sum (&shared)[ROWS][WARPS]) {
    value = sum_of<32>(value);
    if (WARPS == 1) return value;
    const int lane = threadIdx.x % 32;
    if (lane == 0) shared[threadIdx.y][threadIdx.x / 32] = value;
    __syncthreads();
    const int from = lane % LANES;
    return sum_of<LANES>(from < WARPS ? shared[threadIdx.y][from] : Sum{});
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
