// The codes of recipes for inputs, to the bit: every step is rounded to the element type.
//
// CODES_INT8: integers of -127 to 127 around zero, the scale is largest / 127 and 1e-5 at least, the code that of x times
// the scale's inverse. In f16 inverse and product stay in f32, and in others with CODES_IN_F32. With WHOLE_RANGE they are -128 to
// 127, the scale is largest / 127.5, and 2^-23 at least. CODES_E4M3: the scale is largest / 448, the code the
// nearest to x / scale, and that of nothing over nothing is 0. With SCALED_TO the scale is largest / SCALED_TO and not rounded.
// Where the largest is no number the scale is NaN, and all
// codes are 0.
#pragma once
#include "bf16_pairs.cuh"
#include "element.cuh"

// Numbers are multiplied by 1 / scale in two parts, of which the second is what the first leaves. Where both have 16 bits a quotient
// lies half way between two codes or at least 2^-16 of itself away from there, and the product is off by so much less that a half
// stays one.
#if defined(CODES_E4M3) && !defined(SCALED_TO) && !defined(ELEMENT_F32)
#define IN_PARTS
#endif

#if defined(ELEMENT_F16) && !defined(CODES_IN_F32)
#define CODES_IN_F32
#endif

#ifdef WHOLE_RANGE
constexpr float LEAST_CODE = -128.0f;
#else
constexpr float LEAST_CODE = -127.0f;
#endif

__device__ __forceinline__ float rounded(float value) { return widen(narrow(value)); }

// The scale for a largest magnitude, given as its bits.
__device__ __forceinline__ float scale_of(unsigned largest) {
    if (largest >= 0x7f800000u) return __uint_as_float(0x7fc00000u);
#if defined(SCALED_TO)
    return __fdiv_rn(__uint_as_float(largest), SCALED_TO);
#elif defined(WHOLE_RANGE)
    return fmaxf(rounded(__fdiv_rn(__uint_as_float(largest), 127.5f)), 0x1p-23f);
#elif defined(CODES_INT8)
    return fmaxf(rounded(__fdiv_rn(__uint_as_float(largest), 127.0f)), rounded(1e-5f));
#else
    return rounded(__fdiv_rn(__uint_as_float(largest), 448.0f));
#endif
}

struct encoder {
    float scale;
    float inverse;
    // Whether no step of a division by the scale leaves f32's range.
    bool ordinary;
    unsigned mask;
#ifdef IN_PARTS
    // What numbers and scale are multiplied by first where one does: a power of two, which changes no quotient.
    float power;
    float rest;
#endif

    __device__ __forceinline__ explicit encoder(float scale) : scale(scale), inverse(__frcp_rn(scale)) {
        ordinary = scale >= 0x1p-100f && scale <= 0x1p100f;
        mask = scale == scale ? 0xffffffffu : 0u;
#ifdef IN_PARTS
        power = ordinary ? 1.0f : scale < 1.0f ? 0x1p100f : 0x1p-100f;
        const float moved = scale * power;
        // Rounded down, so that the rest is not negative: -0 stays what it is.
        inverse = __frcp_rd(moved);
        rest = moved == 0.0f ? 0.0f : __fmul_rn(__fmaf_rn(-moved, inverse, 1.0f), inverse);
#elif defined(CODES_INT8) && !defined(CODES_IN_F32)
        inverse = rounded(inverse);
#endif
    }

#ifdef CODES_INT8

    // In the lowest byte; added to so large a number it is rounded to an integer.
    __device__ __forceinline__ static unsigned code(float product) {
        return __float_as_uint(__fadd_rn(fminf(fmaxf(product, LEAST_CODE), 127.0f), 0x1.8p23f));
    }

    __device__ __forceinline__ unsigned two(float first, float second) const {
        first = __fmul_rn(first, inverse);
        second = __fmul_rn(second, inverse);
#if defined(ELEMENT_BF16) && !defined(CODES_IN_F32) && __CUDA_ARCH__ >= 800
        const unsigned pair = round_pair(first, second);
        first = lower(pair);
        second = upper(pair);
#elif !defined(CODES_IN_F32)
        first = rounded(first);
        second = rounded(second);
#endif
        return __byte_perm(code(first), code(second), 0x0040);
    }

    // The codes of four numbers, the first in the lowest byte. No scale is out of the ordinary here.
    template <bool> __device__ __forceinline__ unsigned four_if(float first, float second, float third, float fourth) const {
        return __byte_perm(two(first, second), two(third, fourth), 0x5410) & mask;
    }

#else

#ifdef IN_PARTS
    // x / scale. Of nothing over nothing it is 0.
    template <bool ORDINARY> __device__ __forceinline__ float quotient(float x) const {
        if (ORDINARY) return __fmaf_rn(x, inverse, __fmul_rn(x, rest));
        const float moved = __fmul_rn(x, power), exact = __fmaf_rn(moved, inverse, __fmul_rn(moved, rest));
        return exact == exact ? exact : 0.0f;
    }
#else
    // x / scale. Where that is ordinary a product with the inverse is off by little more than a step; what it is too much corrects
    // it, in an order in which -0 stays what it is.
    template <bool ORDINARY> __device__ __forceinline__ float quotient(float x) const {
        if (ORDINARY) {
            const float rough = __fmul_rn(x, inverse);
            return __fmaf_rn(-__fmaf_rn(rough, scale, -x), inverse, rough);
        }
        const float exact = __fdiv_rn(x, scale);
        return exact == exact ? exact : 0.0f;
    }
#endif

    template <bool ORDINARY> __device__ __forceinline__ unsigned two(float low, float high) const {
        unsigned short codes;
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;"
            : "=h"(codes)
            : "f"(quotient<ORDINARY>(high)), "f"(quotient<ORDINARY>(low)));
        return codes;
    }

    // The codes of four numbers, the first in the lowest byte, where the scale is ordinary or is not.
    template <bool ORDINARY> __device__ __forceinline__ unsigned four_if(float first, float second, float third, float fourth) const {
        return (two<ORDINARY>(first, second) | two<ORDINARY>(third, fourth) << 16) & mask;
    }

#endif
};
