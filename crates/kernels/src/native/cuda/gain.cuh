// The gain of a normalization: f32 where GAIN_F32 is 1, else of the type of the rows.
#pragma once
#include "element.cuh"

#if GAIN_F32
typedef float gain_element;
__device__ __forceinline__ float widen_gain(float value) { return value; }
#else
typedef element gain_element;
__device__ __forceinline__ float widen_gain(element value) { return widen(value); }
#endif

struct __align__(WIDTH * sizeof(gain_element)) gain_piece {
    gain_element parts[WIDTH];
};
