// Dynamic quantization of layer inputs, bit-identical to torchao: every step is rounded to the element dtype, as the
// eager PyTorch operations do.
//
//   format                             scale                              quantized value
//   QUANT_INT8                         max(amax / 127, QUANT_EPSILON)     round(x * (1 / scale)), clamped to +-127
//   QUANT_INT8 with QUANT_FULL_RANGE   max(amax / 127.5, QUANT_EPSILON)   round(x * (1 / scale)), clamped to -128..127
//   QUANT_E4M3                         amax / 448                         e4m3(x / scale); 0 / 0 gives 0
//   AMAX_TARGET                        amax / AMAX_TARGET, not rounded    (scale only)
// A NaN or infinite amax makes the scale NaN and all quantized values 0.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH             elements per vector access (element.cuh)
//   QUANT_INT8 | QUANT_E4M3  quantized dtype; e4m3 unless QUANT_INT8 is defined
// Optional:
//   QUANT_IN_F32      the reciprocal and products stay in f32 instead of the element dtype; implied by ELEMENT_F16
//   QUANT_FULL_RANGE  int8 range of -128 to 127
//   QUANT_EPSILON     smallest scale of int8, a float; required with QUANT_INT8 unless AMAX_TARGET is defined
//   AMAX_TARGET       float to which amax is mapped, instead of the maximum of the format
#pragma once
#include "bf16x2.cuh"
#include "element.cuh"

#if defined(QUANT_INT8) && !defined(AMAX_TARGET) && !defined(QUANT_EPSILON)
#error "QUANT_EPSILON: smallest scale of int8, a float"
#endif

#if defined(ELEMENT_F16) && !defined(QUANT_IN_F32)
#define QUANT_IN_F32
#endif

#ifdef QUANT_FULL_RANGE
constexpr float QUANT_MIN = -128.0f;
#else
constexpr float QUANT_MIN = -127.0f;
#endif

__device__ __forceinline__ float round_to_element(float value) { return widen(narrow(value)); }

// Scale from amax, which is given as its bits.
__device__ __forceinline__ float scale_from_amax(unsigned amax) {
    if (amax >= 0x7f800000u) return __uint_as_float(0x7fc00000u);
#if defined(AMAX_TARGET)
    return __fdiv_rn(__uint_as_float(amax), AMAX_TARGET);
#elif defined(QUANT_FULL_RANGE)
    return fmaxf(round_to_element(__fdiv_rn(__uint_as_float(amax), 127.5f)), QUANT_EPSILON);
#elif defined(QUANT_INT8)
    return fmaxf(round_to_element(__fdiv_rn(__uint_as_float(amax), 127.0f)), round_to_element(QUANT_EPSILON));
#else
    return round_to_element(__fdiv_rn(__uint_as_float(amax), 448.0f));
#endif
}

// Implementations of x / scale.

// Multiplication by the reciprocal.
struct reciprocal_division {
    float inverse;

    __device__ __forceinline__ float operator()(float x) const { return __fmul_rn(x, inverse); }
};

// Multiplication by a reciprocal in two parts, high and residual: accurate enough that midpoints between two quantized
// values stay midpoints.
struct split_reciprocal_division {
    float inverse;
    float residual;

    // The high part is rounded down, so that the residual is not negative and -0 is preserved.
    __device__ __forceinline__ explicit split_reciprocal_division(float scale) : inverse(__frcp_rd(scale)) {
        residual = __fmul_rn(__fmaf_rn(-scale, inverse, 1.0f), inverse);
    }

    __device__ __forceinline__ float operator()(float x) const { return __fmaf_rn(x, inverse, __fmul_rn(x, residual)); }
};

// Multiplication by the reciprocal and one Newton correction, in an order that preserves -0.
struct corrected_division {
    float scale;
    float inverse;

    __device__ __forceinline__ float operator()(float x) const {
        const float approx = __fmul_rn(x, inverse);
        return __fmaf_rn(-__fmaf_rn(approx, scale, -x), inverse, approx);
    }
};

// IEEE division for any scale: 0 / 0 and x / NaN give 0.
struct general_division {
    float scale;

    __device__ __forceinline__ float operator()(float x) const {
        const float quotient = __fdiv_rn(x, scale);
        return quotient == quotient ? quotient : 0.0f;
    }
};

// All quantized values are 0 if the scale is NaN.
struct nan_scale_division {
    __device__ __forceinline__ float operator()(float) const { return 0.0f; }
};

// Selects the implementation of the division once per scale.
struct quantizer {
    float scale;
    float inverse;

    __device__ __forceinline__ explicit quantizer(float scale) : scale(scale), inverse(__frcp_rn(scale)) {
#if defined(QUANT_INT8) && !defined(QUANT_IN_F32)
        inverse = round_to_element(inverse);
#endif
    }

    // Calls `visit` with the division.
    template <class Visitor> __device__ __forceinline__ void with_division(const Visitor &visit) const {
#ifdef QUANT_INT8
        if (scale == scale) return visit(reciprocal_division{inverse});
        visit(nan_scale_division());
#else
        // The fast divisions require that no intermediate result leaves the range of f32.
        if (!(scale >= 0x1p-100f && scale <= 0x1p100f)) return visit(general_division{scale});
#if defined(AMAX_TARGET) || defined(ELEMENT_F32)
        visit(corrected_division{scale, inverse});
#else
        // Quotients of 16-bit floats are either midpoints between two e4m3 values (odd numbers below 32 times a power
        // of two) or at least a relative 2^-16 away from them. The product with the reciprocal therefore rounds
        // correctly if it is exact for midpoints, which holds for a relative error of the reciprocal of at most 2^-25.
        // Half of the smallest e4m3 value is never exceeded and becomes 0, as it should. If 3 scale is not
        // representable in the element dtype, no other midpoints occur.
        const float error = fabsf(__fmaf_rn(-scale, inverse, 1.0f)), three_scales = 3.0f * scale;
        if (error <= 0x1p-25f || round_to_element(three_scales) != three_scales)
            return visit(reciprocal_division{inverse});
        visit(split_reciprocal_division(scale));
#endif
#endif
    }
};

// Quantizes four quotients; the first result is in the lowest byte.
#ifdef QUANT_INT8

// Result in the lowest byte: adding 1.5 * 2^23 rounds to an integer, which is then in the lowest mantissa bits.
__device__ __forceinline__ unsigned to_int8(float quotient) {
    return __float_as_uint(__fadd_rn(fminf(fmaxf(quotient, QUANT_MIN), 127.0f), 0x1.8p23f));
}

__device__ __forceinline__ unsigned quantize2(float first, float second) {
#if defined(ELEMENT_BF16) && !defined(QUANT_IN_F32) && __CUDA_ARCH__ >= 800
    const unsigned pair = pack_bf16x2(first, second);
    first = bf16x2_low(pair);
    second = bf16x2_high(pair);
#elif !defined(QUANT_IN_F32)
    first = round_to_element(first);
    second = round_to_element(second);
#endif
    return __byte_perm(to_int8(first), to_int8(second), 0x0040);
}

__device__ __forceinline__ unsigned quantize4(float first, float second, float third, float fourth) {
    return __byte_perm(quantize2(first, second), quantize2(third, fourth), 0x5410);
}

#else

__device__ __forceinline__ unsigned quantize4(float first, float second, float third, float fourth) {
    unsigned quantized;
    asm("{.reg .b16 low, high;\n"
        "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
        "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
        "mov.b32 %0, {low, high};}"
        : "=r"(quantized)
        : "f"(first), "f"(second), "f"(third), "f"(fourth));
    return quantized;
}

#endif
