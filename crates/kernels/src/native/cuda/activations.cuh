// Activations of a number. NaN comes out as NaN; silu and gelu of minus infinity are NaN too, being infinity times zero.
//
// Those with an exponential are made of the hardware's approximations of 2^x and 1/x, of one instruction each and within 2
// units of the last digit. With memory at 4.3 TB/s, 132 multiprocessors of 1.8 GHz have about 28 instructions for each
// element that is read and written in bf16. The heaviest of these takes 9, and 12 for f32; by erff or expf and a division it
// was 25.
#pragma once

__device__ __forceinline__ float power_of_two(float x) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
}

__device__ __forceinline__ float inverse(float x) {
    float one_over;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(one_over) : "f"(x));
    return one_over;
}

constexpr float LOG2_E = 1.4426950408889634f;

__device__ __forceinline__ float exponential(float x) { return power_of_two(LOG2_E * x); }

__device__ __forceinline__ float sigmoid(float x) { return inverse(1.0f + exponential(-x)); }

__device__ __forceinline__ float silu(float x) { return x * sigmoid(x); }

// The tail of the normal distribution function at |x|: 2 to the power of a polynomial, which beyond what it was fitted to falls
// faster. For f32 gelu is off by less than 1e-7 and the tail by less than 1e-4 of itself up to 5.5. What is rounded to 16 bits
// needs a shorter one, by which gelu is off by less than 1e-6 and the tail by less than 5e-5 of itself up to 3.
__device__ __forceinline__ float normal_tail(float a) {
#if defined(ELEMENT_F16) || defined(ELEMENT_BF16)
    float power = -4.9292981e-4f;
    power = fmaf(power, a, 7.2305626e-3f);
    power = fmaf(power, a, -5.222372e-2f);
    power = fmaf(power, a, -4.59515e-1f);
    power = fmaf(power, a, -1.1510307f);
#else
    float power = -8.501678e-7f;
    power = fmaf(power, a, 1.4726667e-5f);
    power = fmaf(power, a, -6.6904227e-5f);
    power = fmaf(power, a, -4.2272456e-4f);
    power = fmaf(power, a, 7.421449e-3f);
    power = fmaf(power, a, -5.272367e-2f);
    power = fmaf(power, a, -4.591434e-1f);
    power = fmaf(power, a, -1.1511111f);
#endif
    return power_of_two(fmaf(power, a, -1.0f));
}

__device__ __forceinline__ float normal_share(float x) {
    const float tail = normal_tail(fabsf(x));
    return x < 0.0f ? tail : 1.0f - tail;
}

__device__ __forceinline__ float gelu(float x) { return x * normal_share(x); }

// The same in two instructions fewer, but NaN of infinity.
__device__ __forceinline__ float finite_gelu(float x) { return fmaf(-fabsf(x), normal_tail(fabsf(x)), fmaxf(x, 0.0f)); }

// (1 + tanh(u)) / 2 is sigmoid(2 u).
__device__ __forceinline__ float gelu_tanh(float x) { return x * sigmoid(x * fmaf(0.071354814f * x, x, 1.5957691f)); }

__device__ __forceinline__ float relu(float x) { return x < 0.0f ? 0.0f : x; }

__device__ __forceinline__ float leakyrelu(float x) { return x < 0.0f ? 0.01f * x : x; }

__device__ __forceinline__ float relu6(float x) { return x < 0.0f ? 0.0f : x > 6.0f ? 6.0f : x; }

// The factor is divided first: the product of a large x and 6 overflows.
__device__ __forceinline__ float hardswish(float x) { return x * (relu6(x + 3.0f) / 6.0f); }
