// Layer normalization of each row with a gain and a bias for each column:
// y = ACTIVATE((x - mean) / sqrt(variance + EPSILON) * gain + bias), with the variance of the population. With RESIDUAL 1
// what is normalized is the sum of x and an addend before it is rounded; the sum is written too.
//
// A block is THREADS threads (whole warps) for each of ROWS rows. Each thread keeps PIECES pieces of its row in registers,
// so that memory is read once; with PIECES 0, for rows too long for that, it is read three times. WHOLE says that no thread of any
// block is beyond a row's end or the last row.
// Traffic: every operand once; gain and bias stay in the caches. It is bound by memory: 14 instructions for each element of
// bf16, with gelu 23 (counted on an H200), where reading and writing one leaves room for 28.
#include "activations.cuh"
#include "element.cuh"
#include "row_statistics.cuh"

__device__ __forceinline__ float nothing(float x) { return x; }

#if RESIDUAL
#define ARGUMENTS                                                                                                      \
    const element *__restrict__ x, const element *__restrict__ addend, const element *__restrict__ gain,               \
        const element *__restrict__ bias, element *__restrict__ sum, element *__restrict__ y
#else
#define ARGUMENTS                                                                                                      \
    const element *__restrict__ x, const element *__restrict__ gain, const element *__restrict__ bias,                 \
        element *__restrict__ y
#endif

__device__ __forceinline__ void add(float &sum, const float (&values)[WIDTH]) {
#pragma unroll
    for (int i = 0; i < WIDTH; i++) sum += values[i];
}

#if defined(ELEMENT_F32)
typedef float2 differences;

__device__ __forceinline__ void add_difference(float2 &sums, float difference) {
    sums.x += difference;
    sums.y = fmaf(difference, difference, sums.y);
}
#else
// What corrects the mean is not shown by 16 bits, nor are the last digits of a quotient and a root.
typedef float differences;

__device__ __forceinline__ void add_difference(float &squares, float difference) {
    squares = fmaf(difference, difference, squares);
}

__device__ __forceinline__ statistics from_sums(float mean, float squares, float count) {
    return {mean, rsqrtf(__fdividef(squares, count) + EPSILON)};
}
#endif

__device__ __forceinline__ void add_differences(differences &sums, const float (&values)[WIDTH], float mean) {
#pragma unroll
    for (int i = 0; i < WIDTH; i++) add_difference(sums, values[i] - mean);
}

// Pieces are passed by value: of a reference to memory the compiler loads every element by itself.
__device__ __forceinline__ packed result(const float (&values)[WIDTH], statistics row_is, packed gain, packed bias) {
    float results[WIDTH], gains[WIDTH], biases[WIDTH];
    const float offset = -row_is.mean * row_is.scale;
    widen_all(gain, gains);
    widen_all(bias, biases);
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        results[i] = ACTIVATE(fmaf(fmaf(values[i], row_is.scale, offset), gains[i], biases[i]));
    }
    return narrow_all(results);
}

extern "C" __global__ void __launch_bounds__(THREADS * ROWS, 1024 / (THREADS * ROWS))
    KERNEL(ARGUMENTS, u64 rows, u64 columns) {
    __shared__ float shared_sums[ROWS][WARPS];
    __shared__ differences shared_differences[ROWS][WARPS];

    const u64 row = (u64)blockIdx.x * ROWS + threadIdx.y;
    // Threads beyond the last row own nothing, but stay for the barriers.
    const unsigned pieces = row < rows ? columns / WIDTH : 0;
    const auto within = [&](int p) { return WHOLE || p * THREADS + threadIdx.x < pieces; };
    const packed *of_x = reinterpret_cast<const packed *>(x + row * columns);
    const packed *gains = reinterpret_cast<const packed *>(gain);
    const packed *biases = reinterpret_cast<const packed *>(bias);
    packed *to = reinterpret_cast<packed *>(y + row * columns);
    const float count = (float)columns;
#if RESIDUAL
    const packed *of_addend = reinterpret_cast<const packed *>(addend + row * columns);
    packed *to_sum = reinterpret_cast<packed *>(sum + row * columns);
#endif
    auto load = [&](unsigned at, float(&values)[WIDTH]) {
        widen_all(of_x[at], values);
#if RESIDUAL
        float others[WIDTH];
        widen_all(of_addend[at], others);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) values[i] += others[i];
#endif
    };

    float sum_of_all = 0.0f;
    differences sums = {};
#if PIECES > 0
    float values[PIECES][WIDTH];
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        if (within(p)) load(p * THREADS + threadIdx.x, values[p]);
    }
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        if (within(p)) {
#if RESIDUAL
            to_sum[p * THREADS + threadIdx.x] = narrow_all(values[p]);
#endif
            add(sum_of_all, values[p]);
        }
    }
    const float rough_mean = row_sum(sum_of_all, shared_sums) / count;
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        if (within(p)) add_differences(sums, values[p], rough_mean);
    }
    const statistics row_is = from_sums(rough_mean, row_sum(sums, shared_differences), count);
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const unsigned at = p * THREADS + threadIdx.x;
        if (within(p)) to[at] = result(values[p], row_is, gains[at], biases[at]);
    }
#else
    float values[WIDTH];
    for (unsigned at = threadIdx.x; at < pieces; at += THREADS) {
        load(at, values);
#if RESIDUAL
        to_sum[at] = narrow_all(values);
#endif
        add(sum_of_all, values);
    }
    const float rough_mean = row_sum(sum_of_all, shared_sums) / count;
    for (unsigned at = threadIdx.x; at < pieces; at += THREADS) {
        load(at, values);
        add_differences(sums, values, rough_mean);
    }
    const statistics row_is = from_sums(rough_mean, row_sum(sums, shared_differences), count);
    for (unsigned at = threadIdx.x; at < pieces; at += THREADS) {
        load(at, values);
        to[at] = result(values, row_is, gains[at], biases[at]);
    }
#endif
}
