// The element type of one compilation (ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16) and a piece of WIDTH elements, which is
// what one memory access moves. Arithmetic is in float.
//
// The conversions are written out here because NVRTC does not bring cuda_fp16.h and cuda_bf16.h with it, and a machine
// that runs these kernels need not have the CUDA headers.
#pragma once

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
    // To nearest, ties to even: just under half a unit, and the rest of it if the kept part is odd.
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
#endif
}

#else
#error "define ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16"
#endif

struct __align__(WIDTH * sizeof(element)) piece {
    element parts[WIDTH];
};

// The same as words of two numbers, where numbers have 16 bits: taking words apart number by number costs an instruction more for
// each.
#if WIDTH > 1 && !defined(ELEMENT_F32)
struct __align__(sizeof(piece)) packed {
    unsigned pairs[WIDTH / 2];
    __device__ __forceinline__ operator piece() const {
        piece apart;
#pragma unroll
        for (int i = 0; i < WIDTH; i++) apart.parts[i] = (element)(pairs[i / 2] >> 16 * (i % 2));
        return apart;
    }
};

__device__ __forceinline__ void widen_all(packed from, float (&values)[WIDTH]) {
#pragma unroll
    for (int i = 0; i < WIDTH; i += 2) {
#if defined(ELEMENT_F16)
        values[i] = widen((element)from.pairs[i / 2]);
        values[i + 1] = widen((element)(from.pairs[i / 2] >> 16));
#else
        values[i] = __uint_as_float(from.pairs[i / 2] << 16);
        values[i + 1] = __uint_as_float(from.pairs[i / 2] & 0xffff0000u);
#endif
    }
}

// Two numbers by one instruction where there is one.
__device__ __forceinline__ packed narrow_all(const float (&values)[WIDTH]) {
    packed result;
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
typedef piece packed;

__device__ __forceinline__ void widen_all(packed from, float (&values)[WIDTH]) {
#pragma unroll
    for (int i = 0; i < WIDTH; i++) values[i] = widen(from.parts[i]);
}

__device__ __forceinline__ packed narrow_all(const float (&values)[WIDTH]) {
    packed result;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) result.parts[i] = narrow(values[i]);
    return result;
}
#endif
