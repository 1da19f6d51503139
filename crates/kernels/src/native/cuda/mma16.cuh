// Tensor-core primitives for 16-bit operands, bf16 or f16, two elements per 32-bit register.
//
// Reference: PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type". With g = lane / 4 and t = lane % 4,
// the registers of a lane hold
//
//     A (16 x 16)                    B (16 x 8)               C, D (16 x 8), f32
//     k:   2t,2t+1   2t+8,2t+9       n:        g              n:   2t     2t+1
//     row g     a0        a2         k 2t,2t+1     b0         row g     d0    d1
//     row g+8   a1        a3         k 2t+8,2t+9   b1         row g+8   d2    d3
//
// The order of the terms of a dot product is free. Kernels therefore load adjacent elements into any k slots, as long
// as A and B use the same permutation.
//
// Parameters:
//   ELEMENT_BF16  optional: operands are bf16; otherwise they are f16
#pragma once

#if defined(ELEMENT_BF16)
#define MMA_DTYPE "bf16"
#else
#define MMA_DTYPE "f16"
#endif

// Rounds two floats to the operand dtype; `first` is in the lower half.
__device__ __forceinline__ unsigned pack_pair(float first, float second) {
    unsigned pair;
    asm("cvt.rn." MMA_DTYPE "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

// Computes sums += A B for one fragment; see the map above.
__device__ __forceinline__ void mma_m16n8k16(float (&sums)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                             unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32." MMA_DTYPE "." MMA_DTYPE
        ".f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Loads four 8 x 8 matrices of 16-bit elements from shared memory: lane 8 i + r passes the address of row r of matrix i;
// word i of lane 4 r + t are the elements 2 t and 2 t + 1 of row r of matrix i.
__device__ __forceinline__ void ldmatrix_x4(unsigned (&words)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
}
