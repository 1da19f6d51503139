// One f32 number of two vectors: the sum of their products, or the mean of their squared differences.
//
// Blocks go through both together, PIECES pieces of WIDTH elements of each in a thread's registers at once; a thread has
// WIDTH sums. Then the sums of threads are added up, and those of blocks (total.cuh).
// Traffic: both vectors once. It is bound by memory: 3 instructions for each element of a vector.
#include "element.cuh"
#include "total.cuh"

__device__ __forceinline__ float product(float a, float b, float sum) { return fmaf(a, b, sum); }

__device__ __forceinline__ float squared_difference(float a, float b, float sum) {
    return fmaf(a - b, a - b, sum);
}

extern "C" __global__ void __launch_bounds__(THREADS, AT_ONCE)
    KERNEL(const element *__restrict__ a, const element *__restrict__ b, float *__restrict__ y,
           float *__restrict__ parts, unsigned *__restrict__ arrived, u64 length, u64 count) {
    const u64 pieces = length / WIDTH;
    const piece *of_a = reinterpret_cast<const piece *>(a);
    const piece *of_b = reinterpret_cast<const piece *>(b);
    const u64 first = (u64)blockIdx.x * (THREADS * PIECES) + threadIdx.x;
    const u64 step = (u64)gridDim.x * (THREADS * PIECES);

    float sums[WIDTH] = {};
    for (u64 start = first; start < pieces; start += step) {
        if (start + (PIECES - 1) * THREADS < pieces) {
            piece left[PIECES], right[PIECES];
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                left[p] = of_a[start + p * THREADS];
                right[p] = of_b[start + p * THREADS];
            }
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
#pragma unroll
                for (int i = 0; i < WIDTH; i++) {
                    sums[i] = TERM(widen(left[p].parts[i]), widen(right[p].parts[i]), sums[i]);
                }
            }
        } else {
#pragma unroll 1
            for (u64 at = start; at < pieces; at += THREADS) {
                const piece left = of_a[at], right = of_b[at];
#pragma unroll
                for (int i = 0; i < WIDTH; i++) sums[i] = TERM(widen(left.parts[i]), widen(right.parts[i]), sums[i]);
            }
        }
    }
    // Block 0 has more threads than there can be elements left over.
    const u64 left_over = pieces * WIDTH + first;
    if (blockIdx.x == 0 && left_over < length) sums[0] = TERM(widen(a[left_over]), widen(b[left_over]), sums[0]);

    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) sum += sums[i];
    if (grid_total<THREADS / 32>(sum, threadIdx.x, parts, arrived)) *y = sum / (float)count;
}
