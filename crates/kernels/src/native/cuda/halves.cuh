// Numbers of 16 bits by two in a word, bf16 or else f16, and the product of a warp's tensor cores on them.
#pragma once

#if defined(ELEMENT_BF16)
#define NUMBERS "bf16"
#else
#define NUMBERS "f16"
#endif

// Two numbers in one word, the first in the lower half.
__device__ __forceinline__ unsigned narrow_two(float first, float second) {
    unsigned pair;
    asm("cvt.rn." NUMBERS "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

// Adds the products of 16 rows of a and 8 of b over 16 numbers. Of a a lane holds the rows lane / 4 and that plus 8, of b the row
// lane / 4, of each two pairs; of the sums those two rows' at 2 (lane % 4) and the next.
__device__ __forceinline__ void multiply(float (&sums)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32." NUMBERS "." NUMBERS ".f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
