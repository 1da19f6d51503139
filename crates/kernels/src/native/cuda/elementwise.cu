// Sums and copies of elements, computed in float: y = OPERATION(a) or y = OPERATION(a, b), with a factor in the bits of the
// last argument.
//
// Each thread takes PIECES pieces of WIDTH elements, THREADS pieces apart, and loads all before it uses any; the elements
// after the last whole piece are taken one by one by the first threads.
#include "element.cuh"

// Keeps every bit, those of NaN too.
__device__ __forceinline__ element copy(element a, element, float) { return a; }

__device__ __forceinline__ element scale(element a, element, float factor) { return narrow(factor * widen(a)); }

__device__ __forceinline__ element add(element a, element b, float) { return narrow(widen(a) + widen(b)); }

__device__ __forceinline__ element triad(element a, element b, float factor) {
    return narrow(fmaf(factor, widen(b), widen(a)));
}

#if INPUTS == 1
#define ARGUMENTS const element *__restrict__ a, element *__restrict__ y, u64 length, u64 factor_bits
#else
#define ARGUMENTS                                                                                                     \
    const element *__restrict__ a, const element *__restrict__ b, element *__restrict__ y, u64 length, u64 factor_bits
#endif

extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(ARGUMENTS) {
#if INPUTS == 1
    const element *b = a;
#endif
    const float factor = __uint_as_float((unsigned)factor_bits);
    const u64 pieces = length / WIDTH;
    const u64 first = (u64)blockIdx.x * (THREADS * PIECES) + threadIdx.x;
    const piece *from_a = reinterpret_cast<const piece *>(a);
    const piece *from_b = reinterpret_cast<const piece *>(b);
    piece *to = reinterpret_cast<piece *>(y);

    if (first + (PIECES - 1) * THREADS < pieces) {
        piece of_a[PIECES], of_b[PIECES];
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            of_a[p] = from_a[first + p * THREADS];
            of_b[p] = INPUTS == 1 ? of_a[p] : from_b[first + p * THREADS];
        }
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                of_a[p].parts[i] = OPERATION(of_a[p].parts[i], of_b[p].parts[i], factor);
            }
            to[first + p * THREADS] = of_a[p];
        }
    } else {
        for (u64 at = first; at < pieces && at < first + PIECES * THREADS; at += THREADS) {
            piece of_a = from_a[at];
            const piece of_b = from_b[at];
#pragma unroll
            for (int i = 0; i < WIDTH; i++) of_a.parts[i] = OPERATION(of_a.parts[i], of_b.parts[i], factor);
            to[at] = of_a;
        }
    }

    // Block 0 has more threads than there can be elements left over.
    const u64 left_over = pieces * WIDTH + first;
    if (blockIdx.x == 0 && left_over < length) y[left_over] = OPERATION(a[left_over], b[left_over], factor);
}
