// Quantization of bf16 to e4m3 with one scale per row, column or block, bit-identical to the host reference:
//   scale = bf16(amax / 448), 1 if that is below 2^-63;  q = e4m3(clip(bf16(x / scale), 448)).
//
// Division by multiplication with the reciprocal: the quotient of two bf16 is never closer than a relative 2^-17 to the
// midpoint between two adjacent bf16, and x times the reciprocal has a relative error of at most 2^-22. Both round to
// the same bf16. Conversions use `cvt.rn.satfinite.e4m3x2.f32` (PTX ISA, data movement and conversion: cvt).
#pragma once
#include "bf16x2.cuh"

typedef unsigned long long u64;
typedef unsigned short bf16;

// Scale from amax, which is given as the bits of a bf16.
__device__ __forceinline__ float scale_from_amax(unsigned amax) {
    const float scale = bf16x2_low(pack_bf16x2(bf16x2_low(amax) * (1.0f / 448.0f), 0.0f));
    return scale < 0x1p-63f ? 1.0f : scale;
}

// 1 / scale with a relative error of at most 2^-23. Neither operand nor result is subnormal.
__device__ __forceinline__ float reciprocal(float scale) {
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(scale));
    return inverse;
}

// Quantizes two quotients; the first result is in the lower byte.
__device__ __forceinline__ bf16 to_e4m3(float low, float high) {
    const unsigned quotients = pack_bf16x2(low, high);
    bf16 quantized;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;"
        : "=h"(quantized)
        : "f"(bf16x2_high(quotients)), "f"(bf16x2_low(quotients)));
    return quantized;
}

// Quantizes four quotients; the first result is in the lowest byte.
__device__ __forceinline__ unsigned to_e4m3(float first, float second, float third, float fourth) {
    return to_e4m3(first, second) | (unsigned)to_e4m3(third, fourth) << 16;
}
