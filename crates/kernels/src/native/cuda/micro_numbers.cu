// The numbers that OCP microscaling makes of bf16, in bf16, which holds every one of them: e4m3 times a power of two for each
// 32 numbers, the exponent rounded up; with SCALE defined, e4m3 times that scale.
//
// DOWN 0: blocks run along rows. Four threads share one, eight numbers each. DOWN 1: blocks run down columns. A thread keeps 32
// numbers of WIDTH neighboring columns. Traffic: two bytes a number read and two written; roofline: these over the memory's rate.
#include "e4m3.cuh"

constexpr int BLOCK = 32;

// The power of two, or the scale, for a largest magnitude that is given as the bits of a bf16. 448 is 1.75 times 2^8: of a
// mantissa up to that the exponent is 8 less. The least is 2^-126, whose codes hold all that is smaller.
__device__ __forceinline__ float power_for(unsigned largest) {
#ifdef SCALE
    return SCALE;
#else
    const float quotient = __fdiv_rn(lower(largest), 448.0f);
    const unsigned bits = __float_as_uint(quotient);
    const unsigned exponent = (bits >> 23) + ((bits & 0x7fffffu) != 0);
    return __uint_as_float((exponent < 1 ? 1 : exponent) << 23);
#endif
}

// The numbers of two, the first in the lower half.
__device__ __forceinline__ unsigned numbers_of(float low, float high, float power) {
    const float inverse = 1.0f / power;
    unsigned short codes;
    unsigned halves;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high * inverse), "f"(low * inverse));
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(codes));
    float first, second;
    asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %2;\ncvt.f32.f16 %0, low;\ncvt.f32.f16 %1, high;\n}"
        : "=f"(first), "=f"(second)
        : "r"(halves));
    return round_pair(first * power, second * power);
}

#if DOWN
struct __align__(2 * WIDTH) access {
    bf16 parts[WIDTH];
};

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const access *__restrict__ x, access *__restrict__ y, u64 rows, u64 columns) {
    const u64 across = columns / WIDTH, at = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (at >= rows / BLOCK * across) return;
    const u64 first = at / across * BLOCK * across + at % across;
    access values[BLOCK];
#pragma unroll
    for (int r = 0; r < BLOCK; r++) values[r] = x[first + r * across];
#pragma unroll
    for (int c = 0; c < WIDTH; c++) {
        unsigned largest = 0;
#pragma unroll
        for (int r = 0; r < BLOCK; r++) largest = larger(largest, values[r].parts[c]);
        const float power = power_for(largest);
#pragma unroll
        for (int r = 0; r < BLOCK; r += 2) {
            const unsigned pair = numbers_of(lower(values[r].parts[c]), lower(values[r + 1].parts[c]), power);
            values[r].parts[c] = pair & 0xffffu;
            values[r + 1].parts[c] = pair >> 16;
        }
    }
#pragma unroll
    for (int r = 0; r < BLOCK; r++) y[first + r * across] = values[r];
}
#else
extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const uint4 *__restrict__ x, uint4 *__restrict__ y, u64 rows, u64 columns) {
    const u64 at = (u64)blockIdx.x * THREADS + threadIdx.x;
    const bool owns = at < rows * columns / 8;
    const uint4 values = owns ? __ldcs(x + at) : make_uint4(0, 0, 0, 0);
    unsigned largest = larger(larger(larger(larger(0, values.x), values.y), values.z), values.w);
#pragma unroll
    for (int distance = BLOCK / 16; distance > 0; distance /= 2) {
        largest = __vmaxu2(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
    }
    const float power = power_for(max(largest & 0xffffu, largest >> 16));
    if (!owns) return;
    const auto of_pair = [power](unsigned pair) { return numbers_of(lower(pair), upper(pair), power); };
    __stcs(y + at, make_uint4(of_pair(values.x), of_pair(values.y), of_pair(values.z), of_pair(values.w)));
}
#endif
