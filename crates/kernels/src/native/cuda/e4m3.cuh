// From bf16 to e4m3 with a scale: code = e4m3(clip(bf16(x / scale), 448)), to the bit.
//
// Multiplying by an inverse does for dividing: no quotient of two bf16 lies nearer than 2^-17 of itself to the middle
// between two bf16, and x times an inverse is off by 2^-22 at most, so that both round to the same bf16.
#pragma once
#include "bf16_pairs.cuh"

typedef unsigned long long u64;
typedef unsigned short bf16;

// The scale for a largest magnitude, given as the bits of a bf16.
__device__ __forceinline__ float scale_of(unsigned largest) {
    const float scale = lower(round_pair(lower(largest) * (1.0f / 448.0f), 0.0f));
    return scale < 0x1p-63f ? 1.0f : scale;
}

// 1 / scale, off by 2^-23 at most. Neither is ever subnormal.
__device__ __forceinline__ float inverse_of(float scale) {
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(scale));
    return inverse;
}

// The codes of two numbers, the first in the lower byte.
__device__ __forceinline__ bf16 codes_of(float low, float high) {
    const unsigned quotients = round_pair(low, high);
    bf16 codes;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(upper(quotients)), "f"(lower(quotients)));
    return codes;
}

// The codes of four quotients before they are rounded, the first in the lowest byte.
__device__ __forceinline__ unsigned codes_of(float first, float second, float third, float fourth) {
    return codes_of(first, second) | (unsigned)codes_of(third, fourth) << 16;
}
