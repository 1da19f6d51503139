// Online softmax (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"): running maximum m and
// running sum s of exp(x - m), in one pass over the logits.
//   add x:         m' = max(m, x);      s' = s exp(m - m') + exp(x - m')
//   combine a, b:  m' = max(m_a, m_b);  s' = s_a exp(m_a - m') + s_b exp(m_b - m')
//
// Parameters: none.
#pragma once
#include "activations.cuh"
#include "grid_reduce.cuh"

struct softmax_state {
    float max;
    float sum;
};

__device__ __forceinline__ float neg_infinity() { return __uint_as_float(0xff800000u); }

// Reference point of the exponents: 0 instead of minus infinity, because inf - inf is NaN.
__device__ __forceinline__ float finite_max(float max) { return max == neg_infinity() ? 0.0f : max; }

// Adds COUNT logits with one rescaling of the sum.
template <int COUNT> __device__ __forceinline__ void accumulate(softmax_state &state, const float (&values)[COUNT]) {
    float new_max = state.max;
#pragma unroll
    for (int i = 0; i < COUNT; i++) new_max = fmaxf(new_max, values[i]);
    const float base = finite_max(new_max);
    float sum = state.sum * exp_approx(state.max - base);
#pragma unroll
    for (int i = 0; i < COUNT; i++) sum += exp_approx(values[i] - base);
    state = {new_max, sum};
}

// Combined state of all lanes of a warp, returned to each of them.
__device__ __forceinline__ softmax_state warp_combine(softmax_state local) {
    float warp_max = local.max;
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        warp_max = fmaxf(warp_max, __shfl_xor_sync(0xffffffffu, warp_max, distance));
    }
    return {warp_max, warp_sum(local.sum * exp_approx(local.max - finite_max(warp_max)))};
}
