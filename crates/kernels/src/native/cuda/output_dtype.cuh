// Output dtype of a GEMM, if it can differ from the operand dtype, with its conversions.
//
// Parameters:
//   OUTPUT_F32  optional: the output is f32
//   OUTPUT_F16  optional: the output is f16; without both, the output has dtype `element`
//   WIDTH       outputs per vector access (checked in element.cuh)
//   ELEMENT_*   dtype `element`: ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
#pragma once
#include "element.cuh"

#if defined(OUTPUT_F32)
typedef float output;
__device__ __forceinline__ float from_output(output value) { return value; }
__device__ __forceinline__ output to_output(float value) { return value; }
#elif defined(OUTPUT_F16)
typedef unsigned short output;
__device__ __forceinline__ float from_output(output value) {
    float value_f32;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value_f32) : "h"(value));
    return value_f32;
}
__device__ __forceinline__ output to_output(float value) {
    output bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
#else
typedef element output;
__device__ __forceinline__ float from_output(output value) { return widen(value); }
__device__ __forceinline__ output to_output(float value) { return narrow(value); }
#endif
