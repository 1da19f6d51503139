// Codes of packed weights as pairs of f16 or bf16, which is what tensor cores take, and the product on them.
//
// A sum does not depend on the order of its terms, so a pair holds the two codes of a word that are cheapest to bring into
// both halves, not neighbours; pairs of x are made in the same order.
#pragma once

#if defined(ELEMENT_BF16)
#define OF_PAIRS "bf16"
constexpr unsigned ONES = 0x3f803f80u;
#else
#define OF_PAIRS "f16"
constexpr unsigned ONES = 0x3c003c00u;
#endif

constexpr int WORD_PAIRS = WORD_CODES / 2;

// a * b + c with one rounding; subnormal numbers are kept.
__device__ __forceinline__ unsigned fma_pairs(unsigned a, unsigned b, unsigned c) {
    unsigned d;
    asm("fma.rn." OF_PAIRS "x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

// (a & mask) | bits in one instruction; left to itself the compiler takes two, since only one constant fits into it.
__device__ __forceinline__ unsigned pick(unsigned a, unsigned mask, unsigned bits) {
    unsigned picked;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(picked) : "r"(a), "r"(mask), "r"(bits));
    return picked;
}

// The numbers of a word's codes without scales, all of them exact. An integer becomes the lowest bits of a power of two
// whose steps are 1: 2^7 in bf16, 2^10 in f16.
__device__ __forceinline__ void decode_pairs(unsigned word, unsigned (&pairs)[WORD_PAIRS]) {
#pragma unroll
    for (int i = 0; i < WORD_PAIRS; i++) {
#if defined(CODES_INT4)
        // Codes i and i + 4.
        const unsigned codes = word >> 4 * i;
#if defined(ELEMENT_BF16)
        pairs[i] = fma_pairs(pick(codes, 0x000f000fu, 0x43004300u), ONES, 0xc308c308u);
#else
        pairs[i] = fma_pairs(pick(codes, 0x000f000fu, 0x64006400u), ONES, 0xe408e408u);
#endif
#elif defined(CODES_INT8)
        // Codes i and i + 2.
        const unsigned codes = word >> 8 * i;
#if defined(ELEMENT_BF16)
        // Only seven bits fit: the sign chooses whether 128 or 256 is taken away.
        pairs[i] = fma_pairs(pick(codes, 0x007f007fu, 0x43004300u), ONES, pick(codes, 0x00800080u, 0xc300c300u));
#else
        pairs[i] = fma_pairs(pick(codes ^ 0x00800080u, 0x00ff00ffu, 0x64006400u), ONES, 0xe480e480u);
#endif
#else
        // Codes i and i + 2 in the upper bytes; then the exponent's bias is made that of the wider type.
        const unsigned codes = i == 0 ? word << 8 : word;
#if defined(ELEMENT_BF16)
        pairs[i] = fma_pairs(pick(codes, 0x80008000u, codes >> 4 & 0x07f007f0u), 0x7b807b80u, 0x80008000u);
#else
        pairs[i] = fma_pairs(pick(codes, 0x80008000u, codes >> 1 & 0x3f803f80u), 0x5c005c00u, 0x80008000u);
#endif
#endif
    }
}

// Neighbours in the order of `decode_pairs`, for the numbers that meet the codes of one word.
__device__ __forceinline__ void reorder(const unsigned *neighbours, unsigned (&pairs)[WORD_PAIRS]) {
#pragma unroll
    for (int i = 0; i < WORD_PAIRS; i++) {
        const unsigned near = neighbours[i / 2], far = neighbours[i / 2 + WORD_PAIRS / 2];
        pairs[i] = __byte_perm(near, far, i % 2 == 0 ? 0x5410 : 0x7632);
    }
}

// Adds the products of 16 rows of weights and 8 of x over 16 numbers. Of the weights a thread holds the rows lane / 4 and
// that plus 8, of x the row lane / 4, of each two pairs; of the sums those two rows' at 2 (lane % 4) and the next.
__device__ __forceinline__ void multiply(float (&sums)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                         unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32." OF_PAIRS "." OF_PAIRS ".f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
