// Reduction of two vectors to one f32: dot product, or mean squared difference: y = sum TERM(a[i], b[i]) / count.
//
// Algorithm: grid-stride loop with VECTORS_PER_THREAD loads of both vectors in flight and WIDTH accumulators per
// thread, then a deterministic reduction over the grid in the last block to arrive (grid_reduce.cuh).
//
//     pass:  | block 0: THREADS * VECTORS_PER_THREAD vectors | block 1: ... | ... |   next: gridDim.x blocks further
//
// Traffic: both vectors once. Roofline: memory bandwidth; 3 instructions per element of a vector.
//
// Parameters:
//   KERNEL              name of the kernel
//   ELEMENT_*           dtype `element`: ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   WIDTH               elements per load: those of 16 bytes (checked in element.cuh)
//   THREADS             threads per block
//   VECTORS_PER_THREAD  loads per operand in flight
//   MIN_BLOCKS          resident blocks per multiprocessor (launch bounds)
//   TERM                function that accumulates one pair: dot_term or squared_difference

#ifndef KERNEL
#error "KERNEL: name of the kernel"
#endif
#ifndef THREADS
#error "THREADS: threads per block"
#endif
#ifndef VECTORS_PER_THREAD
#error "VECTORS_PER_THREAD: loads per operand in flight"
#endif
#ifndef MIN_BLOCKS
#error "MIN_BLOCKS: resident blocks per multiprocessor (launch bounds)"
#endif
#ifndef TERM
#error "TERM: function that accumulates one pair: dot_term or squared_difference"
#endif

#include "element.cuh"
#include "grid_reduce.cuh"

__device__ __forceinline__ float dot_term(float a, float b, float sum) { return fmaf(a, b, sum); }

__device__ __forceinline__ float squared_difference(float a, float b, float sum) { return fmaf(a - b, a - b, sum); }

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    KERNEL(const element *__restrict__ a, const element *__restrict__ b, float *__restrict__ y,
           float *__restrict__ partials, unsigned *__restrict__ arrivals, u64 length, u64 count) {
    const u64 vectors = length / WIDTH;
    const vec *a_vectors = reinterpret_cast<const vec *>(a);
    const vec *b_vectors = reinterpret_cast<const vec *>(b);
    const u64 first = (u64)blockIdx.x * (THREADS * VECTORS_PER_THREAD) + threadIdx.x;
    const u64 step = (u64)gridDim.x * (THREADS * VECTORS_PER_THREAD);

    float sums[WIDTH] = {};
    for (u64 start = first; start < vectors; start += step) {
        if (start + (VECTORS_PER_THREAD - 1) * THREADS < vectors) {
            vec left[VECTORS_PER_THREAD], right[VECTORS_PER_THREAD];
#pragma unroll
            for (int p = 0; p < VECTORS_PER_THREAD; p++) {
                left[p] = a_vectors[start + p * THREADS];
                right[p] = b_vectors[start + p * THREADS];
            }
#pragma unroll
            for (int p = 0; p < VECTORS_PER_THREAD; p++) {
#pragma unroll
                for (int i = 0; i < WIDTH; i++) {
                    sums[i] = TERM(widen(left[p].val[i]), widen(right[p].val[i]), sums[i]);
                }
            }
        } else {
#pragma unroll 1
            for (u64 vector = start; vector < vectors; vector += THREADS) {
                const vec left = a_vectors[vector], right = b_vectors[vector];
#pragma unroll
                for (int i = 0; i < WIDTH; i++) sums[i] = TERM(widen(left.val[i]), widen(right.val[i]), sums[i]);
            }
        }
    }
    // Tail: block 0 has more threads than remaining elements.
    const u64 tail = vectors * WIDTH + first;
    if (blockIdx.x == 0 && tail < length) sums[0] = TERM(widen(a[tail]), widen(b[tail]), sums[0]);

    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) sum += sums[i];
    if (grid_sum<THREADS / 32>(sum, threadIdx.x, partials, arrivals)) *y = sum / (float)count;
}
