// How a weight w[n, K] is packed, and what its codes stand for.
//
// Codes of BITS bits lie densely in the words of a row, the first in the lowest bits: 32 of them are BITS words. They are integers
// (NUMBER_SIGNED, NUMBER_UNSIGNED), or floats with MANTISSA bits under an exponent whose bias is BIAS. With GROUP so many
// numbers of a row share a scale, and a number is
//   (code - middle of the range) * scale + zero   with ZERO_IN_UNITS,
//   (code - zero) * scale                         with ZERO_IN_STEPS,
//   code * scale                                  otherwise.
// Without GROUP a row has a scale, and there are no zeros. Rows are filled up to whole groups, and to 32 codes. Scales are SCALE,
// zeros ZERO, or integers of ZERO_BITS as dense as codes are; both lie row by row without gaps.
#pragma once

#if defined(GROUP)
constexpr unsigned GROUPS = (K + GROUP - 1) / GROUP;
constexpr unsigned ROW_CODES = (GROUPS * GROUP + 31) / 32 * 32;
#else
constexpr unsigned GROUPS = 1;
constexpr unsigned ROW_CODES = (K + 31) / 32 * 32;
#endif
constexpr unsigned ROW_WORDS = ROW_CODES / 32 * BITS;
constexpr unsigned MASK = (1u << BITS) - 1;
constexpr unsigned MIDDLE = 1u << (BITS - 1);

// The greatest divisor of both.
__host__ __device__ constexpr unsigned common(unsigned a, unsigned b) { return b == 0 ? a : common(b, a % b); }

// Numbers, counted from a multiple of `count` in a row, that are sure to share their scale.
__host__ __device__ constexpr unsigned sharing(unsigned count) {
#if defined(GROUP)
    return common(GROUP, count);
#else
    return count;
#endif
}

// The group of a number of a row; those that fill the row up may lie beyond the last.
__device__ __forceinline__ unsigned group_of(unsigned at) {
#if defined(GROUP)
    const unsigned group = at / GROUP;
    return GROUP % 32 == 0 || group < GROUPS ? group : GROUPS - 1;
#else
    return 0;
#endif
}

struct as_f32 {
    typedef float stored;
    __device__ __forceinline__ static float number(stored bits) { return bits; }
};
struct as_f16 {
    typedef unsigned short stored;
    __device__ __forceinline__ static float number(stored bits) {
        float wide;
        asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(bits));
        return wide;
    }
};
struct as_bf16 {
    typedef unsigned short stored;
    __device__ __forceinline__ static float number(stored bits) { return __uint_as_float((unsigned)bits << 16); }
};
// 2^(bits - 127); the smallest lies below the normal numbers.
struct as_e8m0 {
    typedef unsigned char stored;
    __device__ __forceinline__ static float number(stored bits) {
        return __uint_as_float(bits == 0 ? 0x00400000u : (unsigned)bits << 23);
    }
};
struct as_e4m3 {
    typedef unsigned char stored;
    __device__ __forceinline__ static float number(stored bits) {
        return __uint_as_float((bits & 0x80u) << 24 | (bits & 0x7fu) << 20) * 0x1p120f;
    }
};

typedef SCALE::stored stored_scale;

// A zero as it is loaded, and what it is.
#if defined(ZERO_BITS)
#define ZEROS
typedef unsigned stored_zero;
struct loaded_zero {
    unsigned low, high;
};
__device__ __forceinline__ loaded_zero load_zero(const stored_zero *zeros, u64 at) {
    const u64 bit = at * ZERO_BITS;
    const unsigned low = __ldg(zeros + bit / 32);
    return {low, 32 % ZERO_BITS == 0 ? low : __ldg(zeros + (bit + ZERO_BITS - 1) / 32)};
}
__device__ __forceinline__ float zero_of(loaded_zero zero, u64 at) {
    const unsigned field = __funnelshift_r(zero.low, zero.high, (unsigned)(at * ZERO_BITS % 32));
    return (float)(field & ((1u << ZERO_BITS) - 1));
}
#elif defined(ZERO)
#define ZEROS
typedef ZERO::stored stored_zero, loaded_zero;
__device__ __forceinline__ loaded_zero load_zero(const stored_zero *zeros, u64 at) { return __ldg(zeros + at); }
__device__ __forceinline__ float zero_of(loaded_zero zero, u64) { return ZERO::number(zero); }
#else
struct loaded_zero {};
__device__ __forceinline__ loaded_zero load_zero(const void *, u64) { return {}; }
__device__ __forceinline__ float zero_of(loaded_zero, u64) { return 0.0f; }
#endif

// What the code in the lowest bits of a word stands for, exactly; the middle of the range is taken off unless zeros are in
// steps. An integer becomes the lowest bits of 2^23, which is then taken away: conversions run at a fraction of the rate of
// additions. Of a float the exponent's bias is made that of f32; subnormal numbers come out right too.
__device__ __forceinline__ float decode(unsigned word) {
#if defined(MANTISSA)
    const unsigned magnitude = (word & MASK >> 1) << (23 - MANTISSA), sign = (word & MIDDLE) << (32 - BITS);
    return __uint_as_float(sign | magnitude) * __uint_as_float((254u - BIAS) << 23);
#elif defined(NUMBER_SIGNED)
    return __uint_as_float((word & MASK) ^ (0x4b000000u | MIDDLE)) - (8388608.0f + MIDDLE);
#elif defined(ZERO_IN_STEPS)
    return __uint_as_float((word & MASK) | 0x4b000000u) - 8388608.0f;
#else
    return __uint_as_float((word & MASK) | 0x4b000000u) - (8388608.0f + MIDDLE);
#endif
}

// The number that such a code stands for.
__device__ __forceinline__ float scaled(float code, float scale, float zero) {
#if defined(ZERO_IN_STEPS)
    return (code - zero) * scale;
#elif defined(ZERO_IN_UNITS)
    return fmaf(code, scale, zero);
#else
    return code * scale;
#endif
}

// Words from one whose bit FROM is the first of a code: the code is in the lowest bits, other bits above it.
template <int COUNT> __device__ __forceinline__ unsigned field(const unsigned (&words)[COUNT], int from) {
    const int word = from / 32, shift = from % 32;
    if (shift == 0) return words[word];
    return word + 1 < COUNT ? __funnelshift_r(words[word], words[word + 1 < COUNT ? word + 1 : word], shift) : words[word] >> shift;
}
