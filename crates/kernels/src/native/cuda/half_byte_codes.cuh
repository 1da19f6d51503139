// A weight w[n, K] of 4-bit codes around zero, two in a byte, the first in the lower half, that meets inputs of bytes.
//
// A number is the code times the f32 scale of its row. With GROUPED it is an integer of a byte times that scale: the code times
// the scale of its group of 128, rounded to even. Rows are filled up to 32 codes or to whole groups with zeros.
#pragma once
#include "element.cuh"

#ifdef GROUPED
constexpr unsigned ROW_CODES = (K + 127) / 128 * 128;
#else
constexpr unsigned ROW_CODES = (K + 31) / 32 * 32;
#endif

// Bytes picked out of two words, eight in all, by the four lowest half bytes of a third. One with its highest bit set is the sign
// of the byte that its other bits pick.
__device__ __forceinline__ unsigned pick_bytes(unsigned low, unsigned high, unsigned which) {
    unsigned picked;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(picked) : "r"(low), "r"(high), "r"(which));
    return picked;
}

// The integer that a code of 0 to 15, of which those from 8 on are negative, stands for under its group's scale.
__device__ __forceinline__ unsigned byte_of(int code, float scale) {
    // A float of this size has no fraction, so adding it rounds; its lowest bits are then the integer.
    constexpr float ROUNDER = 12582912.0f;
    const float number = __fadd_rn(__fmul_rn((float)(code < 8 ? code : code - 16), scale), ROUNDER);
    return __float_as_uint(fminf(fmaxf(number, ROUNDER - 128.0f), ROUNDER + 127.0f)) & 0xffu;
}
