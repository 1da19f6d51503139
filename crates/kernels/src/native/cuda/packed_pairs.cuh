// Codes of packed weights as pairs of f16 or bf16, which is what tensor cores take, and the product on them.
//
// With PAIR_SCALES scales are applied to pairs, where that rounds once, to the element type; otherwise in float, and the result is
// rounded. A sum does not depend on the order of its terms, so where codes do not straddle words a pair holds the two codes of
// a word that are cheapest to bring into both halves, not neighbors; pairs of x are made in the same order.
#pragma once
#include "halves.cuh"

#if defined(ELEMENT_BF16)
constexpr unsigned ONES = 0x3f803f80u;
// 2^7, whose steps are 1.
constexpr unsigned STEPS_OF_ONE = 0x43004300u;
constexpr int PAIR_MANTISSA = 7, PAIR_BIAS = 127;
#else
constexpr unsigned ONES = 0x3c003c00u;
// 2^10.
constexpr unsigned STEPS_OF_ONE = 0x64006400u;
constexpr int PAIR_MANTISSA = 10, PAIR_BIAS = 15;
#endif

constexpr unsigned SIGNS = 0x80008000u, BOTH = 0x10001u;

// a * b + c with one rounding; subnormal numbers are kept.
__device__ __forceinline__ unsigned fma_pairs(unsigned a, unsigned b, unsigned c) {
    unsigned d;
    asm("fma.rn." NUMBERS "x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

// (a & mask) | bits in one instruction; left to itself the compiler takes two, since only one constant fits into it.
__device__ __forceinline__ unsigned pick(unsigned a, unsigned mask, unsigned bits) {
    unsigned picked;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(picked) : "r"(a), "r"(mask), "r"(bits));
    return picked;
}

__device__ __forceinline__ unsigned moved(unsigned word, int left) { return left >= 0 ? word << left : word >> -left; }

// The numbers without scales, all of them exact, of two codes that begin at the same bit of the halves of a word. The middle of
// an unsigned range is taken off.
__device__ __forceinline__ unsigned decode_pair(unsigned word, int from) {
#if defined(MANTISSA)
    // The exponent's bias is made that of the wider type; subnormal numbers come out right too.
    constexpr int UP = PAIR_MANTISSA - MANTISSA;
    constexpr unsigned POWER = (2 * PAIR_BIAS - BIAS) << PAIR_MANTISSA;
    const unsigned magnitudes = moved(word, UP - from) & (MASK >> 1) * BOTH << UP;
    return fma_pairs(pick(moved(word, 16 - BITS - from), SIGNS, magnitudes), POWER * BOTH, SIGNS);
#elif defined(ELEMENT_BF16) && BITS == 8
    // Only seven bits fit: the sign chooses whether 128 or 256 is taken away.
#if defined(NUMBER_UNSIGNED)
    word ^= 0x80808080u;
#endif
    const unsigned codes = moved(word, -from);
    return fma_pairs(pick(codes, 0x7fu * BOTH, STEPS_OF_ONE), ONES, pick(codes, 0x80u * BOTH, SIGNS | STEPS_OF_ONE));
#else
    // An integer becomes the lowest bits of a power of two whose steps are 1.
    unsigned codes = moved(word, -from);
#if defined(NUMBER_SIGNED)
    codes ^= MIDDLE * BOTH;
#endif
    return fma_pairs(pick(codes, MASK * BOTH, STEPS_OF_ONE), ONES, SIGNS | STEPS_OF_ONE | MIDDLE * BOTH);
#endif
}

// The numbers of a word as pairs of two that are half of its numbers apart.
constexpr int WORD_PAIRS = 16 / BITS;

// The pair `p` of numbers of x in that order, of which `neighbors` has two in a word.
__device__ __forceinline__ unsigned far_pair(const unsigned *neighbors, int p) {
    const int word = p / WORD_PAIRS, i = p % WORD_PAIRS;
    const int near = word * WORD_PAIRS + i / 2, far = near + WORD_PAIRS / 2;
    return __byte_perm(neighbors[near], neighbors[far], i % 2 == 0 ? 0x5410 : 0x7632);
}

// The pair of 16 + c, exact, for two 4-bit codes c that begin at the same bit of the halves of a word: c are the highest bits
// of a mantissa. Of a signed code c is 8 more.
constexpr int LIFT = PAIR_MANTISSA - 4;
constexpr unsigned SIXTEEN = (unsigned)(PAIR_BIAS + 4) << PAIR_MANTISSA;

__device__ __forceinline__ unsigned above_sixteen(unsigned word, int from) {
#if defined(NUMBER_SIGNED)
    word ^= 0x88888888u;
#endif
    return pick(moved(word, LIFT - from), (0xfu << LIFT) * BOTH, SIXTEEN * BOTH);
}

// What is added to the scale times 16 + c to make the number that c stands for.
__device__ __forceinline__ float rest_of(float scale, float zero) {
#if defined(ZERO_IN_STEPS)
    return -(16.0f + zero) * scale;
#else
    return fmaf(-24.0f, scale, zero);
#endif
}

// A scale and a zero for pairs.
struct pair_scale {
    unsigned scale, zero;
};

__device__ __forceinline__ pair_scale for_pairs(float scale, float zero) {
#if defined(ZERO_BITS)
    zero = (float)MIDDLE - zero;
#endif
    return {narrow(scale) * BOTH, narrow(zero) * BOTH};
}

// The numbers of a pair under their scale, rounded once: in steps the difference of integers is exact, and that of others is
// taken in float.
__device__ __forceinline__ unsigned scaled_pair(unsigned codes, pair_scale of) {
#if defined(ZERO_IN_UNITS)
    return fma_pairs(codes, of.scale, of.zero);
#elif defined(ZERO_BITS)
    return fma_pairs(fma_pairs(codes, ONES, of.zero), of.scale, SIGNS);
#elif defined(ZERO_IN_STEPS)
    const float scale = widen((element)of.scale), zero = widen((element)of.zero) - (float)MIDDLE;
    return narrow_two((widen((element)codes) - zero) * scale, (widen((element)(codes >> 16)) - zero) * scale);
#else
    return fma_pairs(codes, of.scale, SIGNS);
#endif
}
