// Random matrix whose elements are computed independently of each other from (key, index), bit-identical to the host.
// Only integer and single IEEE operations are used (__fmul_rn, __fadd_rn), which the compiler may not contract.
//
// Element = narrow(base * scale factor * row factor + row offset):
//   base          counter-based SplitMix64 (Steele, Lea and Flood 2014): bits = mix(key + index * GOLDEN_GAMMA), mapped
//                 to a uniform float, or to a normal float by a piecewise linear quantile table of OCTAVES x
//                 SEGMENTS segments
//   scale factor  powers of two in steps of 1 / STEPS octave, drawn per column, row and run of adjacent elements
//
// Contract: params: u32 words in the layout of the enum below, followed by the tables: quantiles (OCTAVES * SEGMENTS
// pairs of start and slope), powers (STEPS floats), row factors; y[count / cols, cols], row-major, element dtype, or one
// byte per element with STORE_E4M3 or STORE_E5M2.
//
// Each thread computes ELEMENTS_PER_THREAD elements, THREADS apart. Tables are in shared memory.
//
// Traffic: y once. Roofline: arithmetic; a scale factor takes six rounds of SplitMix64.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH                elements per vector access (element.cuh)
//   THREADS              threads per block
//   ELEMENTS_PER_THREAD  elements per thread
//   OCTAVES              octaves of the quantile table
//   SEGMENTS             segments per octave
//   STEPS                steps per octave of the scale factors
//   MAX_RUNS             maximum number of run lengths
//   GOLDEN_GAMMA         increment of SplitMix64, u64
// Optional:
//   STORE_E4M3           y is e4m3; the element dtype is f32
//   STORE_E5M2           y is e5m2; the element dtype is f32

#ifndef THREADS
#error "THREADS: threads per block"
#endif
#ifndef ELEMENTS_PER_THREAD
#error "ELEMENTS_PER_THREAD: elements per thread"
#endif
#ifndef OCTAVES
#error "OCTAVES: octaves of the quantile table"
#endif
#ifndef SEGMENTS
#error "SEGMENTS: segments per octave"
#endif
#ifndef STEPS
#error "STEPS: steps per octave of the scale factors"
#endif
#ifndef MAX_RUNS
#error "MAX_RUNS: maximum number of run lengths"
#endif
#ifndef GOLDEN_GAMMA
#error "GOLDEN_GAMMA: increment of SplitMix64, u64"
#endif

#include "element.cuh"

#if defined(STORE_E4M3)
#define FLOAT8 "e4m3x2"
#elif defined(STORE_E5M2)
#define FLOAT8 "e5m2x2"
#endif
#ifdef FLOAT8
typedef unsigned char stored;
__device__ __forceinline__ stored to_stored(float value) {
    unsigned short pair;
    asm("cvt.rn.satfinite." FLOAT8 ".f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
    return (stored)pair;
}
#else
typedef element stored;
__device__ __forceinline__ stored to_stored(float value) { return narrow(value); }
#endif

// Word offsets in `params`; the host writes this layout.
enum {
    DISTRIBUTION,      // 0 normal, 1 uniform
    KEY,               // u64
    LOW = KEY + 2,     // float: lower bound of the uniform distribution
    RANGE,             // float: upper minus lower bound
    HIGH,              // float: upper bound
    OFFSET_UNIT,       // float: row r is shifted by (r % 9 - 4) units
    HAS_ROW_FACTORS,   // bool
    HAS_SCALE_FACTORS, // bool; the following words up to FIRST_RUN belong to scale factors
    SEED,              // u64
    ROW_OCTAVES = SEED + 2,
    COLUMN_OCTAVES,
    SQUARE_RUNS,   // bool: runs extend over equally many rows
    SKEW_NEGATIVE, // bool: negative elements have a separate factor in the longest run
    TAIL_FACTOR,   // float: factor of the last TAIL_COLUMNS columns
    TAIL_COLUMNS,
    GLOBAL_FACTOR, // float
    RUN_COUNT,
    FIRST_RUN, // MAX_RUNS words: run lengths in ascending order
    TABLES = FIRST_RUN + MAX_RUNS
};

// Output function of SplitMix64.
__device__ __forceinline__ u64 mix(u64 state) {
    u64 z = state + GOLDEN_GAMMA;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

// Pseudo-random number of steps for the coordinates (a, b, c), uniform over `octaves` octaves around 0.
__device__ __forceinline__ int draw_steps(u64 seed, unsigned octaves, u64 a, u64 b, u64 c) {
    const u64 mixed = mix(mix(mix(seed ^ mix(a)) ^ mix(b)) ^ mix(c));
    const unsigned steps = octaves * STEPS;
    return (int)((steps * (mixed >> 40)) >> 24) - (int)(steps / 2);
}

// 2^(steps / STEPS).
__device__ __forceinline__ float power_of_two(const float *powers, int steps) {
    const int octave = (steps - (STEPS - 1) * (steps < 0)) / STEPS;
    return __fmul_rn(powers[steps - octave * STEPS], __uint_as_float((unsigned)(127 + octave) << 23));
}

// Standard normal quantile: leading zeros select the octave of the tail probability, five bits the segment, 24 bits the
// position within it, and the top bit the sign.
__device__ __forceinline__ float normal(const float2 *quantiles, u64 bits) {
    const u64 magnitude_bits = bits << 1;
    const int zeros = __clzll((long long)magnitude_bits), octave = zeros < OCTAVES - 1 ? zeros : OCTAVES - 1;
    const u64 fraction = magnitude_bits << (octave + 1);
    const float2 segment = quantiles[octave * SEGMENTS + (unsigned)(fraction >> 59)];
    const float magnitude = __fadd_rn(segment.x, __fmul_rn(segment.y, (float)(unsigned)(fraction << 5 >> 40)));
    return __uint_as_float(__float_as_uint(magnitude) | (unsigned)(bits >> 63) << 31);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    random_matrix(const unsigned *__restrict__ params, stored *__restrict__ y, u64 cols, u64 count) {
    __shared__ float2 quantiles[OCTAVES * SEGMENTS];
    __shared__ float powers[STEPS];
    const float *tables = (const float *)params + TABLES;
    for (unsigned i = threadIdx.x; i < OCTAVES * SEGMENTS; i += THREADS)
        quantiles[i] = make_float2(tables[2 * i], tables[2 * i + 1]);
    for (unsigned i = threadIdx.x; i < STEPS; i += THREADS) powers[i] = tables[2 * OCTAVES * SEGMENTS + i];
    __syncthreads();
    const float *factors = tables + 2 * OCTAVES * SEGMENTS + STEPS;
    const auto word64 = [=](int i) { return params[i] | (u64)params[i + 1] << 32; };
    const auto word_float = [=](int i) { return __uint_as_float(params[i]); };
    const u64 key = word64(KEY), seed = word64(SEED);

    for (int e = 0; e < ELEMENTS_PER_THREAD; e++) {
        const u64 index = ((u64)blockIdx.x * ELEMENTS_PER_THREAD + e) * THREADS + threadIdx.x;
        if (index >= count) return;
        const u64 row = index / cols, col = index - row * cols, bits = mix(key + index * GOLDEN_GAMMA);
        float value;
        if (params[DISTRIBUTION] == 0) {
            value = normal(quantiles, bits);
        } else {
            // 24 bits are exact in f32.
            const float uniform = __fmul_rn((float)(unsigned)(bits >> 40), 1.0f / (1 << 24));
            value = fminf(__fadd_rn(word_float(LOW), __fmul_rn(word_float(RANGE), uniform)), word_float(HIGH));
        }
        if (params[HAS_SCALE_FACTORS]) {
            const float tail_factor =
                col + params[TAIL_COLUMNS] >= cols && cols > params[TAIL_COLUMNS] ? word_float(TAIL_FACTOR) : 1.0f;
            const float column_factor = power_of_two(powers, draw_steps(seed, params[COLUMN_OCTAVES], 0, col, 0));
            value = __fmul_rn(value, __fmul_rn(__fmul_rn(column_factor, tail_factor), word_float(GLOBAL_FACTOR)));
            int steps = draw_steps(seed, params[ROW_OCTAVES], 1 + row, 0, 0), last_steps = 0;
            u64 run = 1;
            for (unsigned i = 0; i < params[RUN_COUNT]; i++) {
                run = params[FIRST_RUN + i];
                last_steps = draw_steps(seed, 1, 1 + (params[SQUARE_RUNS] ? row / run : row), col / run, run);
                steps += last_steps;
            }
            if (params[SKEW_NEGATIVE] && value < 0.0f) steps += draw_steps(seed, 1, 1 + row, col / run, 1) - last_steps;
            value = __fmul_rn(value, power_of_two(powers, steps));
        }
        if (params[HAS_ROW_FACTORS]) value = __fmul_rn(value, factors[row]);
        const float mean = __fmul_rn(word_float(OFFSET_UNIT), __fsub_rn((float)(unsigned)(row % 9), 4.0f));
        y[index] = to_stored(__fadd_rn(value, mean));
    }
}
