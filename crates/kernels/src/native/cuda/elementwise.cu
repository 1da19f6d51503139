// Functions of elements, computed in float: y = OPERATION(a) or y = OPERATION(a, b), with a factor in the bits of the last
// argument. With COPY 1 every bit is kept, those of NaN too.
//
// Each thread takes PIECES pieces of WIDTH elements, THREADS pieces apart, and loads all before it uses any; the elements
// after the last whole piece are taken one by one by the first threads.
// Traffic: every operand once. It is bound by memory: the heaviest function takes about 17 instructions for each element,
// where reading and writing one in bf16 leaves room for 28.
#include "activations.cuh"
#include "element.cuh"
#include "slopes.cuh"

__device__ __forceinline__ float scale(float a, float, float factor) { return factor * a; }

__device__ __forceinline__ float add(float a, float b, float) { return a + b; }

__device__ __forceinline__ float triad(float a, float b, float factor) { return fmaf(factor, b, a); }

__device__ __forceinline__ float silu_mul(float a, float b, float) { return silu(a) * b; }

__device__ __forceinline__ float sigmoid(float a, float, float) { return sigmoid(a); }

__device__ __forceinline__ float silu(float a, float, float) { return silu(a); }

__device__ __forceinline__ float gelu(float a, float, float) { return gelu(a); }

__device__ __forceinline__ float gelu_tanh(float a, float, float) { return gelu_tanh(a); }

__device__ __forceinline__ float relu_gradient(float a, float b, float) { return relu_slope(a, b); }

__device__ __forceinline__ float sigmoid_gradient(float a, float b, float) { return sigmoid_slope(a, b); }

__device__ __forceinline__ float leakyrelu_gradient(float a, float b, float) { return leakyrelu_slope(a, b); }

__device__ __forceinline__ float relu6_gradient(float a, float b, float) { return relu6_slope(a, b); }

__device__ __forceinline__ float gelu_gradient(float a, float b, float) { return gelu_slope(a, b); }

__device__ __forceinline__ float silu_gradient(float a, float b, float) { return silu_slope(a, b); }

__device__ __forceinline__ float hardswish_gradient(float a, float b, float) { return hardswish_slope(a, b); }

__device__ __forceinline__ piece of_pieces(piece a, piece b, float factor) {
#if COPY
    return a;
#else
    float results[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; i++) results[i] = OPERATION(widen(a.parts[i]), widen(b.parts[i]), factor);
    return narrow_all(results);
#endif
}

__device__ __forceinline__ element of_elements(element a, element b, float factor) {
#if COPY
    return a;
#else
    return narrow(OPERATION(widen(a), widen(b), factor));
#endif
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
        for (int p = 0; p < PIECES; p++) to[first + p * THREADS] = of_pieces(of_a[p], of_b[p], factor);
    } else {
        for (u64 at = first; at < pieces && at < first + PIECES * THREADS; at += THREADS) {
            to[at] = of_pieces(from_a[at], from_b[at], factor);
        }
    }

    // Block 0 has more threads than there can be elements left over.
    const u64 left_over = pieces * WIDTH + first;
    if (blockIdx.x == 0 && left_over < length) y[left_over] = of_elements(a[left_over], b[left_over], factor);
}
