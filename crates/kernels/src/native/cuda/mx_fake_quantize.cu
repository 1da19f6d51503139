// MXFP8 fake quantization of bf16 (OCP Microscaling Formats specification v1.0): e4m3 elements times one power-of-two
// scale per 32 elements, rounded up; with STATIC_SCALE e4m3 times that scale. The result is bf16, which represents it
// exactly.
//
// Contract: x -> y[rows, columns], bf16, row-major.
//   COLUMN_BLOCKS 0  blocks of 32 elements along rows (columns % 32 == 0): 8 elements per thread, 4 lanes per block
//   COLUMN_BLOCKS 1  blocks of 32 elements along columns (rows % 32 == 0): a thread holds 32 rows of WIDTH columns
//
// Traffic: x and y once. Roofline: memory, 4 bytes per element.
//
// Parameters:
//   KERNEL         kernel name
//   THREADS        threads per block
//   COLUMN_BLOCKS  1 for blocks along columns, 0 for blocks along rows
//   WIDTH          columns per thread with COLUMN_BLOCKS: 1 or 2; otherwise 8
// Optional:
//   STATIC_SCALE   float; replaces the scales of amax

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif
#ifndef THREADS
#error "THREADS: threads per block"
#endif
#ifndef COLUMN_BLOCKS
#error "COLUMN_BLOCKS: 1 for blocks along columns, 0 for blocks along rows"
#endif
#ifndef WIDTH
#error "WIDTH: columns per thread with COLUMN_BLOCKS: 1 or 2"
#endif

#include "e4m3.cuh"

constexpr int BLOCK_SIZE = 32;

// Scale from amax, which is given as the bits of a bf16: amax / 448 rounded up to a power of two, at least 2^-126.
__device__ __forceinline__ float scale_for(unsigned amax) {
#ifdef STATIC_SCALE
    return STATIC_SCALE;
#else
    const float quotient = __fdiv_rn(bf16x2_low(amax), 448.0f);
    const unsigned bits = __float_as_uint(quotient);
    const unsigned exponent = (bits >> 23) + ((bits & 0x7fffffu) != 0);
    return __uint_as_float((exponent < 1 ? 1 : exponent) << 23);
#endif
}

// Quantizes and dequantizes two elements; the first result is in the lower half.
__device__ __forceinline__ unsigned fake_quantize(float low, float high, float scale) {
    const float inverse = 1.0f / scale;
    unsigned short quantized;
    unsigned f16_pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(quantized) : "f"(high * inverse), "f"(low * inverse));
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(f16_pair) : "h"(quantized));
    float first, second;
    asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %2;\ncvt.f32.f16 %0, low;\ncvt.f32.f16 %1, high;\n}"
        : "=f"(first), "=f"(second)
        : "r"(f16_pair));
    return pack_bf16x2(first * scale, second * scale);
}

#if COLUMN_BLOCKS
struct __align__(2 * WIDTH) bf16_vec {
    bf16 val[WIDTH];
};

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const bf16_vec *__restrict__ x, bf16_vec *__restrict__ y, u64 rows, u64 columns) {
    const u64 row_vecs = columns / WIDTH, v = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (v >= rows / BLOCK_SIZE * row_vecs) return;
    const u64 first_vec = v / row_vecs * BLOCK_SIZE * row_vecs + v % row_vecs;
    bf16_vec values[BLOCK_SIZE];
#pragma unroll
    for (int r = 0; r < BLOCK_SIZE; r++) values[r] = x[first_vec + r * row_vecs];
#pragma unroll
    for (int c = 0; c < WIDTH; c++) {
        unsigned amax = 0;
#pragma unroll
        for (int r = 0; r < BLOCK_SIZE; r++) amax = max_magnitude(amax, values[r].val[c]);
        const float scale = scale_for(amax);
#pragma unroll
        for (int r = 0; r < BLOCK_SIZE; r += 2) {
            const unsigned pair = fake_quantize(bf16x2_low(values[r].val[c]), bf16x2_low(values[r + 1].val[c]), scale);
            values[r].val[c] = pair & 0xffffu;
            values[r + 1].val[c] = pair >> 16;
        }
    }
#pragma unroll
    for (int r = 0; r < BLOCK_SIZE; r++) y[first_vec + r * row_vecs] = values[r];
}
#else
extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const uint4 *__restrict__ x, uint4 *__restrict__ y, u64 rows, u64 columns) {
    const u64 v = (u64)blockIdx.x * THREADS + threadIdx.x;
    const bool is_inside = v < rows * columns / 8;
    const uint4 values = is_inside ? __ldcs(x + v) : make_uint4(0, 0, 0, 0);
    unsigned amax =
        max_magnitude(max_magnitude(max_magnitude(max_magnitude(0, values.x), values.y), values.z), values.w);
#pragma unroll
    for (int distance = BLOCK_SIZE / 16; distance > 0; distance /= 2) {
        amax = __vmaxu2(amax, __shfl_xor_sync(0xffffffffu, amax, distance));
    }
    const float scale = scale_for(max(amax & 0xffffu, amax >> 16));
    if (!is_inside) return;
    const auto fake_quantize_pair = [scale](unsigned pair) {
        return fake_quantize(bf16x2_low(pair), bf16x2_high(pair), scale);
    };
    __stcs(y + v, make_uint4(fake_quantize_pair(values.x), fake_quantize_pair(values.y), fake_quantize_pair(values.z),
                             fake_quantize_pair(values.w)));
}
#endif
