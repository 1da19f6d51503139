// Two numbers of 16 bits in one word, the first in the lower half; bf16 unless it says otherwise.
#pragma once

__device__ __forceinline__ float lower(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float upper(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }

// The larger magnitudes of two pairs, as bits: without their signs these are ordered like the numbers, NaN above all. Of f16, too.
__device__ __forceinline__ unsigned larger(unsigned known, unsigned pair) {
    return __vmaxu2(known, pair & 0x7fff7fffu);
}

__device__ __forceinline__ unsigned larger_half(unsigned pair) { return max(pair & 0xffffu, pair >> 16); }

__device__ __forceinline__ unsigned larger(unsigned known, const uint4 &pairs) {
    return larger(larger(larger(larger(known, pairs.x), pairs.y), pairs.z), pairs.w);
}

__device__ __forceinline__ unsigned round_pair(float low, float high) {
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
