// Dequantization of packed weights to pairs of f16 or bf16, the operands of tensor cores.
//
// Algorithm: fast integer-to-float conversion by bit manipulation, as in "Who Says Elephants Can't Run: Bringing Large
// Scale MoE Models into Cloud Scale Production" (Kim et al., 2022), FasterTransformer
// (`interleaved_numeric_conversion.h`) and Marlin (`dequant`). A value is inserted into the mantissa of a power of two
// whose ULP is 1, and an fma subtracts the power of two; both are exact. One `lop3` and one `fma` handle two values.
//
//     f16  1024 + q:   | 0 11001 | 0000 00qqqq |     minus 1024 + mid
//     bf16  128 + q:   | 0 10000110 | 000 qqqq |     minus  128 + mid
//
// If values do not straddle words, a pair holds the values i and i + 16 / BITS of a word, so one mask extracts both
// halves without permutation. The sum over k is independent of the order of its terms; x is brought into the same order
// by `strided_pair`.
//
//     word (BITS = 4):   | q7 q6 q5 q4 | q3 q2 q1 q0 |
//     pairs:             (q4, q0)  (q5, q1)  (q6, q2)  (q7, q3)     (upper half, lower half)
//
// SCALE_PAIRS: scales and zero points are exact in the operand dtype, and dequantization rounds once, in that dtype.
// Otherwise it runs in f32, and the result is rounded.
//
// Parameters:
//   ELEMENT_*  dtype `element`: ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   ...        all parameters of packed_weight.cuh, which is included first
#pragma once
#include "mma16.cuh"

#if defined(ELEMENT_BF16)
constexpr unsigned ONES = 0x3f803f80u;
// 2^7: the ULP is 1.
constexpr unsigned UNIT_ULP = 0x43004300u;
constexpr int PAIR_MANTISSA = 7, PAIR_BIAS = 127;
#else
constexpr unsigned ONES = 0x3c003c00u;
// 2^10: the ULP is 1.
constexpr unsigned UNIT_ULP = 0x64006400u;
constexpr int PAIR_MANTISSA = 10, PAIR_BIAS = 15;
#endif

constexpr unsigned SIGN_BITS = 0x80008000u, BOTH_HALVES = 0x10001u;

// a * b + c with one rounding; subnormals are preserved.
__device__ __forceinline__ unsigned fma_x2(unsigned a, unsigned b, unsigned c) {
    unsigned d;
    asm("fma.rn." MMA_DTYPE "x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

// (a & mask) | bits as one lop3. The compiler would emit two instructions, since only one immediate fits into lop3.
__device__ __forceinline__ unsigned and_or(unsigned a, unsigned mask, unsigned bits) {
    unsigned result;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(a), "r"(mask), "r"(bits));
    return result;
}

__device__ __forceinline__ unsigned shift_left(unsigned word, int bits) {
    return bits >= 0 ? word << bits : word >> -bits;
}

// Unscaled values, all exact, of the two quantized values that start at bit `first_bit` of each half of a word. mid is
// subtracted from unsigned values.
__device__ __forceinline__ unsigned decode_pair(unsigned word, int first_bit) {
#if defined(MANTISSA_BITS)
    // Rebiases the exponent to the operand dtype; subnormals are handled too.
    constexpr int SHIFT = PAIR_MANTISSA - MANTISSA_BITS;
    constexpr unsigned POWER = (2 * PAIR_BIAS - EXPONENT_BIAS) << PAIR_MANTISSA;
    const unsigned magnitudes = shift_left(word, SHIFT - first_bit) & (MASK >> 1) * BOTH_HALVES << SHIFT;
    return fma_x2(and_or(shift_left(word, 16 - BITS - first_bit), SIGN_BITS, magnitudes), POWER * BOTH_HALVES,
                  SIGN_BITS);
#elif defined(ELEMENT_BF16) && BITS == 8
    // The mantissa of bf16 has only seven bits: the sign bit selects whether 128 or 256 is subtracted.
#if defined(UNSIGNED_VALUES)
    word ^= 0x80808080u;
#endif
    const unsigned values = shift_left(word, -first_bit);
    return fma_x2(and_or(values, 0x7fu * BOTH_HALVES, UNIT_ULP), ONES,
                  and_or(values, 0x80u * BOTH_HALVES, SIGN_BITS | UNIT_ULP));
#else
    // Inserts the integer into the mantissa of a power of two whose ULP is 1.
    unsigned values = shift_left(word, -first_bit);
#if defined(SIGNED_VALUES)
    values ^= MIDPOINT * BOTH_HALVES;
#endif
    return fma_x2(and_or(values, MASK * BOTH_HALVES, UNIT_ULP), ONES, SIGN_BITS | UNIT_ULP | MIDPOINT * BOTH_HALVES);
#endif
}

// Pairs in a word, of two values that are 16 / BITS values apart.
constexpr int WORD_PAIRS = 16 / BITS;

// Pair `p` of x in strided order; each word of `neighbors` has two adjacent elements.
__device__ __forceinline__ unsigned strided_pair(const unsigned *neighbors, int p) {
    const int word = p / WORD_PAIRS, i = p % WORD_PAIRS;
    const int low = word * WORD_PAIRS + i / 2, high = low + WORD_PAIRS / 2;
    return __byte_perm(neighbors[low], neighbors[high], i % 2 == 0 ? 0x5410 : 0x7632);
}

// Pair of 16 + q, exact, for two 4-bit values q that start at bit `first_bit` of each half of a word: q becomes the
// highest mantissa bits. For signed values, q + 8 takes the place of q.
constexpr int BIASED_SHIFT = PAIR_MANTISSA - 4;
constexpr unsigned BIASED_ONE = (unsigned)(PAIR_BIAS + 4) << PAIR_MANTISSA;

__device__ __forceinline__ unsigned decode_biased_pair(unsigned word, int first_bit) {
#if defined(SIGNED_VALUES)
    word ^= 0x88888888u;
#endif
    return and_or(shift_left(word, BIASED_SHIFT - first_bit), (0xfu << BIASED_SHIFT) * BOTH_HALVES,
                  BIASED_ONE * BOTH_HALVES);
}

// Offset that turns scale * (16 + q) into the dequantized value of q.
__device__ __forceinline__ float biased_offset(float scale, float zero) {
#if defined(ZERO_POINT_BEFORE_SCALE)
    return -(16.0f + zero) * scale;
#else
    return fmaf(-24.0f, scale, zero);
#endif
}

// Scale and zero point, each in both halves.
struct pair_scale {
    unsigned scale, zero;
};

__device__ __forceinline__ pair_scale make_pair_scale(float scale, float zero) {
#if defined(ZERO_POINT_BITS)
    zero = (float)MIDPOINT - zero;
#endif
    return {narrow(scale) * BOTH_HALVES, narrow(zero) * BOTH_HALVES};
}

// Dequantizes a pair with one rounding. For integer zero points the difference is exact; for float zero points before
// the scale it is computed in f32.
__device__ __forceinline__ unsigned scale_pair(unsigned values, pair_scale factors) {
#if defined(ZERO_POINT_AFTER_SCALE)
    return fma_x2(values, factors.scale, factors.zero);
#elif defined(ZERO_POINT_BITS)
    return fma_x2(fma_x2(values, ONES, factors.zero), factors.scale, SIGN_BITS);
#elif defined(ZERO_POINT_BEFORE_SCALE)
    const float scale = widen((element)factors.scale), zero = widen((element)factors.zero) - (float)MIDPOINT;
    return pack_pair((widen((element)values) - zero) * scale, (widen((element)(values >> 16)) - zero) * scale);
#else
    return fma_x2(values, factors.scale, SIGN_BITS);
#endif
}
