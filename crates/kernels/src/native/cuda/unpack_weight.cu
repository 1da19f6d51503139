// The numbers of packed weights in the element type, w[n, K].
//
// Data flow: a block takes THREADS * PIECES accesses of a row, a thread PIECES of them, THREADS apart: the codes of WIDTH
// numbers, which it writes in one access. Traffic: the codes once and the numbers once. Roofline: their bytes over the
// memory's rate.
#include "element.cuh"
#include "packed.cuh"

constexpr unsigned ACCESSES = K / WIDTH;
constexpr unsigned ROW_BLOCKS = (ACCESSES + THREADS * PIECES - 1) / (THREADS * PIECES);
// Bits of the codes of an access, and the most words that they lie in, beginning anywhere in the first.
constexpr unsigned ACCESS_BITS = WIDTH * BITS;
constexpr bool IN_WORDS = ACCESS_BITS % 32 == 0;
constexpr unsigned WORDS = (32 - common(ACCESS_BITS, 32) + ACCESS_BITS + 31) / 32;
// Words that are loaded at once.
constexpr unsigned TOGETHER = IN_WORDS && WORDS % 2 == 0 ? 2 : 1;
constexpr unsigned SHARE = sharing(WIDTH);

struct __align__(4 * TOGETHER) access {
    unsigned words[TOGETHER];
};

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const unsigned *__restrict__ codes, const stored_scale *__restrict__ scales,
#if defined(ZEROS)
           const stored_zero *__restrict__ zeros,
#endif
           element *__restrict__ w, u64 n, u64 k) {
    const u64 row = blockIdx.x / ROW_BLOCKS;
    const unsigned first = blockIdx.x % ROW_BLOCKS * (THREADS * PIECES) + threadIdx.x;
    const unsigned *from = codes + row * ROW_WORDS;

    unsigned loaded[PIECES][WORDS];
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const unsigned at = first + p * THREADS;
        if (at >= ACCESSES) break;
        const unsigned word = (unsigned)((u64)at * ACCESS_BITS / 32);
#pragma unroll
        for (unsigned i = 0; i < WORDS; i += TOGETHER) {
            // Beyond the row are codes of nobody.
            const unsigned read = IN_WORDS || word + i < ROW_WORDS ? word + i : ROW_WORDS - 1;
            const access some = *reinterpret_cast<const access *>(from + read);
#pragma unroll
            for (unsigned j = 0; j < TOGETHER; j++) loaded[p][i + j] = some.words[j];
        }
    }
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const unsigned at = first + p * THREADS;
        if (at >= ACCESSES) break;
        // What lies before the access in its first word goes.
        const unsigned before = (unsigned)((u64)at * ACCESS_BITS % 32);
        unsigned words[WORDS];
#pragma unroll
        for (unsigned i = 0; i < WORDS; i++) {
            words[i] = IN_WORDS ? loaded[p][i] : __funnelshift_r(loaded[p][i], i + 1 < WORDS ? loaded[p][i + 1 < WORDS ? i + 1 : i] : 0u, before);
        }
        piece result;
#pragma unroll
        for (unsigned s = 0; s < WIDTH; s += SHARE) {
            const u64 group = row * GROUPS + group_of(at * WIDTH + s);
            const float scale = SCALE::number(__ldg(scales + group));
#if defined(ZEROS)
            const float zero = zero_of(load_zero(zeros, group), group);
#else
            const float zero = 0.0f;
#endif
#pragma unroll
            for (unsigned i = s; i < s + SHARE; i++) {
                result.parts[i] = narrow(scaled(decode(field(words, i * BITS)), scale, zero));
            }
        }
        *reinterpret_cast<piece *>(w + row * K + at * WIDTH) = result;
    }
}
