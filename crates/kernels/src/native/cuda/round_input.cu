// The nearest numbers to x[rows, columns] of a microscaling format, in bf16, which holds them exactly: x -> largest magnitude of
// BLOCK numbers of a row -> their scale -> numbers. They have MANTISSA bits above LEAST, the least normal number, and are LARGEST at
// most, times the scale: a power of two, rounded up; with NVFP4 an e4m3, relative to the tensor's scale, which
// `largest_input.cu` has found and the numbers are without.
//
// Data flow: a thread takes WIDTH numbers, LANES neighbors share a block. Traffic: x once, and 2 bytes written for each number.
// Roofline: memory; x of few rows is in the cache, and a launch is all that it takes.
#include "element.cuh"

constexpr int LANES = BLOCK / WIDTH;
static_assert(LANES <= 32 && LANES * WIDTH == BLOCK, "a block is within a warp");

// x divided, where nothing over nothing is nothing.
__device__ __forceinline__ float over(float x, float by) {
    const float quotient = __fdiv_rn(x, by);
    return quotient == quotient ? quotient : 0.0f;
}

// The nearest number with so many bits of mantissa above the least normal number, ties to even, saturating. Adding 2^23 of its
// steps leaves no more of it.
__device__ __forceinline__ float nearest(float x, int mantissa, float least, float largest) {
    const float magnitude = fminf(fabsf(x), largest);
    const float power = fmaxf(__uint_as_float(__float_as_uint(magnitude) & 0x7f800000u), least);
    const float steps = power * __uint_as_float((127 + 23 - mantissa) << 23);
    return copysignf(__fsub_rn(__fadd_rn(magnitude, steps), steps), x);
}

#if !defined(NVFP4)
// The exponent of what takes the largest magnitude to LARGEST, rounded up. Of the numbers below 2^-126, those above 2^-127 round up.
__device__ __forceinline__ unsigned exponent_for(float largest) {
    const unsigned bits = __float_as_uint(__fdiv_rn(largest, LARGEST));
    const unsigned mantissa = bits & 0x007fffffu;
    return (bits >> 23) + (bits >> 23 == 0 ? mantissa > 0x00400000u : mantissa != 0);
}
#endif

struct __align__(2 * WIDTH) numbers {
    unsigned short parts[WIDTH];
};

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const element *__restrict__ x,
#if defined(NVFP4)
           const float *__restrict__ scale_of_all,
#endif
           numbers *__restrict__ rounded, u64 rows, u64 columns) {
    const u64 blocks = (columns + BLOCK - 1) / BLOCK;
    const u64 block = (u64)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    const u64 row = block / blocks, at = block % blocks * BLOCK + threadIdx.x % LANES * WIDTH;
    // Those beyond the end stay for what a warp does together. Rows are whole pieces.
    const bool inside = row < rows && at < columns;

    float values[WIDTH] = {};
    if (inside) {
        const piece held = *reinterpret_cast<const piece *>(x + row * columns + at);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) values[i] = widen(held.parts[i]);
    }
    // As bits, which are ordered like magnitudes, NaN above all.
    unsigned most = 0;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) most = max(most, __float_as_uint(values[i]) & 0x7fffffffu);
#pragma unroll
    for (int far = 1; far < LANES; far *= 2) most = max(most, __shfl_xor_sync(0xffffffffu, most, far));
    if (!inside) return;

    const float largest = __uint_as_float(most);
    float scale, made[WIDTH];
#if defined(NVFP4)
    const float of_all = *scale_of_all;
    scale = nearest(fmaxf(over(__fdiv_rn(largest, LARGEST), of_all), 0x1p-6f), 3, 0x1p-6f, 448.0f);
    const float divisor = __fmul_rn(of_all, scale);
#pragma unroll
    for (int i = 0; i < WIDTH; i++) made[i] = nearest(over(values[i], divisor), MANTISSA, LEAST, LARGEST) * scale;
#else
    const unsigned exponent = exponent_for(largest);
    scale = __uint_as_float(exponent == 0 ? 0x00400000u : exponent << 23);
    // Numbers under the smallest scale are taken as they are.
    const float inverse = __uint_as_float(exponent == 0 ? 0x3f800000u : (254u - exponent) << 23);
#pragma unroll
    for (int i = 0; i < WIDTH; i++) made[i] = nearest(values[i] * inverse, MANTISSA, LEAST, LARGEST) * scale;
#endif
    numbers result;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        const float number = most < 0x7f800000u ? made[i] : __uint_as_float(0x7fc00000u);
        // What is there in bf16 needs no rounding; only numbers below the least of f32's normal ones lose a bit.
        result.parts[i] = (unsigned short)(__float_as_uint(number) >> 16);
    }
    rounded[(row * columns + at) / WIDTH] = result;
}
