// RMS normalization of each row: y = x / sqrt(mean(x^2) + EPSILON) * weight (Zhang and Sennrich 2019).
//
// Contract: x[rows, columns] -> y[rows, columns], row-major, element dtype; weight[columns], f32 or element dtype.
//
// Thread layout as in layer_norm.cu: VECTORS_PER_THREAD vectors of a row per thread in registers, blockDim = (THREADS,
// ROWS). One block-wide sum of squares (row_reduce.cuh), then the scaling from registers.
//
// Traffic: x and y once (x twice with VECTORS_PER_THREAD 0); the weight stays in the caches. Roofline: memory, 6
// instructions per element.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH               elements per vector access (element.cuh)
//   KERNEL              kernel name
//   THREADS             threads per row: whole warps
//   ROWS                rows per block
//   VECTORS_PER_THREAD  vectors of a row per thread in registers; 0 if the row is too long
//   EPSILON             float that is added to the variance
//   WEIGHT_F32          1 if the weight is f32, 0 if it has the element dtype (norm_weight.cuh)

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif
#ifndef THREADS
#error "THREADS: threads per row: whole warps"
#endif
#ifndef ROWS
#error "ROWS: rows per block"
#endif
#ifndef VECTORS_PER_THREAD
#error "VECTORS_PER_THREAD: vectors of a row per thread in registers"
#endif
#ifndef EPSILON
#error "EPSILON: float that is added to the variance"
#endif

#include "element.cuh"
#include "norm_weight.cuh"
#include "row_reduce.cuh"

__device__ __forceinline__ vec normalize(vec x, float rrms, weight_vec weight) {
    float results[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; i++) results[i] = widen(x.val[i]) * rrms * widen_weight(weight.val[i]);
    return narrow_all(results);
}

extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
    KERNEL(const element *__restrict__ x, const weight_element *__restrict__ weight, element *__restrict__ y, u64 rows,
           u64 columns) {
    __shared__ sum_array<1> shared[ROWS][WARPS];
    const u64 row = (u64)blockIdx.x * ROWS + threadIdx.y;
    // Threads beyond the last row have no vectors, but take part in the barrier.
    const unsigned vecs = row < rows ? columns / WIDTH : 0;
    const vec *x_row = reinterpret_cast<const vec *>(x + row * columns);
    const weight_vec *weights = reinterpret_cast<const weight_vec *>(weight);
    vec *y_row = reinterpret_cast<vec *>(y + row * columns);

    float squares = 0.0f;
#if VECTORS_PER_THREAD > 0
    vec cached[VECTORS_PER_THREAD];
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        const unsigned v = p * THREADS + threadIdx.x;
        if (v < vecs) cached[p] = x_row[v];
    }
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        if (p * THREADS + threadIdx.x < vecs) {
#pragma unroll
            for (int i = 0; i < WIDTH; i++) squares = fmaf(widen(cached[p].val[i]), widen(cached[p].val[i]), squares);
        }
    }
#else
    for (unsigned v = threadIdx.x; v < vecs; v += THREADS) {
        const vec loaded = x_row[v];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) squares = fmaf(widen(loaded.val[i]), widen(loaded.val[i]), squares);
    }
#endif
    const float mean = row_sum<1>({squares}, shared).val[0] / (float)columns;
    const float rrms = 1.0f / sqrtf(mean + EPSILON);

#if VECTORS_PER_THREAD > 0
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        const unsigned v = p * THREADS + threadIdx.x;
        if (v < vecs) y_row[v] = normalize(cached[p], rrms, weights[v]);
    }
#else
    for (unsigned v = threadIdx.x; v < vecs; v += THREADS) y_row[v] = normalize(x_row[v], rrms, weights[v]);
#endif
}
