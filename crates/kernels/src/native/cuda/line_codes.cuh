// Codes of 8 bits for operands of products, from bf16: what a largest magnitude makes of the scale, and the scale of a number.
//
// CODES_E5M2: e5m2, whose largest number is 57344; e4m3 otherwise, with 448. POWER_OF_TWO: the scale is largest / 448 rounded
// up to a power of two, so that nothing saturates and quotients are exact; otherwise it is that quotient in f32, of 1e-12 at
// least. Where the largest is no number the scale is NaN, and so is every product.
#pragma once
#include "bf16_pairs.cuh"

typedef unsigned long long u64;
typedef unsigned short bf16;

constexpr float MOST =
#ifdef CODES_E5M2
    57344.0f;
#else
    448.0f;
#endif

// The scale for a largest magnitude, given as the bits of a bf16.
__device__ __forceinline__ float scale_of(unsigned largest) {
    if (largest >= 0x7f80u) return __uint_as_float(0x7fc00000u);
#ifdef POWER_OF_TWO
    const unsigned bits = __float_as_uint(__fdiv_rn(lower(largest), MOST));
    const unsigned mantissa = bits & 0x7fffffu;
    // Of the numbers below 2^-126, those above 2^-127 round up.
    const unsigned exponent = (bits >> 23) + (bits >> 23 == 0 ? mantissa > 0x400000u : mantissa != 0);
    return __uint_as_float(exponent == 0 ? 0x400000u : exponent << 23);
#else
    return __fdiv_rn(fmaxf(lower(largest), 1e-12f), MOST);
#endif
}

struct divisor {
    float scale;
    float inverse;

    __device__ __forceinline__ explicit divisor(unsigned largest) : scale(scale_of(largest)) {
#ifdef POWER_OF_TWO
        // 2^-127, which is below the normal numbers, is the scale of what is taken as it is.
        inverse = scale < 0x1p-126f ? 1.0f : __frcp_rn(scale);
#else
        inverse = __frcp_rn(scale);
#endif
    }

    // x over the scale, correctly rounded: a product with the inverse is off by little more than a step, and what it is too
    // much corrects it.
    __device__ __forceinline__ float of(float x) const {
        const float rough = __fmul_rn(x, inverse);
#ifdef POWER_OF_TWO
        return rough;
#else
        return __fmaf_rn(-__fmaf_rn(rough, scale, -x), inverse, rough);
#endif
    }
};

// The codes of two quotients, the first in the lower byte.
__device__ __forceinline__ unsigned codes_of(float first, float second) {
    unsigned short codes;
#ifdef CODES_E5M2
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(second), "f"(first));
#else
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(second), "f"(first));
#endif
    return codes;
}
