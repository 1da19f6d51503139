// The type of a product's output: OUTPUT_F32, OUTPUT_F16, or that of its factors.
#pragma once
#include "element.cuh"

#if defined(OUTPUT_F32)
typedef float output;
__device__ __forceinline__ float from_output(output value) { return value; }
__device__ __forceinline__ output to_output(float value) { return value; }
#elif defined(OUTPUT_F16)
typedef unsigned short output;
__device__ __forceinline__ float from_output(output value) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value));
    return wide;
}
__device__ __forceinline__ output to_output(float value) {
    output half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
}
#else
typedef element output;
__device__ __forceinline__ float from_output(output value) { return widen(value); }
__device__ __forceinline__ output to_output(float value) { return narrow(value); }
#endif

struct __align__(WIDTH * sizeof(output)) output_piece {
    output parts[WIDTH];
};
