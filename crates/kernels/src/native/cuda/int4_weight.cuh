// Packed int4 weight w[n, K] of a GEMM with int8 activations, two values per byte, the lower half first.
//
// A weight is q * row_scale. With GROUP_SCALES it is round(q * group_scale) * row_scale with groups of 128 elements,
// rounded half to even: the integer in between fits a byte, so int8 tensor cores accumulate across groups (compare the
// progressive group quantization of QServe, Lin et al., 2024). Rows are padded with zeros to 32 values, or to whole
// groups.
//
// Parameters:
//   K             reduction size: elements of a weight row
//   GROUP_SCALES  optional: two-level scales, per group of 128 and per row
//   ELEMENT_*     dtype `element`: ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
#pragma once

#ifndef K
#error "K: reduction size: elements of a weight row"
#endif
#include "element.cuh"

#ifdef GROUP_SCALES
constexpr unsigned ROW_VALUES = (K + 127) / 128 * 128;
#else
constexpr unsigned ROW_VALUES = (K + 31) / 32 * 32;
#endif

// Selects four of the eight bytes of two words by the four lowest nibbles of `selectors` (PTX ISA, prmt). A nibble with
// its highest bit set replicates the sign of the selected byte.
__device__ __forceinline__ unsigned select_bytes(unsigned low, unsigned high, unsigned selectors) {
    unsigned result;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(low), "r"(high), "r"(selectors));
    return result;
}

// int8 value of nibble q (two's complement, 0 to 15) under its group scale.
__device__ __forceinline__ unsigned to_int8(int q, float scale) {
    // Adding 1.5 * 2^23 rounds to an integer, which is then in the lowest bits of the mantissa.
    constexpr float ROUNDER = 12582912.0f;
    const float scaled = __fadd_rn(__fmul_rn((float)(q < 8 ? q : q - 16), scale), ROUNDER);
    return __float_as_uint(fminf(fmaxf(scaled, ROUNDER - 128.0f), ROUNDER + 127.0f)) & 0xffu;
}
