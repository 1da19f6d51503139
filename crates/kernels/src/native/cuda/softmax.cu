// Softmax of each row: y = exp(x - largest) / the sum of these.
//
// A block is THREADS threads (whole warps) for each of ROWS rows. Each thread keeps PIECES pieces of its row in registers,
// first as they are, then as the exponentials of the distances to the largest that it has itself; what threads have is put
// together once, and the distance of its largest to the row's is in the last factor. With PIECES 0, for rows too long for
// that, memory is read twice.
// Traffic: x and y once. It is bound by memory: 8 instructions for each element.
//
// A row with a NaN or plus infinity, or with nothing but minus infinity, comes out as NaN.
#include "element.cuh"
#include "tally.cuh"

constexpr int WARPS = THREADS / 32;

extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
    KERNEL(const element *__restrict__ x, element *__restrict__ y, u64 rows, u64 columns) {
    __shared__ tally tallies[ROWS][WARPS];
    const u64 row = (u64)blockIdx.x * ROWS + threadIdx.y;
    // Threads beyond the last row own nothing, but stay for the barrier.
    const unsigned pieces = row < rows ? columns / WIDTH : 0;
    const piece *from = reinterpret_cast<const piece *>(x + row * columns);
    piece *to = reinterpret_cast<piece *>(y + row * columns);

    tally own = {minus_infinity(), 0.0f};
#if PIECES > 0
    float values[PIECES][WIDTH];
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const unsigned at = p * THREADS + threadIdx.x;
        if (at < pieces) {
            const piece loaded = from[at];
#pragma unroll
            for (int i = 0; i < WIDTH; i++) values[p][i] = widen(loaded.parts[i]);
        }
    }
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        if (p * THREADS + threadIdx.x < pieces) {
#pragma unroll
            for (int i = 0; i < WIDTH; i++) own.largest = fmaxf(own.largest, values[p][i]);
        }
    }
    const float base = base_of(own.largest);
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        if (p * THREADS + threadIdx.x < pieces) {
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                values[p][i] = exponential(values[p][i] - base);
                own.sum += values[p][i];
            }
        }
    }
#else
    for (unsigned at = threadIdx.x; at < pieces; at += THREADS) {
        const piece loaded = from[at];
        float values[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) values[i] = widen(loaded.parts[i]);
        add(own, values);
    }
#endif
    tally all = warp_tally(own);
    if (WARPS > 1) {
        const int lane = threadIdx.x % 32;
        if (lane == 0) tallies[threadIdx.y][threadIdx.x / 32] = all;
        __syncthreads();
        all = {minus_infinity(), 0.0f};
        if (lane < WARPS) all = tallies[threadIdx.y][lane];
        all = warp_tally(all);
    }

#if PIECES > 0
    // A thread with nothing but minus infinity has zeros, whatever their factor.
    const float distance = own.largest == minus_infinity() ? 0.0f : base - base_of(all.largest);
    const float factor = exponential(distance) / all.sum;
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const unsigned at = p * THREADS + threadIdx.x;
        if (at < pieces) {
#pragma unroll
            for (int i = 0; i < WIDTH; i++) values[p][i] *= factor;
            to[at] = narrow_all(values[p]);
        }
    }
#else
    const float base = base_of(all.largest), factor = 1.0f / all.sum;
    for (unsigned at = threadIdx.x; at < pieces; at += THREADS) {
        const piece loaded = from[at];
        float values[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) values[i] = exponential(widen(loaded.parts[i]) - base) * factor;
        to[at] = narrow_all(values);
    }
#endif
}
