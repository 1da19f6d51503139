// The gradients of x / sqrt(mean of squares + EPSILON) * gain, given x, the gain and the gradient dy of the result: with
// s = 1 / sqrt(mean of squares + EPSILON), dx = s gain dy - s^3 x mean(gain dy x) for each row, and in `partial` a row for
// each of the grid's workers with its part of the gain's gradient, the sums over its rows of s x dy. The gain is f32 where
// GAIN_F32 is 1, else of x's type. Where ADDED is 1, what came back past the normalization is added to dx.
//
// A worker is THREADS threads (whole warps), of which a block has ROWS. It goes from row to row, a grid further each time;
// each thread has the same columns in every row, keeps PIECES pieces of x and dy of them in registers, and with them the
// sums of its columns. With PIECES 0, for rows too long for that, a row is read twice and the sums are in `partial`.
// Traffic: x, dy, dx and what is added once, and `partial`, a few hundred rows of f32. It is bound by memory: 14 instructions for each
// element.
#include "element.cuh"
#include "gain.cuh"
#include "rows.cuh"

struct __align__(WIDTH * sizeof(float)) floats {
    float parts[WIDTH];
};

__device__ __forceinline__ void add_up(numbers<2> &sums, piece x, piece dy, gain_piece gain) {
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        const float value = widen(x.parts[i]);
        sums.of[0] = fmaf(value, value, sums.of[0]);
        sums.of[1] = fmaf(widen(dy.parts[i]) * widen_gain(gain.parts[i]), value, sums.of[1]);
    }
}

__device__ __forceinline__ piece gradient(piece x, piece dy, piece past, gain_piece gain, float scale, float shift,
                                          float (&of_gain)[WIDTH]) {
    float results[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        const float value = widen(x.parts[i]), slope = widen(dy.parts[i]);
        results[i] = fmaf(slope * widen_gain(gain.parts[i]), scale, -value * shift);
        if (ADDED) results[i] += widen(past.parts[i]);
        of_gain[i] = fmaf(value * scale, slope, of_gain[i]);
    }
    return narrow_all(results);
}

#if ADDED
#define PAST const element *__restrict__ past,
#else
#define PAST
#endif

extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
    KERNEL(const element *__restrict__ x, const gain_element *__restrict__ gain, const element *__restrict__ dy,
           PAST element *__restrict__ dx, float *__restrict__ partial, u64 rows, u64 columns) {
    // Two, so that the warps of one row need not wait for those that still look at the one before.
    __shared__ numbers<2> shared[2][ROWS][WARPS];
    const unsigned pieces = columns / WIDTH;
    const gain_piece *gains = reinterpret_cast<const gain_piece *>(gain);
    floats *of_worker = reinterpret_cast<floats *>(partial + ((u64)blockIdx.x * ROWS + threadIdx.y) * columns);

#if PIECES > 0
    float of_gain[PIECES][WIDTH] = {};
#else
    for (unsigned at = threadIdx.x; at < pieces; at += THREADS) of_worker[at] = {};
#endif

    int turn = 0;
    for (u64 first = (u64)blockIdx.x * ROWS; first < rows; first += (u64)gridDim.x * ROWS, turn ^= 1) {
        // Threads beyond the last row own nothing, but stay for the barrier.
        const u64 row = first + threadIdx.y;
        const unsigned end = row < rows ? pieces : 0;
        const piece *of_x = reinterpret_cast<const piece *>(x + row * columns);
        const piece *of_dy = reinterpret_cast<const piece *>(dy + row * columns);
        piece *to = reinterpret_cast<piece *>(dx + row * columns);
#if ADDED
        const piece *of_past = reinterpret_cast<const piece *>(past + row * columns);
#else
        const piece *of_past = of_dy;
#endif

        numbers<2> sums = {};
#if PIECES > 0
        piece values[PIECES], slopes[PIECES];
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            const unsigned at = p * THREADS + threadIdx.x;
            if (at < end) {
                values[p] = of_x[at];
                slopes[p] = of_dy[at];
            }
        }
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            const unsigned at = p * THREADS + threadIdx.x;
            if (at < end) add_up(sums, values[p], slopes[p], gains[at]);
        }
#else
        for (unsigned at = threadIdx.x; at < end; at += THREADS) add_up(sums, of_x[at], of_dy[at], gains[at]);
#endif
        sums = row_sum(sums, shared[turn]);
        const float count = (float)columns;
        const float scale = 1.0f / sqrtf(sums.of[0] / count + EPSILON);
        const float shift = sums.of[1] / count * scale * scale * scale;
#if PIECES > 0
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            const unsigned at = p * THREADS + threadIdx.x;
            if (at < end) to[at] = gradient(values[p], slopes[p], of_past[at], gains[at], scale, shift, of_gain[p]);
        }
#else
        for (unsigned at = threadIdx.x; at < end; at += THREADS) {
            to[at] = gradient(of_x[at], of_dy[at], of_past[at], gains[at], scale, shift, of_worker[at].parts);
        }
#endif
    }

#if PIECES > 0
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const unsigned at = p * THREADS + threadIdx.x;
        if (at < pieces) {
            floats sums;
#pragma unroll
            for (int i = 0; i < WIDTH; i++) sums.parts[i] = of_gain[p][i];
            of_worker[at] = sums;
        }
    }
#endif
}
