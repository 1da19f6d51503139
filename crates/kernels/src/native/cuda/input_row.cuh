// One row of x[rows, columns] on its way into codes, held by THREADS threads (whole warps), ROWS such rows in a block.
//
// The numbers of the row are rounded to the element type, and are those that a layer normalization gives with LAYER_NORM defined,
// a division by the root mean square with RMS_NORM, a function of each with PROLOGUE. Each thread keeps PIECES pieces of WIDTH
// elements in registers, as they were read and then as those numbers; with PIECES 0, for rows too long for that, every look at the
// row reads it and makes them again. WHOLE says that no thread of any block is without a piece.
#pragma once
#ifdef PROLOGUE
#include "activations.cuh"
#endif
#include "element.cuh"
#include "input_codes.cuh"
#include "row_statistics.cuh"

#if WIDTH > 1
struct __align__(WIDTH) stored_codes {
    unsigned words[WIDTH / 4];
};
#endif

template <class Quotient>
__device__ __forceinline__ void store(unsigned char *to, const float (&x)[WIDTH], const Quotient &quotient) {
#if WIDTH > 1
    stored_codes codes;
#pragma unroll
    for (int w = 0; w < WIDTH / 4; w++) {
        codes.words[w] = four_codes(quotient(x[4 * w]), quotient(x[4 * w + 1]), quotient(x[4 * w + 2]), quotient(x[4 * w + 3]));
    }
    *reinterpret_cast<stored_codes *>(to) = codes;
#else
    *to = four_codes(quotient(x[0]), 0.0f, 0.0f, 0.0f);
#endif
}

#ifndef WHOLE
#define WHOLE false
#endif

constexpr int KEPT = PIECES > 0 ? PIECES : 1;

#if defined(LAYER_NORM) || defined(RMS_NORM)
#define STATISTICS
#endif
#if defined(STATISTICS) || defined(PROLOGUE)
#define MADE
#endif

// The largest magnitude of pieces.
struct magnitude {
    unsigned most = 0;

    __device__ __forceinline__ void look(const packed &held) {
#if WIDTH > 1 && !defined(ELEMENT_F32)
#pragma unroll
        for (int pair = 0; pair < WIDTH / 2; pair++) most = larger(most, held.pairs[pair]);
#else
#pragma unroll
        for (int i = 0; i < WIDTH; i++) most = max(most, __float_as_uint(widen(held.parts[i])) & 0x7fffffffu);
#endif
    }

    __device__ __forceinline__ unsigned bits() const {
#if WIDTH > 1 && !defined(ELEMENT_F32)
        return __float_as_uint(widen((element)larger_half(most)));
#else
        return most;
#endif
    }
};

#if defined(ELEMENT_F16)
constexpr unsigned MINUS_INFINITY = 0xfc00u;
#else
constexpr unsigned MINUS_INFINITY = 0xff80u;
#endif

struct input_row {
    const packed *from;
    unsigned pieces;
    packed kept[KEPT];
    statistics known;

    // Threads beyond the last row own nothing, but stay for the barriers.
    __device__ __forceinline__ void load(const element *x, u64 row, u64 rows, u64 columns) {
        take(x, row, rows, columns);
        prepare((float)columns);
    }

    // What was taken becomes numbers.
    __device__ __forceinline__ void prepare(float count) {
#if defined(LAYER_NORM)
        normalize(count);
#elif defined(RMS_NORM)
        divide_by_root_mean_square(count);
#endif
        make_numbers();
    }

    // As it is, without its statistics.
    __device__ __forceinline__ void take(const element *x, u64 row, u64 rows, u64 columns) {
        pieces = row < rows ? columns / WIDTH : 0;
        from = reinterpret_cast<const packed *>(x + row * columns);
#if PIECES > 0
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            const unsigned at = p * THREADS + threadIdx.x;
            if (within(at)) kept[p] = read(from + at);
        }
#endif
    }

    // Of a row that was taken and whose statistics are known.
    __device__ __forceinline__ void make_numbers() {
#if PIECES > 0 && defined(MADE)
#pragma unroll
        for (int p = 0; p < PIECES; p++) kept[p] = made(kept[p]);
#endif
    }

    // The largest magnitude that this thread holds, as its bits: without signs they are ordered like the numbers, NaN above
    // infinity above all others.
    __device__ __forceinline__ unsigned largest() const {
        magnitude most;
        each_number([&](unsigned, const packed &held) { most.look(held); });
        return most.bits();
    }

    // The same of the numbers that what was taken will become, most of which need not be made for it: a root mean square divides all
    // alike, and where a function rises the largest becomes the largest.
    __device__ __forceinline__ unsigned largest_to_be(float count) {
#if defined(RMS_NORM)
        divide_by_root_mean_square(count);
        magnitude most;
        each([&](unsigned, const packed &held) { most.look(held); });
        return __float_as_uint(rounded(__uint_as_float(most.bits()) * known.scale));
#else
#if defined(RISES_FROM) && WIDTH > 1 && !defined(ELEMENT_F32)
        // As integers with a sign all numbers above zero are above all below it; without, these are above, the largest magnitude first.
        unsigned tops = 0x80008000u, bottoms = 0;
        each([&](unsigned, const packed &held) {
#pragma unroll
            for (int pair = 0; pair < WIDTH / 2; pair++) {
                tops = __vmaxs2(tops, held.pairs[pair]);
                bottoms = __vmaxu2(bottoms, held.pairs[pair]);
            }
        });
        const float top = widen((element)max((short)tops, (short)(tops >> 16)));
        if (top >= RISES_FROM && larger_half(bottoms) < MINUS_INFINITY) {
            return __float_as_uint(rounded(PROLOGUE(top)));
        }
#endif
        prepare(count);
        return largest();
#endif
    }

    // Its codes.
    __device__ __forceinline__ void store(unsigned char *codes, const encoder &encode) const {
        encode.with_quotient(stored{*this, codes});
    }

private:
    struct stored {
        const input_row &row;
        unsigned char *const codes;

        template <class Quotient> __device__ __forceinline__ void operator()(const Quotient &quotient) const {
            row.each_number([&](unsigned at, const packed &held) {
                float numbers[WIDTH];
                widen_all(held, numbers);
                ::store(codes + (u64)at * WIDTH, numbers, quotient);
            });
        }
    };

    __device__ __forceinline__ static packed read(const packed *at) {
#if WIDTH > 1 && defined(READ_ONCE)
        // The cache need not keep it: codes are what is read next.
        const uint4 words = __ldcs(reinterpret_cast<const uint4 *>(at));
        return *reinterpret_cast<const packed *>(&words);
#else
        return *at;
#endif
    }

    __device__ __forceinline__ bool within(unsigned at) const { return WHOLE || at < pieces; }

    // Calls `look` with each piece of this thread and its place.
    template <class Look> __device__ __forceinline__ void each(Look look) const {
#if PIECES > 0
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            const unsigned at = p * THREADS + threadIdx.x;
            if (within(at)) look(at, kept[p]);
        }
#else
        for (unsigned at = threadIdx.x; at < pieces; at += THREADS) look(at, from[at]);
#endif
    }

    // The same with numbers, once they were made.
    template <class Look> __device__ __forceinline__ void each_number(Look look) const {
#if PIECES > 0 || !defined(MADE)
        each(look);
#else
        each([&](unsigned at, const packed &held) { look(at, made(held)); });
#endif
    }

    // Calls `look` with each element of this thread as a float, before numbers were made of them.
    template <class Look> __device__ __forceinline__ void each_element(Look look) const {
        each([&](unsigned, const packed &held) {
            float values[WIDTH];
            widen_all(held, values);
#pragma unroll
            for (int i = 0; i < WIDTH; i++) look(values[i]);
        });
    }

#ifdef MADE
    __device__ __forceinline__ packed made(const packed &held) const {
        float values[WIDTH];
        widen_all(held, values);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
#if defined(LAYER_NORM)
            values[i] = (values[i] - known.mean) * known.scale;
#elif defined(RMS_NORM)
            values[i] *= known.scale;
#else
            values[i] = PROLOGUE(values[i]);
#endif
        }
        return narrow_all(values);
    }
#endif

    __device__ __forceinline__ void normalize(float count) {
        __shared__ float2 sums[ROWS][WARPS];
        __shared__ float2 differences[ROWS][WARPS];
        float2 sum = make_float2(0.0f, 0.0f);
        each_element([&](float value) { sum.x += value; });
        const float rough_mean = row_sum(sum, sums).x / count;
        sum = make_float2(0.0f, 0.0f);
        each_element([&](float value) {
            const float difference = value - rough_mean;
            sum.x += difference;
            sum.y += difference * difference;
        });
        known = from_sums(rough_mean, row_sum(sum, differences), count);
    }

    __device__ __forceinline__ void divide_by_root_mean_square(float count) {
        __shared__ float2 sums[ROWS][WARPS];
        float2 sum = make_float2(0.0f, 0.0f);
        each_element([&](float value) { sum.x = fmaf(value, value, sum.x); });
        known = {0.0f, 1.0f / sqrtf(row_sum(sum, sums).x / count + EPSILON)};
    }
};
