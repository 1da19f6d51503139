// Scales and conversions of float8 training operands (torchao float8 with tensorwise or axiswise scaling), from bf16.
//
//   scale = max(amax, 1e-12) / MAX_VALUE in f32, or
//   scale = amax / MAX_VALUE rounded up to a power of two, so that no value saturates and quotients are exact;
//   q     = float8(x / scale), rounded to nearest even and saturated.
// A NaN or infinite amax makes the scale NaN, and with it every result of the matmul.
//
// Optional:
//   QUANT_E5M2           quantize to e5m2 (maximum 57344) instead of e4m3 (maximum 448)
//   POWER_OF_TWO_SCALES  round scales up to powers of two
#pragma once
#include "bf16x2.cuh"

typedef unsigned long long u64;
typedef unsigned short bf16;

// Largest finite value of the float8 format.
constexpr float MAX_VALUE =
#ifdef QUANT_E5M2
    57344.0f;
#else
    448.0f;
#endif

// Scale from amax, which is given as the bits of a bf16.
__device__ __forceinline__ float scale_from_amax(unsigned amax) {
    if (amax >= 0x7f80u) return __uint_as_float(0x7fc00000u);
#ifdef POWER_OF_TWO_SCALES
    const unsigned bits = __float_as_uint(__fdiv_rn(bf16x2_low(amax), MAX_VALUE));
    const unsigned mantissa = bits & 0x7fffffu;
    // A subnormal quotient above 2^-127 rounds up to 2^-126.
    const unsigned exponent = (bits >> 23) + (bits >> 23 == 0 ? mantissa > 0x400000u : mantissa != 0);
    return __uint_as_float(exponent == 0 ? 0x400000u : exponent << 23);
#else
    return __fdiv_rn(fmaxf(bf16x2_low(amax), 1e-12f), MAX_VALUE);
#endif
}

// Divides by a scale without a division per element.
struct divider {
    float scale;
    float inverse;

    __device__ __forceinline__ explicit divider(unsigned amax) : scale(scale_from_amax(amax)) {
#ifdef POWER_OF_TWO_SCALES
        // A scale of 2^-127, which is subnormal, leaves values unscaled.
        inverse = scale < 0x1p-126f ? 1.0f : __frcp_rn(scale);
#else
        inverse = __frcp_rn(scale);
#endif
    }

    // x / scale, correctly rounded: the approximate quotient is off by little more than an ULP, and one Newton step
    // with its residual corrects it.
    __device__ __forceinline__ float quotient(float x) const {
        const float approx = __fmul_rn(x, inverse);
#ifdef POWER_OF_TWO_SCALES
        return approx;
#else
        return __fmaf_rn(-__fmaf_rn(approx, scale, -x), inverse, approx);
#endif
    }
};

// Converts two quotients; the first result is in the lower byte.
__device__ __forceinline__ unsigned to_float8(float first, float second) {
    unsigned short quantized;
#ifdef QUANT_E5M2
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(quantized) : "f"(second), "f"(first));
#else
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(quantized) : "f"(second), "f"(first));
#endif
    return quantized;
}
