// Layer normalization of each row without weights: y = (x - mean) / sqrt(variance + EPSILON), with the population
// variance (Ba, Kiros and Hinton 2016).
//
// Contract: x[rows, columns] -> y[rows, columns], row-major, element dtype; rows are whole vectors.
//
// A row is distributed over THREADS threads, vector by vector, and stays in registers; statistics take two passes over
// the registers (row_statistics.cuh):
//
//   row r:  | t0 | t1 | ... | tT-1 | t0 | t1 | ... | tT-1 | ...     vectors of WIDTH elements, T = THREADS
//           |<----- vector 0 ----->|<----- vector 1 ----->|  ...    up to VECTORS_PER_THREAD vectors per thread
//   block:  blockDim = (THREADS, ROWS), one row per threadIdx.y
//
// Traffic: x and y once; with VECTORS_PER_THREAD 0 x is read three times. Roofline: memory, a handful of instructions
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
#include "row_statistics.cuh"

extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
    KERNEL(const element *__restrict__ x, element *__restrict__ y, u64 rows, u64 columns) {
    __shared__ float2 shared_sums[ROWS][WARPS];
    __shared__ float2 shared_deviations[ROWS][WARPS];

    const u64 row = (u64)blockIdx.x * ROWS + threadIdx.y;
    // Threads beyond the last row have no vectors, but take part in the barriers.
    const u64 vecs = row < rows ? columns / WIDTH : 0;
    const vec *x_row = reinterpret_cast<const vec *>(x + row * columns);
    vec *y_row = reinterpret_cast<vec *>(y + row * columns);
    const float count = (float)columns;

#if VECTORS_PER_THREAD > 0

    float values[VECTORS_PER_THREAD][WIDTH];
    float2 sum = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        const u64 v = p * THREADS + threadIdx.x;
        if (v < vecs) {
            const vec loaded = x_row[v];
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                values[p][i] = widen(loaded.val[i]);
                sum.x += values[p][i];
            }
        }
    }
    const float approx_mean = row_sum(sum, shared_sums).x / count;

    sum = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        if (p * THREADS + threadIdx.x < vecs) {
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                const float deviation = values[p][i] - approx_mean;
                sum.x += deviation;
                sum.y += deviation * deviation;
            }
        }
    }
    const row_stats stats = finish_stats(approx_mean, row_sum(sum, shared_deviations), count);

#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        const u64 v = p * THREADS + threadIdx.x;
        if (v < vecs) {
            vec result;
#pragma unroll
            for (int i = 0; i < WIDTH; i++) result.val[i] = narrow((values[p][i] - stats.mean) * stats.rstd);
            y_row[v] = result;
        }
    }

#else

    float2 sum = make_float2(0.0f, 0.0f);
    for (u64 v = threadIdx.x; v < vecs; v += THREADS) {
        const vec loaded = x_row[v];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) sum.x += widen(loaded.val[i]);
    }
    const float approx_mean = row_sum(sum, shared_sums).x / count;

    sum = make_float2(0.0f, 0.0f);
    for (u64 v = threadIdx.x; v < vecs; v += THREADS) {
        const vec loaded = x_row[v];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            const float deviation = widen(loaded.val[i]) - approx_mean;
            sum.x += deviation;
            sum.y += deviation * deviation;
        }
    }
    const row_stats stats = finish_stats(approx_mean, row_sum(sum, shared_deviations), count);

    for (u64 v = threadIdx.x; v < vecs; v += THREADS) {
        vec loaded = x_row[v];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            loaded.val[i] = narrow((widen(loaded.val[i]) - stats.mean) * stats.rstd);
        }
        y_row[v] = loaded;
    }

#endif
}
