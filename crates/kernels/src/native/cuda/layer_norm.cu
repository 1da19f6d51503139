// Layer normalization of each row, without weights: y = (x - mean) / sqrt(variance + EPSILON), with the variance of the
// population.
//
// A block is THREADS threads (whole warps) for each of ROWS rows. Each thread keeps PIECES pieces of its row in registers,
// so that memory is read once; with PIECES 0, for rows too long for that, it is read three times.
// Traffic: x and y once, or x three times. Roofline: the memory's: a handful of instructions for each element.
#include "element.cuh"
#include "row_statistics.cuh"

extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
    KERNEL(const element *__restrict__ x, element *__restrict__ y, u64 rows, u64 columns) {
    __shared__ float2 sums[ROWS][WARPS];
    __shared__ float2 differences[ROWS][WARPS];

    const u64 row = (u64)blockIdx.x * ROWS + threadIdx.y;
    // Threads beyond the last row own nothing, but stay for the barriers.
    const u64 pieces = row < rows ? columns / WIDTH : 0;
    const piece *from = reinterpret_cast<const piece *>(x + row * columns);
    piece *to = reinterpret_cast<piece *>(y + row * columns);
    const float count = (float)columns;

#if PIECES > 0

    float values[PIECES][WIDTH];
    float2 sum = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const u64 at = p * THREADS + threadIdx.x;
        if (at < pieces) {
            const piece loaded = from[at];
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                values[p][i] = widen(loaded.parts[i]);
                sum.x += values[p][i];
            }
        }
    }
    const float rough_mean = row_sum(sum, sums).x / count;

    sum = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        if (p * THREADS + threadIdx.x < pieces) {
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                const float difference = values[p][i] - rough_mean;
                sum.x += difference;
                sum.y += difference * difference;
            }
        }
    }
    const statistics row_is = from_sums(rough_mean, row_sum(sum, differences), count);

#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const u64 at = p * THREADS + threadIdx.x;
        if (at < pieces) {
            piece result;
#pragma unroll
            for (int i = 0; i < WIDTH; i++) result.parts[i] = narrow((values[p][i] - row_is.mean) * row_is.scale);
            to[at] = result;
        }
    }

#else

    float2 sum = make_float2(0.0f, 0.0f);
    for (u64 at = threadIdx.x; at < pieces; at += THREADS) {
        const piece loaded = from[at];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) sum.x += widen(loaded.parts[i]);
    }
    const float rough_mean = row_sum(sum, sums).x / count;

    sum = make_float2(0.0f, 0.0f);
    for (u64 at = threadIdx.x; at < pieces; at += THREADS) {
        const piece loaded = from[at];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            const float difference = widen(loaded.parts[i]) - rough_mean;
            sum.x += difference;
            sum.y += difference * difference;
        }
    }
    const statistics row_is = from_sums(rough_mean, row_sum(sum, differences), count);

    for (u64 at = threadIdx.x; at < pieces; at += THREADS) {
        piece loaded = from[at];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            loaded.parts[i] = narrow((widen(loaded.parts[i]) - row_is.mean) * row_is.scale);
        }
        to[at] = loaded;
    }

#endif
}
