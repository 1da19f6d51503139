// Backward pass of layer normalization without weights. With r = 1 / sqrt(variance + EPSILON) and h = r (x - mean) per
// row:
//   dx = r (dy - mean(dy) - h mean(dy h))
//
// Contract: x, dy -> dx[rows, columns], row-major, element dtype; rows are whole vectors.
//
// Thread layout as in layer_norm.cu: VECTORS_PER_THREAD vectors of x and of dy per thread in registers. Pass 1 computes
// the mean. Pass 2 sums deviations d, d^2, dy and dy d in one block-wide reduction of four values (corrected two-pass,
// row_statistics.cuh).
//
// Traffic: x, dy and dx once (x three times and dy twice with VECTORS_PER_THREAD 0). Roofline: memory, 15 instructions
// per element.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH               elements per vector access (element.cuh)
//   KERNEL              kernel name
//   THREADS             threads per row: whole warps
//   ROWS                rows per block
//   VECTORS_PER_THREAD  vectors of a row per thread in registers; 0 if the row is too long
//   EPSILON             float that is added to the variance

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
#include "row_reduce.cuh"

__device__ __forceinline__ float vec_sum(vec x) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) sum += widen(x.val[i]);
    return sum;
}

// Sums of deviations from the approximate mean, their squares, dy, and dy times the deviations.
__device__ __forceinline__ void accumulate(sum_array<4> &sums, vec x, vec dy, float approx_mean) {
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        const float deviation = widen(x.val[i]) - approx_mean, upstream = widen(dy.val[i]);
        sums.val[0] += deviation;
        sums.val[1] = fmaf(deviation, deviation, sums.val[1]);
        sums.val[2] += upstream;
        sums.val[3] = fmaf(upstream, deviation, sums.val[3]);
    }
}

__device__ __forceinline__ vec input_grad(vec x, vec dy, float mean, float rstd, float mean_dy, float mean_dy_h) {
    float results[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        const float normalized = (widen(x.val[i]) - mean) * rstd;
        results[i] = rstd * (widen(dy.val[i]) - mean_dy - normalized * mean_dy_h);
    }
    return narrow_all(results);
}

extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
    KERNEL(const element *__restrict__ x, const element *__restrict__ dy, element *__restrict__ dx, u64 rows,
           u64 columns) {
    __shared__ sum_array<1> shared_sum[ROWS][WARPS];
    __shared__ sum_array<4> shared_sums[ROWS][WARPS];
    const u64 row = (u64)blockIdx.x * ROWS + threadIdx.y;
    // Threads beyond the last row have no vectors, but take part in the barriers.
    const unsigned vecs = row < rows ? columns / WIDTH : 0;
    const vec *x_row = reinterpret_cast<const vec *>(x + row * columns);
    const vec *dy_row = reinterpret_cast<const vec *>(dy + row * columns);
    vec *dx_row = reinterpret_cast<vec *>(dx + row * columns);
    const float count = (float)columns;

    float sum = 0.0f;
#if VECTORS_PER_THREAD > 0
    vec values[VECTORS_PER_THREAD], upstreams[VECTORS_PER_THREAD];
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        const unsigned v = p * THREADS + threadIdx.x;
        if (v < vecs) {
            values[p] = x_row[v];
            upstreams[p] = dy_row[v];
        }
    }
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        if (p * THREADS + threadIdx.x < vecs) sum += vec_sum(values[p]);
    }
#else
    for (unsigned v = threadIdx.x; v < vecs; v += THREADS) sum += vec_sum(x_row[v]);
#endif
    const float approx_mean = row_sum<1>({sum}, shared_sum).val[0] / count;

    sum_array<4> sums = {};
#if VECTORS_PER_THREAD > 0
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        if (p * THREADS + threadIdx.x < vecs) accumulate(sums, values[p], upstreams[p], approx_mean);
    }
#else
    for (unsigned v = threadIdx.x; v < vecs; v += THREADS) accumulate(sums, x_row[v], dy_row[v], approx_mean);
#endif
    sums = row_sum(sums, shared_sums);
    const float correction = sums.val[0] / count, mean_dy = sums.val[2] / count;
    const float variance = fmaxf(sums.val[1] / count - correction * correction, 0.0f);
    const float mean = approx_mean + correction, rstd = 1.0f / sqrtf(variance + EPSILON);
    const float mean_dy_h = rstd * (sums.val[3] / count - correction * mean_dy);

#if VECTORS_PER_THREAD > 0
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        const unsigned v = p * THREADS + threadIdx.x;
        if (v < vecs) dx_row[v] = input_grad(values[p], upstreams[p], mean, rstd, mean_dy, mean_dy_h);
    }
#else
    for (unsigned v = threadIdx.x; v < vecs; v += THREADS) {
        dx_row[v] = input_grad(x_row[v], dy_row[v], mean, rstd, mean_dy, mean_dy_h);
    }
#endif
}
