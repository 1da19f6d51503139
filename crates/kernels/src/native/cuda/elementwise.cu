// Element-wise functions in f32: y = OPERATION(a) or y = OPERATION(a, b), with a constant factor in the bits of the
// last argument. With COPY 1 every bit is preserved, also of NaN.
//
// Contract: a, b, y[length], element dtype; factor_bits: bits of an f32.
//
// Each thread processes VECTORS_PER_THREAD vectors of WIDTH elements, THREADS vectors apart, and loads all of them
// before it uses the first.
//
// Traffic: every operand once. Roofline: memory; the most expensive function takes about 17 instructions per element,
// where the traffic of a bf16 element leaves time for 28 (activations.cuh).
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH               elements per vector access (element.cuh)
//   KERNEL              kernel name
//   THREADS             threads per block
//   VECTORS_PER_THREAD  vectors per thread
//   INPUTS              number of inputs: 1 or 2
//   OPERATION           function of this file: scale, add, triad, silu_mul, sigmoid, silu, gelu, gelu_tanh, or
//                       <activation>_gradient
//   COPY                1 to copy bits instead

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif
#ifndef THREADS
#error "THREADS: threads per block"
#endif
#ifndef VECTORS_PER_THREAD
#error "VECTORS_PER_THREAD: vectors per thread"
#endif
#ifndef INPUTS
#error "INPUTS: number of inputs: 1 or 2"
#endif
#ifndef OPERATION
#error "OPERATION: function of this file"
#endif
#ifndef COPY
#error "COPY: 1 to copy bits instead"
#endif

#include "activations.cuh"
#include "element.cuh"
#include "activation_grad.cuh"

__device__ __forceinline__ float scale(float a, float, float factor) { return factor * a; }

__device__ __forceinline__ float add(float a, float b, float) { return a + b; }

__device__ __forceinline__ float triad(float a, float b, float factor) { return fmaf(factor, b, a); }

__device__ __forceinline__ float silu_mul(float a, float b, float) { return silu(a) * b; }

__device__ __forceinline__ float sigmoid(float a, float, float) { return sigmoid(a); }

__device__ __forceinline__ float silu(float a, float, float) { return silu(a); }

__device__ __forceinline__ float gelu(float a, float, float) { return gelu(a); }

__device__ __forceinline__ float gelu_tanh(float a, float, float) { return gelu_tanh(a); }

__device__ __forceinline__ float relu_gradient(float a, float b, float) { return relu_grad(a, b); }

__device__ __forceinline__ float sigmoid_gradient(float a, float b, float) { return sigmoid_grad(a, b); }

__device__ __forceinline__ float leakyrelu_gradient(float a, float b, float) { return leakyrelu_grad(a, b); }

__device__ __forceinline__ float relu6_gradient(float a, float b, float) { return relu6_grad(a, b); }

__device__ __forceinline__ float gelu_gradient(float a, float b, float) { return gelu_grad(a, b); }

__device__ __forceinline__ float silu_gradient(float a, float b, float) { return silu_grad(a, b); }

__device__ __forceinline__ float hardswish_gradient(float a, float b, float) { return hardswish_grad(a, b); }

__device__ __forceinline__ vec apply(vec a, vec b, float factor) {
#if COPY
    return a;
#else
    float results[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; i++) results[i] = OPERATION(widen(a.val[i]), widen(b.val[i]), factor);
    return narrow_all(results);
#endif
}

__device__ __forceinline__ element apply(element a, element b, float factor) {
#if COPY
    return a;
#else
    return narrow(OPERATION(widen(a), widen(b), factor));
#endif
}

#if INPUTS == 1
#define ARGUMENTS const element *__restrict__ a, element *__restrict__ y, u64 length, u64 factor_bits
#else
#define ARGUMENTS                                                                                                      \
    const element *__restrict__ a, const element *__restrict__ b, element *__restrict__ y, u64 length, u64 factor_bits
#endif

extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(ARGUMENTS) {
#if INPUTS == 1
    const element *b = a;
#endif
    const float factor = __uint_as_float((unsigned)factor_bits);
    const u64 vecs = length / WIDTH;
    const u64 first = (u64)blockIdx.x * (THREADS * VECTORS_PER_THREAD) + threadIdx.x;
    const vec *a_vecs = reinterpret_cast<const vec *>(a);
    const vec *b_vecs = reinterpret_cast<const vec *>(b);
    vec *y_vecs = reinterpret_cast<vec *>(y);

    if (first + (VECTORS_PER_THREAD - 1) * THREADS < vecs) {
        vec a_loaded[VECTORS_PER_THREAD], b_loaded[VECTORS_PER_THREAD];
#pragma unroll
        for (int p = 0; p < VECTORS_PER_THREAD; p++) {
            a_loaded[p] = a_vecs[first + p * THREADS];
            b_loaded[p] = INPUTS == 1 ? a_loaded[p] : b_vecs[first + p * THREADS];
        }
#pragma unroll
        for (int p = 0; p < VECTORS_PER_THREAD; p++)
            y_vecs[first + p * THREADS] = apply(a_loaded[p], b_loaded[p], factor);
    } else {
        for (u64 v = first; v < vecs && v < first + VECTORS_PER_THREAD * THREADS; v += THREADS) {
            y_vecs[v] = apply(a_vecs[v], b_vecs[v], factor);
        }
    }

    // Tail: block 0 has more threads than there are elements behind the last whole vector.
    const u64 tail = vecs * WIDTH + first;
    if (blockIdx.x == 0 && tail < length) y[tail] = apply(a[tail], b[tail], factor);
}
