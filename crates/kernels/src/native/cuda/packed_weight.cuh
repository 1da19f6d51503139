// Packed weight w[n, K]: bit layout of the quantized values, storage of scales and zero points, and dequantization to
// f32.
//
// Values of BITS bits are dense in the words of a row, the first value in the lowest bits, so that 32 values fill BITS
// words. A value may straddle two words. Rows are padded to whole groups and to 32 values. Scales and zero points are
// row-major without padding; integer zero points are packed as densely as the values.
//
//     BITS = 4:  word 0 = | q7 q6 q5 q4 q3 q2 q1 q0 |           8 values per word
//     BITS = 3:  word 0 = | q10' q9 q8 ... q1 q0 |              q10' = low 2 bits of q10
//                word 1 = | q21' q20 ... q11 q10" |             q10" = its high bit
//
// Dequantized value, with q the quantized value and mid = 2^(BITS - 1):
//
//     (q - zero) * scale          ZERO_POINT_BEFORE_SCALE (affine quantization, as in torchao and GGUF)
//     (q - mid) * scale + zero    ZERO_POINT_AFTER_SCALE  (tinygemm int4 kernel of PyTorch)
//     q * scale                   otherwise; unsigned values cannot occur there
//
// Include element.cuh first: it defines u64.
//
// Parameters:
//   K                        optional: reduction size, the elements of a weight row
//   BITS                     bits of a quantized value, 1 to 8
//   SIGNED_VALUES            defined if the values are signed integers
//   UNSIGNED_VALUES          defined if the values are unsigned integers
//   MANTISSA_BITS            defined if the values are small floats: bits of the mantissa
//   EXPONENT_BIAS            exponent bias of small floats
//   GROUP_SIZE               optional: elements of a row that share a scale; by default one scale per row
//   SCALE_DTYPE              stored_f32, stored_f16, stored_bf16, stored_e8m0 or stored_e4m3
//   ZERO_POINT_BEFORE_SCALE  optional: zero points in units of the quantized values
//   ZERO_POINT_AFTER_SCALE   optional: zero points in units of the dequantized values
//   ZERO_POINT_DTYPE         dtype of float zero points, as SCALE_DTYPE
//   ZERO_POINT_BITS          bits of packed integer zero points
#pragma once

#ifndef BITS
#error "BITS: bits of a quantized value, 1 to 8"
#endif
#ifndef SCALE_DTYPE
#error "SCALE_DTYPE: stored_f32, stored_f16, stored_bf16, stored_e8m0 or stored_e4m3"
#endif

#if !defined(SIGNED_VALUES) && !defined(UNSIGNED_VALUES) && !defined(MANTISSA_BITS)
#error "SIGNED_VALUES, UNSIGNED_VALUES or MANTISSA_BITS: kind of the quantized values"
#endif
#if defined(MANTISSA_BITS) && !defined(EXPONENT_BIAS)
#error "EXPONENT_BIAS: exponent bias of small floats"
#endif
#if defined(ZERO_POINT_BEFORE_SCALE) || defined(ZERO_POINT_AFTER_SCALE)
#if !defined(ZERO_POINT_DTYPE) && !defined(ZERO_POINT_BITS)
#error "ZERO_POINT_DTYPE or ZERO_POINT_BITS: storage of the zero points"
#endif
#endif

// Groups of a row of k elements, and elements of the row with padding.
__host__ __device__ constexpr unsigned row_groups(unsigned k) {
#if defined(GROUP_SIZE)
    return (k + GROUP_SIZE - 1) / GROUP_SIZE;
#else
    return 1;
#endif
}
__host__ __device__ constexpr unsigned padded_row(unsigned k) {
#if defined(GROUP_SIZE)
    k = row_groups(k) * GROUP_SIZE;
#endif
    return (k + 31) / 32 * 32;
}

#if defined(K)
constexpr unsigned GROUPS = row_groups(K);
constexpr unsigned ROW_VALUES = padded_row(K);
constexpr unsigned ROW_WORDS = ROW_VALUES / 32 * BITS;
#endif
constexpr unsigned MASK = (1u << BITS) - 1;
constexpr unsigned MIDPOINT = 1u << (BITS - 1);

// Greatest common divisor.
__host__ __device__ constexpr unsigned gcd(unsigned a, unsigned b) { return b == 0 ? a : gcd(b, a % b); }

// Number of elements, from any multiple of `count` in a row on, that are guaranteed to share a scale.
__host__ __device__ constexpr unsigned values_per_scale(unsigned count) {
#if defined(GROUP_SIZE)
    return gcd(GROUP_SIZE, count);
#else
    return count;
#endif
}

#if defined(K)
// Group of element `k` of a row, clamped to the last group: padding may be beyond it.
__device__ __forceinline__ unsigned group_of(unsigned k) {
#if defined(GROUP_SIZE)
    const unsigned group = k / GROUP_SIZE;
    return GROUP_SIZE % 32 == 0 || group < GROUPS ? group : GROUPS - 1;
#else
    return 0;
#endif
}
#endif

struct stored_f32 {
    typedef float storage;
    __device__ __forceinline__ static float to_float(storage bits) { return bits; }
};
struct stored_f16 {
    typedef unsigned short storage;
    __device__ __forceinline__ static float to_float(storage bits) {
        float wide;
        asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(bits));
        return wide;
    }
};
struct stored_bf16 {
    typedef unsigned short storage;
    __device__ __forceinline__ static float to_float(storage bits) { return __uint_as_float((unsigned)bits << 16); }
};
// 2^(bits - 127); the smallest value is subnormal in f32.
struct stored_e8m0 {
    typedef unsigned char storage;
    __device__ __forceinline__ static float to_float(storage bits) {
        return __uint_as_float(bits == 0 ? 0x00400000u : (unsigned)bits << 23);
    }
};
struct stored_e4m3 {
    typedef unsigned char storage;
    __device__ __forceinline__ static float to_float(storage bits) {
        return __uint_as_float((bits & 0x80u) << 24 | (bits & 0x7fu) << 20) * 0x1p120f;
    }
};

typedef SCALE_DTYPE::storage stored_scale;

// Zero point as loaded, and its value. Loading is separate from decoding so that all loads are issued first.
#if defined(ZERO_POINT_BITS)
#define HAS_ZERO_POINTS
typedef unsigned stored_zero;
struct loaded_zero {
    unsigned low, high;
};
__device__ __forceinline__ loaded_zero load_zero(const stored_zero *zeros, u64 index) {
    const u64 bit = index * ZERO_POINT_BITS;
    const unsigned low = __ldg(zeros + bit / 32);
    return {low, 32 % ZERO_POINT_BITS == 0 ? low : __ldg(zeros + (bit + ZERO_POINT_BITS - 1) / 32)};
}
__device__ __forceinline__ float zero_value(loaded_zero zero, u64 index) {
    const unsigned bits = __funnelshift_r(zero.low, zero.high, (unsigned)(index * ZERO_POINT_BITS % 32));
    return (float)(bits & ((1u << ZERO_POINT_BITS) - 1));
}
#elif defined(ZERO_POINT_DTYPE)
#define HAS_ZERO_POINTS
typedef ZERO_POINT_DTYPE::storage stored_zero, loaded_zero;
__device__ __forceinline__ loaded_zero load_zero(const stored_zero *zeros, u64 index) { return __ldg(zeros + index); }
__device__ __forceinline__ float zero_value(loaded_zero zero, u64) { return ZERO_POINT_DTYPE::to_float(zero); }
#else
struct loaded_zero {};
__device__ __forceinline__ loaded_zero load_zero(const void *, u64) { return {}; }
__device__ __forceinline__ float zero_value(loaded_zero, u64) { return 0.0f; }
#endif

// Exact value of the quantized value in the lowest bits of a word; mid is subtracted unless zero points apply before
// the scale. An integer becomes the mantissa of 2^23 + q, and 2^23 is subtracted: conversions (I2F) run at a fraction
// of the rate of additions. A small float is shifted to the position of f32 and its exponent is rebiased by a
// multiplication, which also handles subnormals.
__device__ __forceinline__ float decode(unsigned word) {
#if defined(MANTISSA_BITS)
    const unsigned magnitude = (word & MASK >> 1) << (23 - MANTISSA_BITS), sign = (word & MIDPOINT) << (32 - BITS);
    return __uint_as_float(sign | magnitude) * __uint_as_float((254u - EXPONENT_BIAS) << 23);
#elif defined(SIGNED_VALUES)
    return __uint_as_float((word & MASK) ^ (0x4b000000u | MIDPOINT)) - (8388608.0f + MIDPOINT);
#elif defined(ZERO_POINT_BEFORE_SCALE)
    return __uint_as_float((word & MASK) | 0x4b000000u) - 8388608.0f;
#else
    return __uint_as_float((word & MASK) | 0x4b000000u) - (8388608.0f + MIDPOINT);
#endif
}

// Applies scale and zero point to a decoded value.
__device__ __forceinline__ float apply_scale(float decoded, float scale, float zero) {
#if defined(ZERO_POINT_BEFORE_SCALE)
    return (decoded - zero) * scale;
#elif defined(ZERO_POINT_AFTER_SCALE)
    return fmaf(decoded, scale, zero);
#else
    return decoded * scale;
#endif
}

// Returns a word with the value that starts at bit `first_bit` in its lowest bits; higher bits are undefined.
template <int COUNT> __device__ __forceinline__ unsigned extract(const unsigned (&words)[COUNT], int first_bit) {
    const int word = first_bit / 32, shift = first_bit % 32;
    if (shift == 0) return words[word];
    return word + 1 < COUNT ? __funnelshift_r(words[word], words[word + 1 < COUNT ? word + 1 : word], shift)
                            : words[word] >> shift;
}
