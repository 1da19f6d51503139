// Rows of x in codes, in one pass: x -> [norm or activation] -> largest magnitude -> scale -> codes[rows, STRIDE], scales[rows].
// With TENSOR defined the scale is that of all rows, which `largest_input.cu` has found.
//
// Traffic: rows * columns elements read, as many bytes written, 4 bytes a row. Roofline: memory; 4096 x 4096 of bf16 are
// 50 MB, 12 us at the 4.3 TB/s that a copy reaches on an H200. Of what comes before the codes nothing is written. What rows are
// filled up with is not touched.
#define READ_ONCE
#include "input_row.cuh"

#ifndef TENSOR
// The largest over all threads of a row, given to each of them. Every thread of the block must call it.
__device__ __forceinline__ unsigned row_largest(unsigned largest) {
    __shared__ unsigned of_warps[ROWS][WARPS];
    largest = __reduce_max_sync(0xffffffffu, largest);
    if (WARPS == 1) return largest;
    const int lane = threadIdx.x % 32;
    if (lane == 0) of_warps[threadIdx.y][threadIdx.x / 32] = largest;
    __syncthreads();
    return __reduce_max_sync(0xffffffffu, lane < WARPS ? of_warps[threadIdx.y][lane] : 0u);
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
    KERNEL(const element *__restrict__ x,
#ifdef TENSOR
           const float *__restrict__ scale_of_all, unsigned char *__restrict__ codes,
#else
           unsigned char *__restrict__ codes, float *__restrict__ scales,
#endif
           u64 rows, u64 columns) {
    const u64 row = (u64)blockIdx.x * ROWS + threadIdx.y;
    input_row input;
    input.load(x, row, rows, columns);
#ifdef TENSOR
    const float scale = *scale_of_all;
#else
    const float scale = scale_of(row_largest(input.largest()));
    if (row < rows && threadIdx.x == 0) scales[row] = scale;
#endif
    input.store(codes + row * STRIDE, encoder(scale));
}
