// y[row] = the sum of a[row, column] x[column] over all columns, in float.
//
// A block is THREADS threads (whole warps) for each of ROWS rows. Each thread goes through its pieces of a row, PIECES of
// them in flight, with one sum.
// Traffic: a once; x is read again for every row, from the caches. It is bound by memory: 4 instructions for each element.
#include "element.cuh"
#include "rows.cuh"

__device__ __forceinline__ float multiply(piece a, piece x, float sum) {
#pragma unroll
    for (int i = 0; i < WIDTH; i++) sum = fmaf(widen(a.parts[i]), widen(x.parts[i]), sum);
    return sum;
}

extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
    KERNEL(const element *__restrict__ a, const element *__restrict__ x, element *__restrict__ y, u64 rows,
           u64 columns) {
    __shared__ numbers<1> shared[ROWS][WARPS];
    const u64 row = (u64)blockIdx.x * ROWS + threadIdx.y;
    // Threads beyond the last row own nothing, but stay for the barrier.
    const unsigned pieces = row < rows ? columns / WIDTH : 0;
    const piece *of_a = reinterpret_cast<const piece *>(a + row * columns);
    const piece *of_x = reinterpret_cast<const piece *>(x);

    float sum = 0.0f;
    for (unsigned start = threadIdx.x; start < pieces; start += PIECES * THREADS) {
        if (start + (PIECES - 1) * THREADS < pieces) {
            piece some[PIECES];
#pragma unroll
            for (int p = 0; p < PIECES; p++) some[p] = of_a[start + p * THREADS];
#pragma unroll
            for (int p = 0; p < PIECES; p++) sum = multiply(some[p], of_x[start + p * THREADS], sum);
        } else {
#pragma unroll 1
            for (unsigned at = start; at < pieces; at += THREADS) sum = multiply(of_a[at], of_x[at], sum);
        }
    }
    sum = row_sum<1>({sum}, shared).of[0];
    if (row < rows && threadIdx.x == 0) y[row] = narrow(sum);
}
