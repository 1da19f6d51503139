// One row of x[rows, columns], distributed over THREADS threads, on its way to quantized values: load, prologue, amax,
// division by the scale, store.
//
// The prologue is layer normalization (LAYER_NORM), RMS normalization (RMS_NORM), an activation (PROLOGUE), or none.
// Results of the prologue are rounded to the element dtype, so that separate kernels give equal quantized values.
// Each thread holds VECTORS_PER_THREAD vectors in registers, first as loaded, then with the prologue applied. With
// VECTORS_PER_THREAD 0 every pass reads the row again and recomputes the prologue.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH               elements per vector access (element.cuh)
//   THREADS             threads per row: whole warps (row_statistics.cuh)
//   ROWS                rows per block (row_statistics.cuh)
//   EPSILON             float that is added to the variance (row_statistics.cuh)
//   VECTORS_PER_THREAD  vectors of a row per thread in registers; 0 if the row is too long
//   QUANT_INT8 | QUANT_E4M3  quantized dtype (dynamic_quant.cuh)
// Optional:
//   LAYER_NORM          prologue: layer normalization without weights
//   RMS_NORM            prologue: RMS normalization without weights
//   PROLOGUE            prologue: activation function (activations.cuh)
//   MONOTONIC_FROM      float; from here on PROLOGUE increases by more than its error between adjacent 16-bit floats,
//                       and no smaller x has a result of larger magnitude
//   FULL_TILES          true if every thread of every block owns all its vectors; default false
//   QUANT_IN_F32, QUANT_FULL_RANGE  see dynamic_quant.cuh
//   STORE_ELEMENTS      quantized values are stored in the element dtype (16 bits), which represents them exactly
//   STREAMING_LOADS     x is read once: evict-first loads
#pragma once

#ifndef VECTORS_PER_THREAD
#error "VECTORS_PER_THREAD: vectors of a row per thread in registers"
#endif

#ifdef PROLOGUE
#include "activations.cuh"
#endif
#include "element.cuh"
#include "dynamic_quant.cuh"
#include "row_statistics.cuh"

#if WIDTH > 1
struct __align__(WIDTH) quantized_vec {
    unsigned words[WIDTH / 4];
};
#endif

#ifdef STORE_ELEMENTS
constexpr int VALUE_BYTES = sizeof(element);

// Quantized value in the element dtype, from its byte.
__device__ __forceinline__ element to_element(unsigned quantized) {
#ifdef QUANT_INT8
    return narrow((float)(signed char)quantized);
#else
    float value;
    asm("{.reg .b16 byte, low, high;\n.reg .b32 pair;\n"
        "cvt.u16.u32 byte, %1;\n"
        "cvt.rn.f16x2.e4m3x2 pair, byte;\n"
        "mov.b32 {low, high}, pair;\n"
        "cvt.f32.f16 %0, low;}"
        : "=f"(value)
        : "r"(quantized & 0xff));
    return narrow(value);
#endif
}
#else
constexpr int VALUE_BYTES = 1;
#endif

template <class Division>
__device__ __forceinline__ void store(unsigned char *out, const float (&x)[WIDTH], const Division &divide) {
#if defined(STORE_ELEMENTS) && WIDTH > 1
    vec values;
#pragma unroll
    for (int i = 0; i < WIDTH; i += 4) {
        const unsigned quantized = quantize4(divide(x[i]), divide(x[i + 1]), divide(x[i + 2]), divide(x[i + 3]));
#pragma unroll
        for (int j = 0; j < 4; j++) values.val[i + j] = to_element(quantized >> 8 * j);
    }
    *reinterpret_cast<vec *>(out) = values;
#elif defined(STORE_ELEMENTS)
    *reinterpret_cast<element *>(out) = to_element(quantize4(divide(x[0]), 0.0f, 0.0f, 0.0f));
#elif WIDTH > 1
    quantized_vec quantized;
#pragma unroll
    for (int w = 0; w < WIDTH / 4; w++) {
        quantized.words[w] =
            quantize4(divide(x[4 * w]), divide(x[4 * w + 1]), divide(x[4 * w + 2]), divide(x[4 * w + 3]));
    }
    *reinterpret_cast<quantized_vec *>(out) = quantized;
#else
    *out = quantize4(divide(x[0]), 0.0f, 0.0f, 0.0f);
#endif
}

#ifndef FULL_TILES
#define FULL_TILES false
#endif

constexpr int CACHED_VECS = VECTORS_PER_THREAD > 0 ? VECTORS_PER_THREAD : 1;

#if defined(LAYER_NORM) || defined(RMS_NORM)
#define HAS_STATISTICS
#endif
#if defined(HAS_STATISTICS) || defined(PROLOGUE)
#define HAS_PROLOGUE
#endif

// amax of vectors, as bits.
struct amax_accumulator {
    unsigned magnitude = 0;

    __device__ __forceinline__ void add(const packed_vec &loaded) {
#if WIDTH > 1 && !defined(ELEMENT_F32)
#pragma unroll
        for (int pair = 0; pair < WIDTH / 2; pair++) magnitude = max_magnitude(magnitude, loaded.pairs[pair]);
#else
#pragma unroll
        for (int i = 0; i < WIDTH; i++) magnitude = max(magnitude, __float_as_uint(widen(loaded.val[i])) & 0x7fffffffu);
#endif
    }

    __device__ __forceinline__ unsigned bits() const {
#if WIDTH > 1 && !defined(ELEMENT_F32)
        return __float_as_uint(widen((element)max_of_pair(magnitude)));
#else
        return magnitude;
#endif
    }
};

#if defined(ELEMENT_F16)
constexpr unsigned NEG_INFINITY_BITS = 0xfc00u;
#else
constexpr unsigned NEG_INFINITY_BITS = 0xff80u;
#endif

struct input_row {
    const packed_vec *x_row;
    unsigned vecs;
    packed_vec cached[CACHED_VECS];
    row_stats stats;

    // Loads a row and applies the prologue. Threads beyond the last row have no vectors, but take part in the barriers.
    __device__ __forceinline__ void load_and_transform(const element *x, u64 row, u64 rows, u64 columns) {
        load(x, row, rows, columns);
        transform((float)columns);
    }

    // Applies the prologue to a loaded row.
    __device__ __forceinline__ void transform(float count) {
#if defined(LAYER_NORM)
        compute_layer_norm_stats(count);
#elif defined(RMS_NORM)
        compute_rms_stats(count);
#endif
        transform_cached();
    }

    // Loads a row without applying the prologue.
    __device__ __forceinline__ void load(const element *x, u64 row, u64 rows, u64 columns) {
        vecs = row < rows ? columns / WIDTH : 0;
        x_row = reinterpret_cast<const packed_vec *>(x + row * columns);
#if VECTORS_PER_THREAD > 0
#pragma unroll
        for (int p = 0; p < VECTORS_PER_THREAD; p++) {
            const unsigned v = p * THREADS + threadIdx.x;
            if (owns(v)) cached[p] = load_vec(x_row + v);
        }
#endif
    }

    // Applies the prologue to the vectors in registers; requires statistics.
    __device__ __forceinline__ void transform_cached() {
#if VECTORS_PER_THREAD > 0 && defined(HAS_PROLOGUE)
#pragma unroll
        for (int p = 0; p < VECTORS_PER_THREAD; p++) cached[p] = apply_prologue(cached[p]);
#endif
    }

    // amax of this thread's elements, as bits. Bits of magnitudes are ordered like their values, with NaN above
    // infinity.
    __device__ __forceinline__ unsigned amax() const {
        amax_accumulator magnitude;
        for_each_vec([&](unsigned, const packed_vec &loaded) { magnitude.add(loaded); });
        return magnitude.bits();
    }

    // amax of this thread's elements behind the prologue, for a row that is only loaded. Avoids the prologue for most
    // elements: RMS normalization has one factor per row, and a monotonic activation maps the maximum to the maximum.
    __device__ __forceinline__ unsigned transformed_amax(float count) {
#if defined(RMS_NORM)
        compute_rms_stats(count);
        amax_accumulator magnitude;
        for_each_loaded([&](unsigned, const packed_vec &loaded) { magnitude.add(loaded); });
        return __float_as_uint(round_to_element(__uint_as_float(magnitude.bits()) * stats.rstd));
#else
#if defined(MONOTONIC_FROM) && WIDTH > 1 && !defined(ELEMENT_F32)
        // As signed integers all positive floats exceed all negative ones. As unsigned integers negative floats exceed
        // positive ones, and are ordered by magnitude.
        unsigned signed_max = 0x80008000u, unsigned_max = 0;
        for_each_loaded([&](unsigned, const packed_vec &loaded) {
#pragma unroll
            for (int pair = 0; pair < WIDTH / 2; pair++) {
                signed_max = __vmaxs2(signed_max, loaded.pairs[pair]);
                unsigned_max = __vmaxu2(unsigned_max, loaded.pairs[pair]);
            }
        });
        const float max_value = widen((element)max((short)signed_max, (short)(signed_max >> 16)));
        if (max_value >= MONOTONIC_FROM && max_of_pair(unsigned_max) < NEG_INFINITY_BITS) {
            return __float_as_uint(round_to_element(PROLOGUE(max_value)));
        }
#endif
        transform(count);
        return amax();
#endif
    }

    // Quantizes and stores the row.
    __device__ __forceinline__ void store(unsigned char *quantized, const quantizer &quantize) const {
        quantize.with_division(store_visitor{*this, quantized});
    }

  private:
    struct store_visitor {
        const input_row &row;
        unsigned char *const quantized;

        template <class Division> __device__ __forceinline__ void operator()(const Division &divide) const {
            row.for_each_vec([&](unsigned v, const packed_vec &loaded) {
                float values[WIDTH];
                widen_all(loaded, values);
                ::store(quantized + (u64)v * (WIDTH * VALUE_BYTES), values, divide);
            });
        }
    };

    __device__ __forceinline__ static packed_vec load_vec(const packed_vec *source) {
#if WIDTH > 1 && defined(STREAMING_LOADS)
        // Evict-first: the next kernel reads the quantized values, not x.
        const uint4 words = __ldcs(reinterpret_cast<const uint4 *>(source));
        return *reinterpret_cast<const packed_vec *>(&words);
#else
        return *source;
#endif
    }

    __device__ __forceinline__ bool owns(unsigned v) const { return FULL_TILES || v < vecs; }

    // Calls `visit` with the index and the content of each vector of this thread, as loaded or as cached.
    template <class Visitor> __device__ __forceinline__ void for_each_loaded(Visitor visit) const {
#if VECTORS_PER_THREAD > 0
#pragma unroll
        for (int p = 0; p < VECTORS_PER_THREAD; p++) {
            const unsigned v = p * THREADS + threadIdx.x;
            if (owns(v)) visit(v, cached[p]);
        }
#else
        for (unsigned v = threadIdx.x; v < vecs; v += THREADS) visit(v, x_row[v]);
#endif
    }

    // Calls `visit` with the index and the content of each vector of this thread, with the prologue applied.
    template <class Visitor> __device__ __forceinline__ void for_each_vec(Visitor visit) const {
#if VECTORS_PER_THREAD > 0 || !defined(HAS_PROLOGUE)
        for_each_loaded(visit);
#else
        for_each_loaded([&](unsigned v, const packed_vec &loaded) { visit(v, apply_prologue(loaded)); });
#endif
    }

    // Calls `visit` with each element of this thread as a float, before the prologue.
    template <class Visitor> __device__ __forceinline__ void for_each_element(Visitor visit) const {
        for_each_loaded([&](unsigned, const packed_vec &loaded) {
            float values[WIDTH];
            widen_all(loaded, values);
#pragma unroll
            for (int i = 0; i < WIDTH; i++) visit(values[i]);
        });
    }

#ifdef HAS_PROLOGUE
    __device__ __forceinline__ packed_vec apply_prologue(const packed_vec &loaded) const {
        float values[WIDTH];
        widen_all(loaded, values);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
#if defined(LAYER_NORM)
            values[i] = (values[i] - stats.mean) * stats.rstd;
#elif defined(RMS_NORM)
            values[i] *= stats.rstd;
#else
            values[i] = PROLOGUE(values[i]);
#endif
        }
        return narrow_all(values);
    }
#endif

    __device__ __forceinline__ void compute_layer_norm_stats(float count) {
        __shared__ float2 shared_sums[ROWS][WARPS];
        __shared__ float2 shared_deviations[ROWS][WARPS];
        float2 sum = make_float2(0.0f, 0.0f);
        for_each_element([&](float value) { sum.x += value; });
        const float approx_mean = row_sum(sum, shared_sums).x / count;
        sum = make_float2(0.0f, 0.0f);
        for_each_element([&](float value) {
            const float deviation = value - approx_mean;
            sum.x += deviation;
            sum.y += deviation * deviation;
        });
        stats = finish_stats(approx_mean, row_sum(sum, shared_deviations), count);
    }

    __device__ __forceinline__ void compute_rms_stats(float count) {
        __shared__ float2 shared_sums[ROWS][WARPS];
        float2 sum = make_float2(0.0f, 0.0f);
        for_each_element([&](float value) { sum.x = fmaf(value, value, sum.x); });
        stats = {0.0f, 1.0f / sqrtf(row_sum(sum, shared_sums).x / count + EPSILON)};
    }
};
