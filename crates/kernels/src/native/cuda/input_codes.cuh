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

// Ways to x / scale.

// By the inverse.
struct by_product {
    float inverse;

    __device__ __forceinline__ float operator()(float x) const { return __fmul_rn(x, inverse); }
};

// By one in two parts, of which the second is what the first leaves, which is off by so little that a half between two codes stays one.
struct by_parts {
    float inverse;
    float rest;

    // The first is rounded down, so that the rest is not negative and -0 stays what it is.
    __device__ __forceinline__ explicit by_parts(float scale) : inverse(__frcp_rd(scale)) {
        rest = __fmul_rn(__fmaf_rn(-scale, inverse, 1.0f), inverse);
    }

    __device__ __forceinline__ float operator()(float x) const { return __fmaf_rn(x, inverse, __fmul_rn(x, rest)); }
};

// By the inverse, of which what it is too much is taken off, in an order in which -0 stays what it is.
struct by_correction {
    float scale;
    float inverse;

    __device__ __forceinline__ float operator()(float x) const {
        const float rough = __fmul_rn(x, inverse);
        return __fmaf_rn(-__fmaf_rn(rough, scale, -x), inverse, rough);
    }
};

// Of any scale: nothing over nothing is 0, and so is anything over NaN.
struct by_any {
    float scale;

    __device__ __forceinline__ float operator()(float x) const {
        const float quotient = __fdiv_rn(x, scale);
        return quotient == quotient ? quotient : 0.0f;
    }
};

struct no_number {
    __device__ __forceinline__ float operator()(float) const { return 0.0f; }
};

// How numbers are divided by one scale, asked once for all of them.
struct encoder {
    float scale;
    float inverse;

    __device__ __forceinline__ explicit encoder(float scale) : scale(scale), inverse(__frcp_rn(scale)) {
#if defined(CODES_INT8) && !defined(CODES_IN_F32)
        inverse = rounded(inverse);
#endif
    }

    // Calls `then` with what divides.
    template <class Then> __device__ __forceinline__ void with_quotient(const Then &then) const {
#ifdef CODES_INT8
        if (scale == scale) return then(by_product{inverse});
        then(no_number());
#else
        // Whether no step of a division leaves f32's range.
        if (!(scale >= 0x1p-100f && scale <= 0x1p100f)) return then(by_any{scale});
#if defined(SCALED_TO) || defined(ELEMENT_F32)
        then(by_correction{scale, inverse});
#else
        // A quotient of numbers of 16 bits is an odd number below 32 times a power of two, which may be half way between two codes, or
        // at least 2^-16 of itself away from there. So a product with the inverse decides right, if halves come out as halves. They do
        // where the inverse is off by no more than 2^-25. Half of the smallest code never comes out as more, and so becomes 0, as it
        // should; and where 3 scales are no number of the type there are no other halves.
        const float off = fabsf(__fmaf_rn(-scale, inverse, 1.0f)), thrice = 3.0f * scale;
        if (off <= 0x1p-25f || rounded(thrice) != thrice) return then(by_product{inverse});
        then(by_parts(scale));
#endif
#endif
    }
};

// The codes of four numbers, the first in the lowest byte.
#ifdef CODES_INT8

// In the lowest byte; added to so large a number it is rounded to an integer.
__device__ __forceinline__ unsigned code(float quotient) {
    return __float_as_uint(__fadd_rn(fminf(fmaxf(quotient, LEAST_CODE), 127.0f), 0x1.8p23f));
}

__device__ __forceinline__ unsigned two_codes(float first, float second) {
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

__device__ __forceinline__ unsigned four_codes(float first, float second, float third, float fourth) {
    return __byte_perm(two_codes(first, second), two_codes(third, fourth), 0x5410);
}

#else

__device__ __forceinline__ unsigned four_codes(float first, float second, float third, float fourth) {
    unsigned codes;
    asm("{.reg .b16 low, high;\n"
        "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
        "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
        "mov.b32 %0, {low, high};}"
        : "=r"(codes)
        : "f"(first), "f"(second), "f"(third), "f"(fourth));
    return codes;
}

#endif
