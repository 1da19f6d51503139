// The mean over all rows of ln(sum of exp(x)) - x[target], as one f32 number.
//
// A block is THREADS threads (whole warps) for each of ROWS rows at once, and goes on to the rows that are a grid further. A
// thread reads its pieces of a row once, PIECES at a time, the first of the next row before it looks at this one. It keeps
// the largest logit and the sum of the exponentials of the distances to it; threads and warps put theirs together. Then the
// losses are added up (total.cuh).
// Traffic: the logits once. It is bound by memory: 6 instructions for each logit, one of them in the slow unit for 2^x,
// which at 16 in a cycle needs 18 us where 67 million bf16 logits take 31 us to be read.
//
// A row with a NaN or plus infinity, or with nothing but minus infinity, has no loss: the result is NaN. So is that of a
// target beyond the classes.
#include "element.cuh"
#include "tally.cuh"

constexpr int WARPS = THREADS / 32;

// Pieces THREADS apart. Those beyond the end are minus infinity, which adds nothing.
__device__ __forceinline__ void load(piece (&some)[PIECES], const piece *from, unsigned start, unsigned end) {
    const element nothing = narrow(minus_infinity());
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const unsigned at = start + p * THREADS;
        if (at < end) {
            some[p] = from[at];
        } else {
#pragma unroll
            for (int i = 0; i < WIDTH; i++) some[p].parts[i] = nothing;
        }
    }
}

__device__ __forceinline__ void add_pieces(tally &all, const piece (&some)[PIECES]) {
    float values[PIECES * WIDTH];
#pragma unroll
    for (int i = 0; i < PIECES * WIDTH; i++) values[i] = widen(some[i / WIDTH].parts[i % WIDTH]);
    add(all, values);
}

extern "C" __global__ void __launch_bounds__(THREADS * ROWS, AT_ONCE)
    KERNEL(const element *__restrict__ x, const int *__restrict__ targets, float *__restrict__ y,
           float *__restrict__ parts, unsigned *__restrict__ arrived, u64 rows, u64 columns) {
    // Two of each, so that the warps of one row need not wait for those that still look at the one before.
    __shared__ tally tallies[2][ROWS][WARPS];
    const int thread = threadIdx.y * THREADS + threadIdx.x;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const u64 step = (u64)gridDim.x * ROWS;
    const unsigned pieces = columns / WIDTH;

    u64 row = (u64)blockIdx.x * ROWS + threadIdx.y;
    piece ahead[PIECES];
    load(ahead, reinterpret_cast<const piece *>(x + row * columns), threadIdx.x, row < rows ? pieces : 0);
    int target_ahead = threadIdx.x == 0 && row < rows ? targets[row] : 0;

    float losses = 0.0f;
    int turn = 0;
    for (u64 first = (u64)blockIdx.x * ROWS; first < rows; first += step, row += step, turn ^= 1) {
        // Threads beyond the last row own nothing, but stay for the barrier.
        const unsigned end = row < rows ? pieces : 0;
        const element *logits = x + row * columns;
        const piece *from = reinterpret_cast<const piece *>(logits);

        float wanted = 0.0f;
        if (threadIdx.x == 0 && row < rows) {
            const bool known = 0 <= target_ahead && (u64)target_ahead < columns;
            wanted = known ? widen(logits[target_ahead]) : __uint_as_float(0x7fffffffu);
        }
        piece some[PIECES];
#pragma unroll
        for (int p = 0; p < PIECES; p++) some[p] = ahead[p];
        const u64 next = row + step;
        load(ahead, reinterpret_cast<const piece *>(x + next * columns), threadIdx.x, next < rows ? pieces : 0);
        if (threadIdx.x == 0 && next < rows) target_ahead = targets[next];

        tally all = {minus_infinity(), 0.0f};
        add_pieces(all, some);
#pragma unroll 1
        for (unsigned start = PIECES * THREADS; start < end; start += PIECES * THREADS) {
            load(some, from, start + threadIdx.x, end);
            add_pieces(all, some);
        }
        all = warp_tally(all);
        if (WARPS > 1) {
            if (lane == 0) tallies[turn][threadIdx.y][warp] = all;
            __syncthreads();
            if (warp == 0) {
                all = {minus_infinity(), 0.0f};
                if (lane < WARPS) all = tallies[turn][threadIdx.y][lane];
                all = warp_tally(all);
            }
        }
        if (threadIdx.x == 0 && row < rows) losses += logf(all.sum) + (base_of(all.largest) - wanted);
    }
    if (grid_total<WARPS * ROWS>(losses, thread, parts, arrived)) *y = losses / (float)rows;
}
