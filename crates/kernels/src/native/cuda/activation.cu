// An activation of every element: y[i] = ACTIVATE(x[i]), computed in float. x and y may be the same memory.
//
// Each thread takes PIECES pieces of WIDTH elements, THREADS pieces apart; the elements after the last whole piece are
// taken one by one by the first threads. NaN comes out as NaN.
#include "element.cuh"

__device__ __forceinline__ float relu(float x) { return x < 0.0f ? 0.0f : x; }

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

__device__ __forceinline__ float leakyrelu(float x) { return x < 0.0f ? 0.01f * x : x; }

__device__ __forceinline__ float relu6(float x) { return x < 0.0f ? 0.0f : x > 6.0f ? 6.0f : x; }

__device__ __forceinline__ float gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f)); }

__device__ __forceinline__ float silu(float x) { return x / (1.0f + expf(-x)); }

// The factor is divided first: the product of a large x and 6 overflows.
__device__ __forceinline__ float hardswish(float x) { return x * (relu6(x + 3.0f) / 6.0f); }

extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(const element *x, element *y, u64 rows, u64 columns) {
    const u64 length = rows * columns;
    const u64 pieces = length / WIDTH;
    const u64 first = (u64)blockIdx.x * (THREADS * PIECES) + threadIdx.x;
    const piece *from = reinterpret_cast<const piece *>(x);
    piece *to = reinterpret_cast<piece *>(y);

    piece loaded[PIECES];
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        if (first + p * THREADS < pieces) loaded[p] = from[first + p * THREADS];
    }
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        if (first + p * THREADS < pieces) {
#pragma unroll
            for (int i = 0; i < WIDTH; i++) loaded[p].parts[i] = narrow(ACTIVATE(widen(loaded[p].parts[i])));
            to[first + p * THREADS] = loaded[p];
        }
    }

    // Block 0 has more threads than there can be elements left over.
    const u64 left_over = pieces * WIDTH + first;
    if (blockIdx.x == 0 && left_over < length) y[left_over] = narrow(ACTIVATE(widen(x[left_over])));
}
