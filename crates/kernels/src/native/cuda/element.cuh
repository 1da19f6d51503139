// Element dtype of a compilation, and vectors of WIDTH elements for one memory access. All arithmetic is in f32.
//
// Conversions are inline PTX, because NVRTC does not ship cuda_fp16.h and cuda_bf16.h, and a machine that runs these
// kernels may have no CUDA toolkit. `vec` corresponds to `aligned_vector` in PyTorch's memory access code.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype; exactly one is defined
//   WIDTH  elements per vector access: 1, or 16 bytes
#pragma once

#ifndef WIDTH
#error "WIDTH: elements per vector access: 1, or 16 bytes"
#endif

typedef unsigned long long u64;

#if defined(ELEMENT_F32)

typedef float element;
__device__ __forceinline__ float widen(element value) { return value; }
__device__ __forceinline__ element narrow(float value) { return value; }

#elif defined(ELEMENT_F16)

typedef unsigned short element;
__device__ __forceinline__ float widen(element value) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value));
    return wide;
}
__device__ __forceinline__ element narrow(float value) {
    element half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
}

#elif defined(ELEMENT_BF16)

typedef unsigned short element;
__device__ __forceinline__ float widen(element value) { return __uint_as_float((unsigned)value << 16); }
__device__ __forceinline__ element narrow(float value) {
#if __CUDA_ARCH__ >= 800
    element half;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
#else
    if (value != value) return 0x7fff;
    const unsigned bits = __float_as_uint(value);
    // Round to nearest, ties to even: adds half an ULP minus one, plus the lowest bit that remains.
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
#endif
}

#else
#error "ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16: element dtype"
#endif

// Vector that is loaded or stored by one access.
struct __align__(WIDTH * sizeof(element)) vec {
    element val[WIDTH];
};

// Vector of 16-bit elements as 32-bit words of two elements, the first in the lower half. Conversions of whole words
// save one instruction per element over conversions of single elements.
#if WIDTH > 1 && !defined(ELEMENT_F32)
struct __align__(sizeof(vec)) packed_vec {
    unsigned pairs[WIDTH / 2];
    __device__ __forceinline__ operator vec() const {
        vec unpacked;
#pragma unroll
        for (int i = 0; i < WIDTH; i++) unpacked.val[i] = (element)(pairs[i / 2] >> 16 * (i % 2));
        return unpacked;
    }
};

__device__ __forceinline__ void widen_all(packed_vec source, float (&values)[WIDTH]) {
#pragma unroll
    for (int i = 0; i < WIDTH; i += 2) {
#if defined(ELEMENT_F16)
        values[i] = widen((element)source.pairs[i / 2]);
        values[i + 1] = widen((element)(source.pairs[i / 2] >> 16));
#else
        values[i] = __uint_as_float(source.pairs[i / 2] << 16);
        values[i + 1] = __uint_as_float(source.pairs[i / 2] & 0xffff0000u);
#endif
    }
}

// Converts two elements per instruction from compute capability 8.0 on.
__device__ __forceinline__ packed_vec narrow_all(const float (&values)[WIDTH]) {
    packed_vec result;
#pragma unroll
    for (int i = 0; i < WIDTH; i += 2) {
        unsigned &pair = result.pairs[i / 2];
#if __CUDA_ARCH__ < 800
        pair = narrow(values[i]) | (unsigned)narrow(values[i + 1]) << 16;
#elif defined(ELEMENT_F16)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(values[i + 1]), "f"(values[i]));
#else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(values[i + 1]), "f"(values[i]));
#endif
    }
    return result;
}
#else
typedef vec packed_vec;

__device__ __forceinline__ void widen_all(packed_vec source, float (&values)[WIDTH]) {
#pragma unroll
    for (int i = 0; i < WIDTH; i++) values[i] = widen(source.val[i]);
}

__device__ __forceinline__ packed_vec narrow_all(const float (&values)[WIDTH]) {
    packed_vec result;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) result.val[i] = narrow(values[i]);
    return result;
}
#endif
