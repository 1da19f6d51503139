// Layer normalisation of each row with a gain and a bias for each column:
// y = ACTIVATE((x - mean) / sqrt(variance + EPSILON) * gain + bias), with the variance of the population. With RESIDUAL 1
// what is normalised is the sum of x and an addend before it is rounded; the sum is written too.
//
// A block is THREADS threads (whole warps) for each of ROWS rows. Each thread keeps PIECES pieces of its row in registers,
// so that memory is read once; with PIECES 0, for rows too long for that, it is read three times.
// Traffic: every operand once; gain and bias stay in the caches. It is bound by memory: 9 instructions for each element,
// with gelu 18, where reading and writing one in bf16 leaves room for 28.
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

__device__ __forceinline__ void add_differences(float2 &sums, const float (&values)[WIDTH], float mean) {
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        const float difference = values[i] - mean;
#if defined(ELEMENT_F32)
        // What corrects the mean: 16 bits do not show it.
        sums.x += difference;
#endif
        sums.y = fmaf(difference, difference, sums.y);
    }
}

// Pieces are passed by value: of a reference to memory the compiler loads every element by itself.
__device__ __forceinline__ piece result(const float (&values)[WIDTH], statistics row_is, piece gain, piece bias) {
    float results[WIDTH];
    const float offset = -row_is.mean * row_is.scale;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        const float normal = fmaf(values[i], row_is.scale, offset);
        results[i] = ACTIVATE(fmaf(normal, widen(gain.parts[i]), widen(bias.parts[i])));
    }
    return narrow_all(results);
}

extern "C" __global__ void __launch_bounds__(THREADS * ROWS) KERNEL(ARGUMENTS, u64 rows, u64 columns) {
    __shared__ float shared_sums[ROWS][WARPS];
    __shared__ float2 shared_differences[ROWS][WARPS];

    const u64 row = (u64)blockIdx.x * ROWS + threadIdx.y;
    // Threads beyond the last row own nothing, but stay for the barriers.
    const unsigned pieces = row < rows ? columns / WIDTH : 0;
    const piece *of_x = reinterpret_cast<const piece *>(x + row * columns);
    const piece *gains = reinterpret_cast<const piece *>(gain);
    const piece *biases = reinterpret_cast<const piece *>(bias);
    piece *to = reinterpret_cast<piece *>(y + row * columns);
    const float count = (float)columns;
#if RESIDUAL
    const piece *of_addend = reinterpret_cast<const piece *>(addend + row * columns);
    piece *to_sum = reinterpret_cast<piece *>(sum + row * columns);
#endif
    auto load = [&](unsigned at, float(&values)[WIDTH]) {
        const piece loaded = of_x[at];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) values[i] = widen(loaded.parts[i]);
#if RESIDUAL
        const piece other = of_addend[at];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) values[i] += widen(other.parts[i]);
#endif
    };

    float sum_of_all = 0.0f;
    float2 sums = make_float2(0.0f, 0.0f);
#if PIECES > 0
    float values[PIECES][WIDTH];
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const unsigned at = p * THREADS + threadIdx.x;
        if (at < pieces) load(at, values[p]);
    }
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const unsigned at = p * THREADS + threadIdx.x;
        if (at < pieces) {
#if RESIDUAL
            to_sum[at] = narrow_all(values[p]);
#endif
            add(sum_of_all, values[p]);
        }
    }
    const float rough_mean = row_sum(sum_of_all, shared_sums) / count;
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        if (p * THREADS + threadIdx.x < pieces) add_differences(sums, values[p], rough_mean);
    }
    const statistics row_is = from_sums(rough_mean, row_sum(sums, shared_differences), count);
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const unsigned at = p * THREADS + threadIdx.x;
        if (at < pieces) to[at] = result(values[p], row_is, gains[at], biases[at]);
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
