// Weight (gain) vector of a normalization, in f32 or in the element dtype.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH       elements per vector access (element.cuh)
//   WEIGHT_F32  1 if the weight is f32, 0 if it has the element dtype
#pragma once

#ifndef WEIGHT_F32
#error "WEIGHT_F32: 1 if the weight is f32, 0 if it has the element dtype"
#endif

#include "element.cuh"

#if WEIGHT_F32
typedef float weight_element;
__device__ __forceinline__ float widen_weight(float value) { return value; }
#else
typedef element weight_element;
__device__ __forceinline__ float widen_weight(element value) { return widen(value); }
#endif

struct __align__(WIDTH * sizeof(weight_element)) weight_vec {
    weight_element val[WIDTH];
};
