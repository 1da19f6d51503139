// How a weight w[n, K] is packed, and what its codes stand for.
//
// CODES_INT8 and CODES_E4M3 are bytes, a number is the code times the scale of its row. CODES_INT4 are two in a byte, the
// first in the lower half; a number is (code - 8) * scale + zero, and GROUP of them in a row share scale and zero. Rows
// are filled up to 32 codes or to whole groups, so each begins at a multiple of 16 bytes. Scales and zeros are SCALE_F32,
// SCALE_F16 or SCALE_BF16 without gaps.
#pragma once

#if defined(CODES_INT4)
constexpr unsigned BITS = 4;
constexpr unsigned GROUPS = (K + GROUP - 1) / GROUP;
constexpr unsigned ROW_CODES = GROUPS * GROUP;
#else
constexpr unsigned BITS = 8;
constexpr unsigned ROW_CODES = (K + 31) / 32 * 32;
#endif

constexpr unsigned WORD_CODES = 32 / BITS;
constexpr unsigned ROW_WORDS = ROW_CODES / WORD_CODES;

#if defined(SCALE_F32)
typedef float scale_type;
__device__ __forceinline__ float widen_scale(scale_type scale) { return scale; }
#elif defined(SCALE_F16)
typedef unsigned short scale_type;
__device__ __forceinline__ float widen_scale(scale_type scale) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(scale));
    return wide;
}
#elif defined(SCALE_BF16)
typedef unsigned short scale_type;
__device__ __forceinline__ float widen_scale(scale_type scale) { return __uint_as_float((unsigned)scale << 16); }
#endif

// The numbers of a word's codes without scales, all of them exact. An integer becomes the lowest bits of 2^23, which is
// then taken away: conversions run at a fraction of the rate of additions.
__device__ __forceinline__ void decode(unsigned word, float (&numbers)[WORD_CODES]) {
#pragma unroll
    for (int i = 0; i < WORD_CODES; i++) {
#if defined(CODES_INT8)
        numbers[i] = __uint_as_float(__byte_perm(word ^ 0x80808080u, 0x4b000000u, 0x7650 | i)) - 8388736.0f;
#elif defined(CODES_INT4)
        numbers[i] = __uint_as_float((word >> 4 * i & 0xfu) | 0x4b000000u) - 8388616.0f;
#else
        // The exponent's bias is 7 in e4m3 and 127 in f32; subnormal numbers come out right too.
        const unsigned code = word >> 8 * i;
        numbers[i] = __uint_as_float((code & 0x80u) << 24 | (code & 0x7fu) << 20) * 0x1p120f;
#endif
    }
}
