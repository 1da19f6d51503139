// w[n, K] = dequantized packed weight (packed_weight.cuh) in dtype `element`, row-major.
//
// Algorithm: element-wise. A block covers THREADS * VECTORS_PER_THREAD vectors of one row. Each thread dequantizes
// vectors of WIDTH elements, THREADS vectors apart, and stores each in one access. All loads are issued before the
// first use.
//
//     words from bit 0 up:   | i: ....vvvv | i + 1: vvvvvvvv | i + 2: vv...... |   funnel shifts align it to bit 0
//
// Traffic: the packed values and w once. Roofline: these bytes over memory bandwidth.
//
// Parameters:
//   KERNEL                   name of the kernel
//   ELEMENT_*                dtype `element`: ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   WIDTH                    elements of w per store: those of 16 bytes, or 1 (checked in element.cuh)
//   THREADS                  threads per block
//   VECTORS_PER_THREAD       vectors per thread
//   K                        reduction size: elements of a weight row
//   BITS                     bits of a quantized value, 1 to 8
//   SIGNED_VALUES            defined if the values are signed integers
//   UNSIGNED_VALUES          defined if the values are unsigned integers
//   MANTISSA_BITS            defined if the values are small floats: bits of the mantissa
//   EXPONENT_BIAS            exponent bias of small floats
//   GROUP_SIZE               optional: elements of a row that share a scale; by default one scale per row
//   SCALE_DTYPE              stored_f32, stored_f16, stored_bf16, stored_e8m0 or stored_e4m3
//   ZERO_POINT_BEFORE_SCALE  optional: zero points in units of the quantized values
//   ZERO_POINT_AFTER_SCALE   optional: zero points in units of the dequantized values
//   ZERO_POINT_DTYPE         dtype of float zero points, as SCALE_DTYPE
//   ZERO_POINT_BITS          bits of packed integer zero points

#ifndef KERNEL
#error "KERNEL: name of the kernel"
#endif
#ifndef K
#error "K: reduction size: elements of a weight row"
#endif
#ifndef THREADS
#error "THREADS: threads per block"
#endif
#ifndef VECTORS_PER_THREAD
#error "VECTORS_PER_THREAD: vectors per thread"
#endif

#include "element.cuh"
#include "packed_weight.cuh"

constexpr unsigned ROW_VECTORS = K / WIDTH;
constexpr unsigned ROW_BLOCKS = (ROW_VECTORS + THREADS * VECTORS_PER_THREAD - 1) / (THREADS * VECTORS_PER_THREAD);
// Bits of a vector, and the maximum number of words that it touches from any first bit.
constexpr unsigned VECTOR_BITS = WIDTH * BITS;
constexpr bool WORD_ALIGNED = VECTOR_BITS % 32 == 0;
constexpr unsigned VECTOR_WORDS = (32 - gcd(VECTOR_BITS, 32) + VECTOR_BITS + 31) / 32;
// Words per load.
constexpr unsigned LOAD_WORDS = WORD_ALIGNED && VECTOR_WORDS % 2 == 0 ? 2 : 1;
constexpr unsigned SCALE_SPAN = values_per_scale(WIDTH);

struct __align__(4 * LOAD_WORDS) wide_load {
    unsigned words[LOAD_WORDS];
};

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const unsigned *__restrict__ quantized, const stored_scale *__restrict__ scales,
#if defined(HAS_ZERO_POINTS)
           const stored_zero *__restrict__ zeros,
#endif
           element *__restrict__ w, u64 n, u64 k) {
    const u64 row = blockIdx.x / ROW_BLOCKS;
    const unsigned first = blockIdx.x % ROW_BLOCKS * (THREADS * VECTORS_PER_THREAD) + threadIdx.x;
    const unsigned *source = quantized + row * ROW_WORDS;

    unsigned loaded[VECTORS_PER_THREAD][VECTOR_WORDS];
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        const unsigned vector = first + p * THREADS;
        if (vector >= ROW_VECTORS) break;
        const unsigned word = (unsigned)((u64)vector * VECTOR_BITS / 32);
#pragma unroll
        for (unsigned i = 0; i < VECTOR_WORDS; i += LOAD_WORDS) {
            // Words beyond the row are not used; the load is clamped.
            const unsigned clamped = WORD_ALIGNED || word + i < ROW_WORDS ? word + i : ROW_WORDS - 1;
            const wide_load loaded_words = *reinterpret_cast<const wide_load *>(source + clamped);
#pragma unroll
            for (unsigned j = 0; j < LOAD_WORDS; j++) loaded[p][i + j] = loaded_words.words[j];
        }
    }
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        const unsigned vector = first + p * THREADS;
        if (vector >= ROW_VECTORS) break;
        // Shifts out the bits that precede the vector in its first word.
        const unsigned skipped_bits = (unsigned)((u64)vector * VECTOR_BITS % 32);
        unsigned words[VECTOR_WORDS];
#pragma unroll
        for (unsigned i = 0; i < VECTOR_WORDS; i++) {
            words[i] = WORD_ALIGNED
                           ? loaded[p][i]
                           : __funnelshift_r(loaded[p][i],
                                             i + 1 < VECTOR_WORDS ? loaded[p][i + 1 < VECTOR_WORDS ? i + 1 : i] : 0u,
                                             skipped_bits);
        }
        vec result;
#pragma unroll
        for (unsigned s = 0; s < WIDTH; s += SCALE_SPAN) {
            const u64 group = row * GROUPS + group_of(vector * WIDTH + s);
            const float scale = SCALE_DTYPE::to_float(__ldg(scales + group));
#if defined(HAS_ZERO_POINTS)
            const float zero = zero_value(load_zero(zeros, group), group);
#else
            const float zero = 0.0f;
#endif
#pragma unroll
            for (unsigned i = s; i < s + SCALE_SPAN; i++) {
                result.val[i] = narrow(apply_scale(decode(extract(words, i * BITS)), scale, zero));
            }
        }
        *reinterpret_cast<vec *>(w + row * K + vector * WIDTH) = result;
    }
}
