// Each row by its root mean square, with a gain for each column: y = x / sqrt(mean of squares + EPSILON) * gain. The gain is
// f32 where GAIN_F32 is 1, else of x's type.
//
// A block is THREADS threads (whole warps) for each of ROWS rows. Each thread keeps PIECES pieces of its row in registers,
// so that memory is read once; with PIECES 0, for rows too long for that, it is read twice.
// Traffic: x and y once, and the gain, which stays in the caches. It is bound by memory: 6 instructions for each element.
#include "element.cuh"
#include "gain.cuh"
#include "rows.cuh"

__device__ __forceinline__ piece scaled(piece x, float scale, gain_piece gain) {
    float results[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; i++) results[i] = widen(x.parts[i]) * scale * widen_gain(gain.parts[i]);
    return narrow_all(results);
}

extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
    KERNEL(const element *__restrict__ x, const gain_element *__restrict__ gain, element *__restrict__ y, u64 rows,
           u64 columns) {
    __shared__ numbers<1> shared[ROWS][WARPS];
    const u64 row = (u64)blockIdx.x * ROWS + threadIdx.y;
    // Threads beyond the last row own nothing, but stay for the barrier.
    const unsigned pieces = row < rows ? columns / WIDTH : 0;
    const piece *from = reinterpret_cast<const piece *>(x + row * columns);
    const gain_piece *gains = reinterpret_cast<const gain_piece *>(gain);
    piece *to = reinterpret_cast<piece *>(y + row * columns);

    float squares = 0.0f;
#if PIECES > 0
    piece kept[PIECES];
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const unsigned at = p * THREADS + threadIdx.x;
        if (at < pieces) kept[p] = from[at];
    }
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        if (p * THREADS + threadIdx.x < pieces) {
#pragma unroll
            for (int i = 0; i < WIDTH; i++) squares = fmaf(widen(kept[p].parts[i]), widen(kept[p].parts[i]), squares);
        }
    }
#else
    for (unsigned at = threadIdx.x; at < pieces; at += THREADS) {
        const piece loaded = from[at];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) squares = fmaf(widen(loaded.parts[i]), widen(loaded.parts[i]), squares);
    }
#endif
    const float mean = row_sum<1>({squares}, shared).of[0] / (float)columns;
    const float scale = 1.0f / sqrtf(mean + EPSILON);

#if PIECES > 0
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const unsigned at = p * THREADS + threadIdx.x;
        if (at < pieces) to[at] = scaled(kept[p], scale, gains[at]);
    }
#else
    for (unsigned at = threadIdx.x; at < pieces; at += THREADS) to[at] = scaled(from[at], scale, gains[at]);
#endif
}
