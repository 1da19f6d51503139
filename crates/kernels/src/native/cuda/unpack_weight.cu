// The numbers of packed weights in the element type, w[n, K].
//
// Data flow: a block takes THREADS * PIECES accesses of a row, a thread PIECES of them, THREADS apart: the codes of WIDTH
// numbers, which it writes in one access. Traffic: the codes once and the numbers once. Roofline: their bytes over the
// memory's rate.
#include "element.cuh"
#include "packed.cuh"

constexpr unsigned ACCESSES = K / WIDTH;
constexpr unsigned ROW_BLOCKS = (ACCESSES + THREADS * PIECES - 1) / (THREADS * PIECES);
// Words that the codes of an access lie in: it begins with the first, or fills a part of it.
constexpr unsigned WORDS = WIDTH > WORD_CODES ? WIDTH / WORD_CODES : 1;

struct __align__(4 * WORDS) access {
    unsigned words[WORDS];
};

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const unsigned *__restrict__ codes, const scale_type *__restrict__ scales,
#if defined(CODES_INT4)
           const scale_type *__restrict__ zeros,
#endif
           element *__restrict__ w, u64 n, u64 k) {
    const u64 row = blockIdx.x / ROW_BLOCKS;
    const unsigned first = blockIdx.x % ROW_BLOCKS * (THREADS * PIECES) + threadIdx.x;
    const unsigned *from = codes + row * ROW_WORDS;

    access loaded[PIECES];
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const unsigned at = first + p * THREADS;
        if (at < ACCESSES) loaded[p] = *reinterpret_cast<const access *>(from + at * WIDTH / WORD_CODES);
    }
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const unsigned at = first + p * THREADS;
        if (at >= ACCESSES) break;
        float numbers[WORDS][WORD_CODES];
        // What lies before the access in its first word goes.
        loaded[p].words[0] >>= at * WIDTH % WORD_CODES * BITS;
#pragma unroll
        for (int i = 0; i < WORDS; i++) decode(loaded[p].words[i], numbers[i]);
#if defined(CODES_INT4)
        const u64 group = row * GROUPS + at * WIDTH / GROUP;
        const float scale = widen_scale(__ldg(scales + group)), zero = widen_scale(__ldg(zeros + group));
#else
        const float scale = widen_scale(__ldg(scales + row)), zero = 0.0f;
#endif
        piece result;
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            result.parts[i] = narrow(fmaf(numbers[i / WORD_CODES][i % WORD_CODES], scale, zero));
        }
        *reinterpret_cast<piece *>(w + row * K + at * WIDTH) = result;
    }
}
