// Block-wide sums of several values per row, for rows that are distributed over THREADS threads each.
//
// Reduction: warp shuffle, one shared-memory slot per warp, then a second shuffle over the slots.
//
// Parameters:
//   THREADS  threads per row: whole warps (blockDim.x)
//   ROWS     rows per block (blockDim.y)
#pragma once

#ifndef THREADS
#error "THREADS: threads per row"
#endif
#ifndef ROWS
#error "ROWS: rows per block"
#endif

constexpr int WARPS = THREADS / 32;

// Values that are summed independently of each other.
template <int COUNT> struct sum_array {
    float val[COUNT];
};

template <int COUNT> __device__ __forceinline__ sum_array<COUNT> warp_sum(sum_array<COUNT> sums) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
#pragma unroll
        for (int i = 0; i < COUNT; i++) sums.val[i] += __shfl_xor_sync(0xffffffffu, sums.val[i], distance);
    }
    return sums;
}

// Sums over all threads of a row, returned to each of them. Every thread of the block must call it. `shared` may be
// reused after another barrier.
template <int COUNT>
__device__ __forceinline__ sum_array<COUNT> row_sum(sum_array<COUNT> sums, sum_array<COUNT> (&shared)[ROWS][WARPS]) {
    sums = warp_sum(sums);
    if (WARPS == 1) return sums;
    const int lane = threadIdx.x % 32;
    if (lane == 0) shared[threadIdx.y][threadIdx.x / 32] = sums;
    __syncthreads();
    return warp_sum(lane < WARPS ? shared[threadIdx.y][lane] : sum_array<COUNT>{});
}
