// Digests of a matrix that stays on the device, for correctness checks: samples, non-finite elements, and sums of rows
// and columns with pseudo-random signs (Rademacher projection: changes of several elements are unlikely to cancel).
//
// Kernels, for x[rows, cols], row-major, element dtype:
//   gather_samples   y[i, j] = x[row_indices[i], col_indices[j]], f32
//   count_nonfinite  found[0] = smallest index of a non-finite element, all ones before; found[1] += count
//   row_digests      y[row] = (sum of +-x, sum of x^2) in f64; one block per row
//   col_digests      y[slice, col] = (sum of +-x, sum of x^2) in f64 over ROWS_PER_SLICE rows; the host adds the slices
//
// Traffic: gather_samples one sector per sample, the others x once. Roofline: memory, or the f64 units for the sums.
// f64 is used because the square of an f32 is exact in it.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH                elements per vector access (element.cuh)
//   THREADS              threads per block: a power of two
//   ELEMENTS_PER_THREAD  elements per thread of count_nonfinite
//   ROWS_PER_SLICE       rows per block of col_digests

#ifndef THREADS
#error "THREADS: threads per block: a power of two"
#endif
#ifndef ELEMENTS_PER_THREAD
#error "ELEMENTS_PER_THREAD: elements per thread of count_nonfinite"
#endif
#ifndef ROWS_PER_SLICE
#error "ROWS_PER_SLICE: rows per block of col_digests"
#endif

#include "element.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    gather_samples(const element *__restrict__ x, const unsigned *__restrict__ row_indices,
                   const unsigned *__restrict__ col_indices, float *__restrict__ y, u64 cols, u64 sampled_cols) {
    const u64 column_blocks = (sampled_cols + THREADS - 1) / THREADS;
    const u64 row = blockIdx.x / column_blocks, index = blockIdx.x % column_blocks * THREADS + threadIdx.x;
    if (index < sampled_cols) y[row * sampled_cols + index] = widen(x[row_indices[row] * cols + col_indices[index]]);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    count_nonfinite(const element *__restrict__ x, u64 *__restrict__ found, u64 count, u64) {
    u64 first = ~0ull, count_here = 0;
    const u64 start = (u64)blockIdx.x * (THREADS * ELEMENTS_PER_THREAD) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < ELEMENTS_PER_THREAD; i++) {
        const u64 index = start + i * THREADS;
        if (index >= count || (__float_as_uint(widen(x[index])) & 0x7f800000u) != 0x7f800000u) continue;
        first = first < index ? first : index;
        count_here++;
    }
    if (count_here == 0) return;
    atomicMin(found, first);
    atomicAdd(found + 1, count_here);
}

// Negates the value if the hash of its index (finalizer of SplitMix64, shortened) is odd.
__device__ __forceinline__ double with_random_sign(u64 index, double value) {
    u64 hash = (index + 1) * 0x9e3779b97f4a7c15ull;
    hash = (hash ^ (hash >> 29)) * 0xbf58476d1ce4e5b9ull;
    return (hash ^ (hash >> 32)) & 1 ? -value : value;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    row_digests(const element *__restrict__ x, double2 *__restrict__ y, u64 rows, u64 cols) {
    __shared__ double2 partials[THREADS];
    double2 sum = {0.0, 0.0};
    for (u64 col = threadIdx.x; col < cols; col += THREADS) {
        const double value = widen(x[blockIdx.x * cols + col]);
        sum.x += with_random_sign(col, value);
        sum.y += value * value;
    }
    partials[threadIdx.x] = sum;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x >= half) continue;
        partials[threadIdx.x].x += partials[threadIdx.x + half].x;
        partials[threadIdx.x].y += partials[threadIdx.x + half].y;
    }
    if (threadIdx.x == 0) y[blockIdx.x] = partials[0];
}

extern "C" __global__ void __launch_bounds__(THREADS)
    col_digests(const element *__restrict__ x, double2 *__restrict__ y, u64 rows, u64 cols) {
    const u64 column_blocks = (cols + THREADS - 1) / THREADS;
    const u64 slice = blockIdx.x / column_blocks, col = blockIdx.x % column_blocks * THREADS + threadIdx.x;
    if (col >= cols) return;
    double2 sum = {0.0, 0.0};
    const u64 end = (slice + 1) * ROWS_PER_SLICE < rows ? (slice + 1) * ROWS_PER_SLICE : rows;
    for (u64 row = slice * ROWS_PER_SLICE; row < end; row++) {
        const double value = widen(x[row * cols + col]);
        sum.x += with_random_sign(row, value);
        sum.y += value * value;
    }
    y[slice * cols + col] = sum;
}
