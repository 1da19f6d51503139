// Rows of x in codes, in one pass: x -> [norm or activation] -> largest magnitude -> scale -> codes[rows, STRIDE], scales[rows].
// With TENSOR defined the scale is that of all rows, which `largest_input.cu` has found.
//
// Traffic: rows * columns elements read, as many bytes written, 4 bytes a row. Roofline: memory; 4096 x 4096 of bf16 are
// 50 MB, 12 us at the 4.3 TB/s that a copy reaches on an H200. Of what comes before the codes nothing is written. What rows are
// filled up with is not touched.
#define READ_ONCE
#include "input_codes.cuh"
#include "input_row.cuh"

#if WIDTH > 1
struct __align__(WIDTH) stored_codes {
    unsigned words[WIDTH / 4];
};
#endif

__device__ __forceinline__ void store(unsigned char *to, const float (&x)[WIDTH], const encoder &encode) {
#if WIDTH > 1
    stored_codes codes;
#pragma unroll
    for (int w = 0; w < WIDTH / 4; w++) codes.words[w] = encode.four(x[4 * w], x[4 * w + 1], x[4 * w + 2], x[4 * w + 3]);
    *reinterpret_cast<stored_codes *>(to) = codes;
#else
    *to = encode.four(x[0], 0.0f, 0.0f, 0.0f);
#endif
}

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
    const encoder encode(scale);
    unsigned char *to = codes + row * STRIDE;
    input.each([&](unsigned at, const piece &held) {
        float numbers[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) numbers[i] = input.number(held.parts[i]);
        store(to + (u64)at * WIDTH, numbers, encode);
    });
}
