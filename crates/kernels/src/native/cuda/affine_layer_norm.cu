// Layer normalization of each row with weight and bias per column, optional residual addition and activation:
//   y = ACTIVATE((x - mean) / sqrt(variance + EPSILON) * weight + bias), with the population variance.
// With RESIDUAL 1 the input is sum = x + addend; statistics use the unrounded sum, which is also written.
//
// Contract: x, addend, sum, y[rows, columns], row-major; weight, bias[columns]; all in the element dtype.
//
// Thread layout as in layer_norm.cu: VECTORS_PER_THREAD vectors of a row per thread in registers, blockDim = (THREADS,
// ROWS). For 16-bit elements the correction of the mean is omitted and quotient and root are approximated, because
// rounding hides both.
//
// Traffic: every operand once (x and addend three times with VECTORS_PER_THREAD 0); weight and bias stay in the caches.
// Roofline: memory, 14 instructions per bf16 element (23 with GELU), where its traffic leaves time for 28
// (activations.cuh).
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH               elements per vector access (element.cuh)
//   KERNEL              kernel name
//   THREADS             threads per row: whole warps
//   ROWS                rows per block
//   VECTORS_PER_THREAD  vectors of a row per thread in registers; 0 if the row is too long
//   FULL_TILES          true if every thread of every block owns all its vectors
//   EPSILON             float that is added to the variance
//   RESIDUAL            1 to add `addend` to x and to write the sum
//   ACTIVATE            activation function (activations.cuh), or identity

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
#ifndef FULL_TILES
#error "FULL_TILES: true if every thread of every block owns all its vectors"
#endif
#ifndef EPSILON
#error "EPSILON: float that is added to the variance"
#endif
#ifndef RESIDUAL
#error "RESIDUAL: 1 to add `addend` to x and to write the sum"
#endif
#ifndef ACTIVATE
#error "ACTIVATE: activation function"
#endif

#include "activations.cuh"
#include "element.cuh"
#include "row_statistics.cuh"

__device__ __forceinline__ float identity(float x) { return x; }

#if RESIDUAL
#define ARGUMENTS                                                                                                      \
    const element *__restrict__ x, const element *__restrict__ addend, const element *__restrict__ weight,             \
        const element *__restrict__ bias, element *__restrict__ sum, element *__restrict__ y
#else
#define ARGUMENTS                                                                                                      \
    const element *__restrict__ x, const element *__restrict__ weight, const element *__restrict__ bias,               \
        element *__restrict__ y
#endif

__device__ __forceinline__ void add(float &sum, const float (&values)[WIDTH]) {
#pragma unroll
    for (int i = 0; i < WIDTH; i++) sum += values[i];
}

#if defined(ELEMENT_F32)
typedef float2 deviation_sums;

__device__ __forceinline__ void add_deviation(float2 &deviations, float deviation) {
    deviations.x += deviation;
    deviations.y = fmaf(deviation, deviation, deviations.y);
}
#else
// 16-bit results show neither the correction of the mean nor the last digits of quotient and root.
typedef float deviation_sums;

__device__ __forceinline__ void add_deviation(float &squares, float deviation) {
    squares = fmaf(deviation, deviation, squares);
}

__device__ __forceinline__ row_stats finish_stats(float mean, float squares, float count) {
    return {mean, rsqrtf(__fdividef(squares, count) + EPSILON)};
}
#endif

__device__ __forceinline__ void add_deviations(deviation_sums &deviations, const float (&values)[WIDTH], float mean) {
#pragma unroll
    for (int i = 0; i < WIDTH; i++) add_deviation(deviations, values[i] - mean);
}

// Vectors are passed by value: through a reference the compiler would load every element separately.
__device__ __forceinline__ packed_vec normalize(const float (&values)[WIDTH], row_stats stats, packed_vec weight,
                                                packed_vec bias) {
    float results[WIDTH], weights[WIDTH], biases[WIDTH];
    const float offset = -stats.mean * stats.rstd;
    widen_all(weight, weights);
    widen_all(bias, biases);
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        results[i] = ACTIVATE(fmaf(fmaf(values[i], stats.rstd, offset), weights[i], biases[i]));
    }
    return narrow_all(results);
}

extern "C" __global__ void __launch_bounds__(THREADS * ROWS, 1024 / (THREADS * ROWS))
    KERNEL(ARGUMENTS, u64 rows, u64 columns) {
    __shared__ float shared_sums[ROWS][WARPS];
    __shared__ deviation_sums shared_deviations[ROWS][WARPS];

    const u64 row = (u64)blockIdx.x * ROWS + threadIdx.y;
    // Threads beyond the last row have no vectors, but take part in the barriers.
    const unsigned vecs = row < rows ? columns / WIDTH : 0;
    const auto owns = [&](int p) { return FULL_TILES || p * THREADS + threadIdx.x < vecs; };
    const packed_vec *x_row = reinterpret_cast<const packed_vec *>(x + row * columns);
    const packed_vec *weights = reinterpret_cast<const packed_vec *>(weight);
    const packed_vec *biases = reinterpret_cast<const packed_vec *>(bias);
    packed_vec *y_row = reinterpret_cast<packed_vec *>(y + row * columns);
    const float count = (float)columns;
#if RESIDUAL
    const packed_vec *addend_row = reinterpret_cast<const packed_vec *>(addend + row * columns);
    packed_vec *sum_row = reinterpret_cast<packed_vec *>(sum + row * columns);
#endif
    auto load = [&](unsigned v, float (&values)[WIDTH]) {
        widen_all(x_row[v], values);
#if RESIDUAL
        float addends[WIDTH];
        widen_all(addend_row[v], addends);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) values[i] += addends[i];
#endif
    };

    float total = 0.0f;
    deviation_sums deviations = {};
#if VECTORS_PER_THREAD > 0
    float values[VECTORS_PER_THREAD][WIDTH];
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        if (owns(p)) load(p * THREADS + threadIdx.x, values[p]);
    }
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        if (owns(p)) {
#if RESIDUAL
            sum_row[p * THREADS + threadIdx.x] = narrow_all(values[p]);
#endif
            add(total, values[p]);
        }
    }
    const float approx_mean = row_sum(total, shared_sums) / count;
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        if (owns(p)) add_deviations(deviations, values[p], approx_mean);
    }
    const row_stats stats = finish_stats(approx_mean, row_sum(deviations, shared_deviations), count);
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        const unsigned v = p * THREADS + threadIdx.x;
        if (owns(p)) y_row[v] = normalize(values[p], stats, weights[v], biases[v]);
    }
#else
    float values[WIDTH];
    for (unsigned v = threadIdx.x; v < vecs; v += THREADS) {
        load(v, values);
#if RESIDUAL
        sum_row[v] = narrow_all(values);
#endif
        add(total, values);
    }
    const float approx_mean = row_sum(total, shared_sums) / count;
    for (unsigned v = threadIdx.x; v < vecs; v += THREADS) {
        load(v, values);
        add_deviations(deviations, values, approx_mean);
    }
    const row_stats stats = finish_stats(approx_mean, row_sum(deviations, shared_deviations), count);
    for (unsigned v = threadIdx.x; v < vecs; v += THREADS) {
        load(v, values);
        y_row[v] = normalize(values, stats, weights[v], biases[v]);
    }
#endif
}
