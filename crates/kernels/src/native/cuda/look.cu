// What is asked of a matrix that stays where it is, before it is called right: numbers at some places, whether each is a number at
// all, and what rows and columns add up to under signs that are as good as drawn.
//
// Traffic: `sampled` a sector for each place, the others x once. Bound by memory but for the sums, where the GPU has few units for
// doubles: they are added up in doubles, and a square of a float is exact in one.
#include "element.cuh"

// Places are pairs of a row of `of_rows` and a column of `of_cols`, the columns of a row together.
extern "C" __global__ void __launch_bounds__(THREADS)
    sampled(const element *__restrict__ x, const unsigned *__restrict__ of_rows, const unsigned *__restrict__ of_cols,
            float *__restrict__ y, u64 cols, u64 sampled_cols) {
    const u64 parts = (sampled_cols + THREADS - 1) / THREADS;
    const u64 row = blockIdx.x / parts, at = blockIdx.x % parts * THREADS + threadIdx.x;
    if (at < sampled_cols) y[row * sampled_cols + at] = widen(x[of_rows[row] * cols + of_cols[at]]);
}

// `found` is the place of the first that is no number, all ones before, and how many there are.
extern "C" __global__ void __launch_bounds__(THREADS)
    spoilt(const element *__restrict__ x, u64 *__restrict__ found, u64 count, u64) {
    u64 first = ~0ull, all = 0;
    const u64 start = (u64)blockIdx.x * (THREADS * PIECES) + threadIdx.x;
#pragma unroll
    for (int piece = 0; piece < PIECES; piece++) {
        const u64 at = start + piece * THREADS;
        if (at >= count || (__float_as_uint(widen(x[at])) & 0x7f800000u) != 0x7f800000u) continue;
        first = first < at ? first : at;
        all++;
    }
    if (all == 0) return;
    atomicMin(found, first);
    atomicAdd(found + 1, all);
}

__device__ __forceinline__ double signed_by(u64 at, double value) {
    u64 mixed = (at + 1) * 0x9e3779b97f4a7c15ull;
    mixed = (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9ull;
    return (mixed ^ (mixed >> 32)) & 1 ? -value : value;
}

// A block for each row.
extern "C" __global__ void __launch_bounds__(THREADS)
    row_sums(const element *__restrict__ x, double2 *__restrict__ y, u64 rows, u64 cols) {
    __shared__ double2 parts[THREADS];
    double2 sum = {0.0, 0.0};
    for (u64 col = threadIdx.x; col < cols; col += THREADS) {
        const double value = widen(x[blockIdx.x * cols + col]);
        sum.x += signed_by(col, value);
        sum.y += value * value;
    }
    parts[threadIdx.x] = sum;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x >= half) continue;
        parts[threadIdx.x].x += parts[threadIdx.x + half].x;
        parts[threadIdx.x].y += parts[threadIdx.x + half].y;
    }
    if (threadIdx.x == 0) y[blockIdx.x] = parts[0];
}

// A thread for each column of TOGETHER rows, whose sums the host adds up.
extern "C" __global__ void __launch_bounds__(THREADS)
    col_sums(const element *__restrict__ x, double2 *__restrict__ y, u64 rows, u64 cols) {
    const u64 parts = (cols + THREADS - 1) / THREADS;
    const u64 some = blockIdx.x / parts, col = blockIdx.x % parts * THREADS + threadIdx.x;
    if (col >= cols) return;
    double2 sum = {0.0, 0.0};
    const u64 end = (some + 1) * TOGETHER < rows ? (some + 1) * TOGETHER : rows;
    for (u64 row = some * TOGETHER; row < end; row++) {
        const double value = widen(x[row * cols + col]);
        sum.x += signed_by(row, value);
        sum.y += value * value;
    }
    y[some * cols + col] = sum;
}
