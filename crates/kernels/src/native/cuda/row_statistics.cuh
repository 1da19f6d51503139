// Mean and reciprocal standard deviation of rows that are distributed over THREADS threads each.
//
// Corrected two-pass algorithm (Chan, Golub and LeVeque 1983): pass 1 computes the mean; pass 2 sums the deviations d
// from it and their squares. The sum of deviations is zero in exact arithmetic; it corrects the rounding error of the
// mean, which matters if the mean is large relative to the spread:
//   variance = sum(d^2) / n - (sum(d) / n)^2
//
// Reduction: warp shuffle, one shared-memory slot per warp, then a second shuffle over the slots.
//
// Parameters:
//   THREADS  threads per row: whole warps (blockDim.x)
//   ROWS     rows per block (blockDim.y)
//   EPSILON  float that is added to the variance
#pragma once

#ifndef THREADS
#error "THREADS: threads per row"
#endif
#ifndef ROWS
#error "ROWS: rows per block"
#endif
#ifndef EPSILON
#error "EPSILON: float that is added to the variance"
#endif

constexpr int WARPS = THREADS / 32;

// Number of warps, rounded up to a power of two.
constexpr int SLOT_LANES = WARPS > 16 ? 32 : WARPS > 8 ? 16 : WARPS > 4 ? 8 : WARPS > 2 ? 4 : WARPS;

// Butterfly sum over groups of LANES lanes.
template <int LANES> __device__ __forceinline__ float shuffle_sum(float value) {
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

template <int LANES> __device__ __forceinline__ float2 shuffle_sum(float2 value) {
    return make_float2(shuffle_sum<LANES>(value.x), shuffle_sum<LANES>(value.y));
}

// Sum over all threads of a row, returned to each of them; for float and float2. Every thread of the block must call
// it.
template <class Sum> __device__ __forceinline__ Sum row_sum(Sum value, Sum (&shared)[ROWS][WARPS]) {
    value = shuffle_sum<32>(value);
    if (WARPS == 1) return value;
    const int lane = threadIdx.x % 32;
    if (lane == 0) shared[threadIdx.y][threadIdx.x / 32] = value;
    __syncthreads();
    const int slot = lane % SLOT_LANES;
    return shuffle_sum<SLOT_LANES>(slot < WARPS ? shared[threadIdx.y][slot] : Sum{});
}

struct row_stats {
    float mean;
    // Reciprocal standard deviation, or reciprocal root mean square.
    float rstd;
};

// Statistics from the mean of pass 1 and from the sums (x: deviations, y: squared deviations) of pass 2.
__device__ __forceinline__ row_stats finish_stats(float approx_mean, float2 deviations, float count) {
    const float correction = deviations.x / count;
    const float variance = fmaxf(deviations.y / count - correction * correction, 0.0f);
    return {approx_mean + correction, 1.0f / sqrtf(variance + EPSILON)};
}
