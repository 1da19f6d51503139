// The gradient of a layer normalization without weights, given x and the gradient dy of the result: with s = 1 /
// sqrt(variance + EPSILON) and h = s (x - mean), dx = s (dy - mean(dy) - h mean(dy h)) for each row.
//
// A block is THREADS threads (whole warps) for each of ROWS rows. Each thread keeps PIECES pieces of x and of dy in
// registers, so that memory is read once; with PIECES 0, for rows too long for that, it is read three times. The mean is
// taken first, and everything else around it.
// Traffic: x, dy and dx once. It is bound by memory: 15 instructions for each element.
#include "element.cuh"
#include "rows.cuh"

__device__ __forceinline__ float total(piece x) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) sum += widen(x.parts[i]);
    return sum;
}

// Differences from about the mean, their squares, dy, and dy times the differences.
__device__ __forceinline__ void add_up(numbers<4> &sums, piece x, piece dy, float rough_mean) {
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        const float difference = widen(x.parts[i]) - rough_mean, slope = widen(dy.parts[i]);
        sums.of[0] += difference;
        sums.of[1] = fmaf(difference, difference, sums.of[1]);
        sums.of[2] += slope;
        sums.of[3] = fmaf(slope, difference, sums.of[3]);
    }
}

__device__ __forceinline__ piece gradient(piece x, piece dy, float mean, float scale, float level, float along) {
    float results[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        const float normalized = (widen(x.parts[i]) - mean) * scale;
        results[i] = scale * (widen(dy.parts[i]) - level - normalized * along);
    }
    return narrow_all(results);
}

extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
    KERNEL(const element *__restrict__ x, const element *__restrict__ dy, element *__restrict__ dx, u64 rows,
           u64 columns) {
    __shared__ numbers<1> of_first[ROWS][WARPS];
    __shared__ numbers<4> of_second[ROWS][WARPS];
    const u64 row = (u64)blockIdx.x * ROWS + threadIdx.y;
    // Threads beyond the last row own nothing, but stay for the barriers.
    const unsigned pieces = row < rows ? columns / WIDTH : 0;
    const piece *of_x = reinterpret_cast<const piece *>(x + row * columns);
    const piece *of_dy = reinterpret_cast<const piece *>(dy + row * columns);
    piece *to = reinterpret_cast<piece *>(dx + row * columns);
    const float count = (float)columns;

    float sum = 0.0f;
#if PIECES > 0
    piece values[PIECES], slopes[PIECES];
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const unsigned at = p * THREADS + threadIdx.x;
        if (at < pieces) {
            values[p] = of_x[at];
            slopes[p] = of_dy[at];
        }
    }
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        if (p * THREADS + threadIdx.x < pieces) sum += total(values[p]);
    }
#else
    for (unsigned at = threadIdx.x; at < pieces; at += THREADS) sum += total(of_x[at]);
#endif
    const float rough_mean = row_sum<1>({sum}, of_first).of[0] / count;

    numbers<4> sums = {};
#if PIECES > 0
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        if (p * THREADS + threadIdx.x < pieces) add_up(sums, values[p], slopes[p], rough_mean);
    }
#else
    for (unsigned at = threadIdx.x; at < pieces; at += THREADS) add_up(sums, of_x[at], of_dy[at], rough_mean);
#endif
    sums = row_sum(sums, of_second);
    const float correction = sums.of[0] / count, level = sums.of[2] / count;
    const float variance = fmaxf(sums.of[1] / count - correction * correction, 0.0f);
    const float mean = rough_mean + correction, scale = 1.0f / sqrtf(variance + EPSILON);
    const float along = scale * (sums.of[3] / count - correction * level);

#if PIECES > 0
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const unsigned at = p * THREADS + threadIdx.x;
        if (at < pieces) to[at] = gradient(values[p], slopes[p], mean, scale, level, along);
    }
#else
    for (unsigned at = threadIdx.x; at < pieces; at += THREADS) {
        to[at] = gradient(of_x[at], of_dy[at], mean, scale, level, along);
    }
#endif
}
