// Vectors of a weight row w[., K] and of the matching elements of x, as a thread loads and multiplies them.
//
// A vector is VECTOR_WORDS words of w: 32 packed values, 16 bytes of 8-bit values, or 16 bytes of unquantized values.
// With TENSOR_CORES the values become pairs of dtype `element` for mma.m16n8k16 (mma16.cuh), otherwise f32.
//
// With 4-bit integers whose groups consist of whole chunks of four vectors (SCALE_SUMS), the tensor cores multiply
// 16 + q, which needs no fma per pair, and sum up x in a second mma. Scale and zero point then apply to the f32 sums of a
// chunk.
//
// Include element.cuh first.
//
// Parameters:
//   K             reduction size: elements of a weight row
//   TENSOR_CORES  1 for mma.m16n8k16, 0 for f32 fma
//   SCALE_PAIRS   1 if the dtype `element` represents scales and zero points exactly
//   VECTOR_WORDS  words of w per vector
//   UNQUANTIZED   optional: the values of w have dtype `element`
//   ...           without UNQUANTIZED: all parameters of packed_weight.cuh
#pragma once

#ifndef K
#error "K: reduction size: elements of a weight row"
#endif
#ifndef TENSOR_CORES
#error "TENSOR_CORES: 1 for mma.m16n8k16, 0 for f32 fma"
#endif
#ifndef VECTOR_WORDS
#error "VECTOR_WORDS: words of w per vector"
#endif

#if defined(UNQUANTIZED)
#if TENSOR_CORES
#include "mma16.cuh"
#endif
constexpr unsigned VECTOR_VALUES = VECTOR_WORDS * 4 / sizeof(element);
#else
#ifndef SCALE_PAIRS
#error "SCALE_PAIRS: 1 if the dtype `element` represents scales and zero points exactly"
#endif
#include "packed_weight.cuh"
#if TENSOR_CORES
#include "dequantize_pairs.cuh"
#endif
constexpr unsigned VECTOR_VALUES = VECTOR_WORDS * 32 / BITS;
// Values of a vector that are guaranteed to share a scale, and the resulting scales per vector.
constexpr unsigned SCALE_SPAN = values_per_scale(VECTOR_VALUES);
constexpr unsigned VECTOR_SCALES = VECTOR_VALUES / SCALE_SPAN;
#endif

constexpr unsigned ROW_VECTORS = (K + VECTOR_VALUES - 1) / VECTOR_VALUES;
constexpr int X_WORDS = VECTOR_VALUES * sizeof(element) / 4;

// Scales apply to the sums of a chunk: each chunk has one scale per row.
#if TENSOR_CORES && defined(GROUP_SIZE) && BITS == 4 && !defined(MANTISSA_BITS)
#if GROUP_SIZE % 128 == 0
#define SCALE_SUMS
#endif
#endif

typedef unsigned weight_vector[VECTOR_WORDS];

// Loads a vector in accesses as wide as its alignment allows. Accesses below 16 bytes leave sectors partly used, so
// they go through L1.
__device__ __forceinline__ void load_weights(const unsigned *source, weight_vector &words) {
#pragma unroll
    for (int i = 0; i < VECTOR_WORDS; i += VECTOR_WORDS % 4 == 0 ? 4 : VECTOR_WORDS % 2 == 0 ? 2 : 1) {
#if VECTOR_WORDS % 4 == 0
        // Weights are used once, so they bypass L1. The prefetch of 256 bytes into L2 saves up to 4 % on an H200.
#if __CUDA_ARCH__ >= 800
        asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words[i]), "=r"(words[i + 1]), "=r"(words[i + 2]), "=r"(words[i + 3])
                     : "l"(source + i));
#else
        const uint4 loaded = __ldcg(reinterpret_cast<const uint4 *>(source + i));
        words[i] = loaded.x;
        words[i + 1] = loaded.y;
        words[i + 2] = loaded.z;
        words[i + 3] = loaded.w;
#endif
#elif VECTOR_WORDS % 2 == 0
        const uint2 loaded = __ldg(reinterpret_cast<const uint2 *>(source + i));
        words[i] = loaded.x;
        words[i + 1] = loaded.y;
#else
        words[i] = __ldg(source + i);
#endif
    }
}

// Loads the elements of x for one vector, the first of which has index `k` in its row. Elements beyond K are zero,
// unless NO_TAIL states that there are none.
template <bool NO_TAIL>
__device__ __forceinline__ void load_x(const element *source, unsigned k, unsigned (&words)[X_WORDS]) {
#if WIDTH > 1
#pragma unroll
    for (int i = 0; i < X_WORDS / 4; i++) {
        uint4 four = make_uint4(0, 0, 0, 0);
        if (NO_TAIL || k + i * WIDTH < K) four = __ldg(reinterpret_cast<const uint4 *>(source) + i);
        words[4 * i] = four.x;
        words[4 * i + 1] = four.y;
        words[4 * i + 2] = four.z;
        words[4 * i + 3] = four.w;
    }
#else
#pragma unroll
    for (int i = 0; i < X_WORDS; i++) {
#if defined(ELEMENT_F32)
        words[i] = k + i < K ? __float_as_uint(source[i]) : 0;
#else
        const unsigned first = k + 2 * i < K ? source[2 * i] : 0;
        const unsigned second = k + 2 * i + 1 < K ? source[2 * i + 1] : 0;
        words[i] = first | second << 16;
#endif
    }
#endif
}

__device__ __forceinline__ float x_value(const unsigned (&words)[X_WORDS], int i) {
#if defined(ELEMENT_F32)
    return __uint_as_float(words[i]);
#else
    return widen((element)(words[i / 2] >> 16 * (i % 2)));
#endif
}

#if TENSOR_CORES
constexpr int VECTOR_PAIRS = VECTOR_VALUES / 2;
typedef unsigned vector_values[VECTOR_PAIRS];

// Pairs consist of values that are half a word apart (dequantize_pairs.cuh).
#if !defined(UNQUANTIZED) && ((SCALE_PAIRS && 32 % BITS == 0) || defined(SCALE_SUMS))
#define STRIDED_PAIRS
#endif

// Brings x into the order of the pairs of a vector.
__device__ __forceinline__ void reorder(const unsigned (&neighbors)[VECTOR_PAIRS], unsigned (&pairs)[VECTOR_PAIRS]) {
#pragma unroll
    for (int p = 0; p < VECTOR_PAIRS; p++) {
#if defined(STRIDED_PAIRS)
        pairs[p] = strided_pair(neighbors, p);
#else
        pairs[p] = neighbors[p];
#endif
    }
}

// One mma: pairs p and p + 1 of 16 weight rows, the first and second row of each thread, times x.
__device__ __forceinline__ void mma_pairs(float (&sums)[4], const vector_values &first, const vector_values &second,
                                          const unsigned (&pairs)[VECTOR_PAIRS], int p) {
    mma_m16n8k16(sums, first[p], second[p], first[p + 1], second[p + 1], pairs[p], pairs[p + 1]);
}
#else
typedef float vector_values[VECTOR_VALUES];
#endif

#if !defined(UNQUANTIZED)

#if TENSOR_CORES
// Index of the first value of a pair in its vector.
__device__ __forceinline__ int first_value(int pair) {
#if defined(STRIDED_PAIRS)
    return pair / WORD_PAIRS * (2 * WORD_PAIRS) + pair % WORD_PAIRS;
#else
    return 2 * pair;
#endif
}

// Decodes a pair without scale and zero point.
__device__ __forceinline__ unsigned decode_vector_pair(const weight_vector &words, int pair) {
#if defined(STRIDED_PAIRS)
    return decode_pair(words[pair / WORD_PAIRS], pair % WORD_PAIRS * BITS);
#else
    const unsigned bits = extract(words, 2 * pair * BITS);
    return decode_pair((bits & MASK) | bits << (16 - BITS), 0);
#endif
}
#endif

// Scales and zero points of a vector as loaded.
struct vector_scales {
#if defined(GROUP_SIZE)
    stored_scale scales[VECTOR_SCALES];
    loaded_zero zeros[VECTOR_SCALES];
#endif
};

// Dequantizes a vector. `first_group` is the index of the first group of its row. Scales per row are applied by the
// epilogue.
__device__ __forceinline__ void dequantize(const weight_vector &words, const vector_scales &loaded, u64 first_group,
                                           unsigned vector, vector_values &values) {
#if defined(GROUP_SIZE) && !defined(SCALE_SUMS)
    float scale[VECTOR_SCALES], zero[VECTOR_SCALES];
#pragma unroll
    for (int s = 0; s < VECTOR_SCALES; s++) {
        scale[s] = SCALE_DTYPE::to_float(loaded.scales[s]);
        zero[s] = zero_value(loaded.zeros[s], first_group + group_of(vector * VECTOR_VALUES + s * SCALE_SPAN));
    }
#endif
#if defined(SCALE_SUMS)
#pragma unroll
    for (int p = 0; p < VECTOR_PAIRS; p++) values[p] = decode_biased_pair(words[p / WORD_PAIRS], p % WORD_PAIRS * BITS);
#elif TENSOR_CORES && SCALE_PAIRS
#if defined(GROUP_SIZE)
    pair_scale factors[VECTOR_SCALES];
#pragma unroll
    for (int s = 0; s < VECTOR_SCALES; s++) factors[s] = make_pair_scale(scale[s], zero[s]);
#endif
#pragma unroll
    for (int p = 0; p < VECTOR_PAIRS; p++) {
        values[p] = decode_vector_pair(words, p);
#if defined(GROUP_SIZE)
        values[p] = scale_pair(values[p], factors[first_value(p) / SCALE_SPAN]);
#endif
    }
#else
    float floats[VECTOR_VALUES];
#pragma unroll
    for (int i = 0; i < VECTOR_VALUES; i++) {
        floats[i] = decode(extract(words, i * BITS));
#if defined(GROUP_SIZE)
        floats[i] = apply_scale(floats[i], scale[i / SCALE_SPAN], zero[i / SCALE_SPAN]);
#endif
    }
#if TENSOR_CORES
#pragma unroll
    for (int p = 0; p < VECTOR_PAIRS; p++) values[p] = pack_pair(floats[2 * p], floats[2 * p + 1]);
#else
#pragma unroll
    for (int i = 0; i < VECTOR_VALUES; i++) values[i] = floats[i];
#endif
#endif
}

#if defined(SCALE_SUMS)
// Scale and offset of a vector's group, for sums of 16 + q and of x.
__device__ __forceinline__ void sum_factors(const vector_scales &loaded, u64 first_group, unsigned vector, float &scale,
                                            float &offset) {
    scale = SCALE_DTYPE::to_float(loaded.scales[0]);
    offset = biased_offset(scale, zero_value(loaded.zeros[0], first_group + group_of(vector * VECTOR_VALUES)));
}
#endif

#endif
