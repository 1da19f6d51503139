// Pairs of 16-bit floats in a 32-bit word, the first in the lower half. bf16 unless a function states otherwise.
#pragma once

__device__ __forceinline__ float bf16x2_low(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float bf16x2_high(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }

// Element-wise maximum of magnitudes, as bits; also for f16. Without signs the bit patterns are ordered like the
// values, with NaN above infinity.
__device__ __forceinline__ unsigned max_magnitude(unsigned amax, unsigned pair) {
    return __vmaxu2(amax, pair & 0x7fff7fffu);
}

__device__ __forceinline__ unsigned max_of_pair(unsigned pair) { return max(pair & 0xffffu, pair >> 16); }

__device__ __forceinline__ unsigned max_magnitude(unsigned amax, const uint4 &pairs) {
    return max_magnitude(max_magnitude(max_magnitude(max_magnitude(amax, pairs.x), pairs.y), pairs.z), pairs.w);
}

__device__ __forceinline__ unsigned pack_bf16x2(float low, float high) {
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
