// Fake quantization of layer inputs to a microscaling format: x -> amax of blocks of BLOCK_SIZE elements of a row ->
// scale -> round(x / scale) * scale, in bf16, which represents every result exactly.
//
//   format  BLOCK_SIZE  elements  scale (OCP Microscaling Formats specification v1.0; NVFP4)
//   MXFP8   32          e4m3      power of two: amax / 448, rounded up
//   MXFP4   32          e2m1      power of two: amax / 6, rounded up
//   NVFP4   16          e2m1      e4m3: amax / 6 relative to the tensor-wide scale, which the results do not include
//
// Contract: x[rows, columns], row-major, element dtype; tensor_scale[1], f32, from tensor_amax.cu, only with NVFP4;
// rounded[rows, columns], bf16. A block with NaN or infinity becomes NaN.
//
// A thread holds WIDTH elements; BLOCK_SIZE / WIDTH neighboring lanes reduce the amax of a block by shuffles.
//
// Traffic: x once and 2 bytes written per element. Roofline: memory; for few rows, the launch latency.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH          elements per vector access (element.cuh)
//   KERNEL         kernel name
//   THREADS        threads per block
//   BLOCK_SIZE     elements that share a scale
//   MANTISSA_BITS  mantissa bits of the element format
//   MIN_NORMAL     smallest normal value of the element format, a float
//   MAX_VALUE      largest value of the element format, a float
// Optional:
//   NVFP4          NVFP4 scales

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif
#ifndef THREADS
#error "THREADS: threads per block"
#endif
#ifndef BLOCK_SIZE
#error "BLOCK_SIZE: elements that share a scale"
#endif
#ifndef MANTISSA_BITS
#error "MANTISSA_BITS: mantissa bits of the element format"
#endif
#ifndef MIN_NORMAL
#error "MIN_NORMAL: smallest normal value of the element format, a float"
#endif
#ifndef MAX_VALUE
#error "MAX_VALUE: largest value of the element format, a float"
#endif

#include "element.cuh"

constexpr int BLOCK_LANES = BLOCK_SIZE / WIDTH;
static_assert(BLOCK_LANES <= 32 && BLOCK_LANES * WIDTH == BLOCK_SIZE, "a block is within a warp");

// Division with 0 / 0 = 0.
__device__ __forceinline__ float divide(float x, float divisor) {
    const float quotient = __fdiv_rn(x, divisor);
    return quotient == quotient ? quotient : 0.0f;
}

// Rounds to nearest even with `mantissa_bits` bits and saturates. Adding 2^23 rounding steps discards all lower bits.
__device__ __forceinline__ float round_to_format(float x, int mantissa_bits, float min_normal, float max_value) {
    const float magnitude = fminf(fabsf(x), max_value);
    const float exponent_value = fmaxf(__uint_as_float(__float_as_uint(magnitude) & 0x7f800000u), min_normal);
    const float rounding_step = exponent_value * __uint_as_float((127 + 23 - mantissa_bits) << 23);
    return copysignf(__fsub_rn(__fadd_rn(magnitude, rounding_step), rounding_step), x);
}

#if !defined(NVFP4)
// Biased exponent of amax / MAX_VALUE, rounded up to a power of two. Subnormal quotients above 2^-127 become 2^-126.
__device__ __forceinline__ unsigned scale_exponent(float amax) {
    const unsigned bits = __float_as_uint(__fdiv_rn(amax, MAX_VALUE));
    const unsigned mantissa = bits & 0x007fffffu;
    return (bits >> 23) + (bits >> 23 == 0 ? mantissa > 0x00400000u : mantissa != 0);
}
#endif

struct __align__(2 * WIDTH) bf16_vec {
    unsigned short val[WIDTH];
};

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const element *__restrict__ x,
#if defined(NVFP4)
           const float *__restrict__ tensor_scale,
#endif
           bf16_vec *__restrict__ rounded, u64 rows, u64 columns) {
    const u64 blocks = (columns + BLOCK_SIZE - 1) / BLOCK_SIZE;
    const u64 block = (u64)blockIdx.x * (THREADS / BLOCK_LANES) + threadIdx.x / BLOCK_LANES;
    const u64 row = block / blocks, column = block % blocks * BLOCK_SIZE + threadIdx.x % BLOCK_LANES * WIDTH;
    // Threads beyond the end take part in the shuffles. Rows are whole vectors.
    const bool is_inside = row < rows && column < columns;

    float values[WIDTH] = {};
    if (is_inside) {
        const vec loaded = *reinterpret_cast<const vec *>(x + row * columns + column);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) values[i] = widen(loaded.val[i]);
    }
    // Bits of magnitudes are ordered like their values, with NaN on top.
    unsigned amax_bits = 0;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) amax_bits = max(amax_bits, __float_as_uint(values[i]) & 0x7fffffffu);
#pragma unroll
    for (int distance = 1; distance < BLOCK_LANES; distance *= 2)
        amax_bits = max(amax_bits, __shfl_xor_sync(0xffffffffu, amax_bits, distance));
    if (!is_inside) return;

    const float amax = __uint_as_float(amax_bits);
    float scale, results[WIDTH];
#if defined(NVFP4)
    const float outer_scale = *tensor_scale;
    scale = round_to_format(fmaxf(divide(__fdiv_rn(amax, MAX_VALUE), outer_scale), 0x1p-6f), 3, 0x1p-6f, 448.0f);
    const float divisor = __fmul_rn(outer_scale, scale);
#pragma unroll
    for (int i = 0; i < WIDTH; i++)
        results[i] = round_to_format(divide(values[i], divisor), MANTISSA_BITS, MIN_NORMAL, MAX_VALUE) * scale;
#else
    const unsigned exponent = scale_exponent(amax);
    scale = __uint_as_float(exponent == 0 ? 0x00400000u : exponent << 23);
    // Elements under the smallest scale, 2^-127, are not divided.
    const float inverse = __uint_as_float(exponent == 0 ? 0x3f800000u : (254u - exponent) << 23);
#pragma unroll
    for (int i = 0; i < WIDTH; i++)
        results[i] = round_to_format(values[i] * inverse, MANTISSA_BITS, MIN_NORMAL, MAX_VALUE) * scale;
#endif
    bf16_vec result;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        const float value = amax_bits < 0x7f800000u ? results[i] : __uint_as_float(0x7fc00000u);
        // Truncation is exact, except for f32 subnormals, which lose a bit.
        result.val[i] = (unsigned short)(__float_as_uint(value) >> 16);
    }
    rounded[(row * columns + column) / WIDTH] = result;
}
