// Activation functions in f32. NaN is propagated; SiLU and GELU of minus infinity are NaN (infinity times zero).
//
// Exponentials use the hardware approximations `ex2.approx.ftz` and `rcp.approx.ftz` (PTX ISA, floating-point
// instructions): one instruction each, error at most 2 ULP. GELU evaluates the upper tail of the normal distribution as
// 2 to the power of a fitted polynomial instead of erff.
//
// Roofline of a bf16 element-wise kernel on an H200: 4 bytes per element at 4.3 TB/s leave 132 SMs x 128 lanes at 1.8
// GHz about 28 instructions per element. The most expensive function here takes 9 (12 for f32).
//
// Parameters: none. ELEMENT_F16 or ELEMENT_BF16 selects the shorter polynomial of GELU.
#pragma once

__device__ __forceinline__ float exp2_approx(float x) {
    float exponent;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(exponent) : "f"(x));
    return exponent;
}

__device__ __forceinline__ float rcp_approx(float x) {
    float reciprocal;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(x));
    return reciprocal;
}

constexpr float LOG2_E = 1.4426950408889634f;

__device__ __forceinline__ float exp_approx(float x) { return exp2_approx(LOG2_E * x); }

__device__ __forceinline__ float sigmoid(float x) { return rcp_approx(1.0f + exp_approx(-x)); }

__device__ __forceinline__ float silu(float x) { return x * sigmoid(x); }

// Upper tail of the standard normal distribution, 1 - cdf(magnitude): 2 to the power of a fitted polynomial, which
// decreases faster than the tail outside the fitted range.
//   f32:     error of GELU below 1e-7; relative error of the tail below 1e-4 up to 5.5
//   16 bits: error of GELU below 1e-6; relative error of the tail below 5e-5 up to 3
__device__ __forceinline__ float normal_tail(float magnitude) {
#if defined(ELEMENT_F16) || defined(ELEMENT_BF16)
    float exponent = -4.9292981e-4f;
    exponent = fmaf(exponent, magnitude, 7.2305626e-3f);
    exponent = fmaf(exponent, magnitude, -5.222372e-2f);
    exponent = fmaf(exponent, magnitude, -4.59515e-1f);
    exponent = fmaf(exponent, magnitude, -1.1510307f);
#else
    float exponent = -8.501678e-7f;
    exponent = fmaf(exponent, magnitude, 1.4726667e-5f);
    exponent = fmaf(exponent, magnitude, -6.6904227e-5f);
    exponent = fmaf(exponent, magnitude, -4.2272456e-4f);
    exponent = fmaf(exponent, magnitude, 7.421449e-3f);
    exponent = fmaf(exponent, magnitude, -5.272367e-2f);
    exponent = fmaf(exponent, magnitude, -4.591434e-1f);
    exponent = fmaf(exponent, magnitude, -1.1511111f);
#endif
    return exp2_approx(fmaf(exponent, magnitude, -1.0f));
}

// Standard normal cumulative distribution function.
__device__ __forceinline__ float normal_cdf(float x) {
    const float tail = normal_tail(fabsf(x));
    return x < 0.0f ? tail : 1.0f - tail;
}

__device__ __forceinline__ float gelu(float x) { return x * normal_cdf(x); }

// GELU with two instructions fewer; NaN for infinite arguments.
__device__ __forceinline__ float finite_gelu(float x) { return fmaf(-fabsf(x), normal_tail(fabsf(x)), fmaxf(x, 0.0f)); }

// Tanh approximation of GELU (Hendrycks and Gimpel 2016), with (1 + tanh(u)) / 2 = sigmoid(2 u).
__device__ __forceinline__ float gelu_tanh(float x) { return x * sigmoid(x * fmaf(0.071354814f * x, x, 1.5957691f)); }

__device__ __forceinline__ float relu(float x) { return x < 0.0f ? 0.0f : x; }

__device__ __forceinline__ float leakyrelu(float x) { return x < 0.0f ? 0.01f * x : x; }

__device__ __forceinline__ float relu6(float x) { return x < 0.0f ? 0.0f : x > 6.0f ? 6.0f : x; }

// Divides before multiplying, because 6 x overflows for large x.
__device__ __forceinline__ float hardswish(float x) { return x * (relu6(x + 3.0f) / 6.0f); }
