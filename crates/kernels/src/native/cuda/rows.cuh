// What the threads of a row have in common: a block is THREADS threads (whole warps) for each of ROWS rows.
#pragma once

constexpr int WARPS = THREADS / 32;

// A number, or several, of which sums are taken one by one.
template <int COUNT> struct numbers {
    float of[COUNT];
};

template <int COUNT> __device__ __forceinline__ numbers<COUNT> warp_sum(numbers<COUNT> value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
#pragma unroll
        for (int i = 0; i < COUNT; i++) value.of[i] += __shfl_xor_sync(0xffffffffu, value.of[i], distance);
    }
    return value;
}

// The sum over all threads of a row, given to each of them. Every thread of the block must call it; what is shared may be
// used again once all of them have passed another barrier.
template <int COUNT>
__device__ __forceinline__ numbers<COUNT> row_sum(numbers<COUNT> value, numbers<COUNT> (&shared)[ROWS][WARPS]) {
    value = warp_sum(value);
    if (WARPS == 1) return value;
    const int lane = threadIdx.x % 32;
    if (lane == 0) shared[threadIdx.y][threadIdx.x / 32] = value;
    __syncthreads();
    return warp_sum(lane < WARPS ? shared[threadIdx.y][lane] : numbers<COUNT>{});
}
