// The mean over all rows of ln(sum of exp(x)) - x[target], as one f32 number.
//
// A block is THREADS threads (whole warps) for each of ROWS rows at once, and goes on to the rows that are a grid further. A
// thread reads its pieces of a row once, PIECES at a time: the next ones, of this row or of the next, are on their way while it
// looks at these. It keeps the largest logit and the sum of the exponentials of the distances to it; at the end of a row
// threads put theirs together, and warps, where a row has several, behind one barrier. Then the losses are added up (total.cuh).
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

    // Threads beyond the last row own nothing, but stay for the barrier.
    const auto load_from = [&](piece(&some)[PIECES], u64 row, unsigned start) {
        load(some, reinterpret_cast<const piece *>(x + row * columns), start + threadIdx.x, row < rows ? pieces : 0);
    };
    u64 first = (u64)blockIdx.x * ROWS;
    unsigned start = 0;
    piece ahead[PIECES];
    load_from(ahead, first + threadIdx.y, 0);
    // Asked for a row before it is looked at, and the logit of the class a row's length before it is needed.
    int target_ahead = threadIdx.x == 0 && first + threadIdx.y < rows ? targets[first + threadIdx.y] : 0;
    float wanted = 0.0f;

    float losses = 0.0f;
    tally all = {minus_infinity(), 0.0f};
    int turn = 0;
    while (first < rows) {
        const u64 row = first + threadIdx.y;
        piece some[PIECES];
#pragma unroll
        for (int p = 0; p < PIECES; p++) some[p] = ahead[p];
        if (start == 0 && threadIdx.x == 0 && row < rows) {
            const bool known = 0 <= target_ahead && (u64)target_ahead < columns;
            wanted = known ? widen(x[row * columns + target_ahead]) : __uint_as_float(0x7fffffffu);
            if (row + step < rows) target_ahead = targets[row + step];
        }
        start += PIECES * THREADS;
        const bool ends = start >= pieces;
        if (ends) {
            start = 0;
            first += step;
        }
        load_from(ahead, first + threadIdx.y, start);
        add_pieces(all, some);
        if (!ends) continue;

        all = warp_tally(all);
        if (WARPS > 1) {
            if (lane == 0) tallies[turn][threadIdx.y][warp] = all;
            __syncthreads();
            if (warp == 0) {
                all = {minus_infinity(), 0.0f};
                if (lane < WARPS) all = tallies[turn][threadIdx.y][lane];
                all = warp_tally(all);
            }
            turn ^= 1;
        }
        if (threadIdx.x == 0 && row < rows) losses += logf(all.sum) + (base_of(all.largest) - wanted);
        all = {minus_infinity(), 0.0f};
    }
    if (grid_total<WARPS * ROWS>(losses, thread, parts, arrived)) *y = losses / (float)rows;
}
