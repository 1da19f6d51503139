// y[m, n] = x[m, K] * w[n, K]^T [* outer scales] [+ added[m, n]] for few rows of x and weights in codes, which are never written
// unpacked.
//
// Data flow: a block makes 16 * TALL * TILES columns of y for up to COLUMNS rows of x. Its TILES groups of WARPS warps take 16 *
// TALL rows of w each, a warp takes every WARPS * SPLITS-th flight of FLIGHT neighboring chunks of 4 pieces of these rows. A
// piece is PIECE_WORDS words, 32 codes or 16 bytes. In a chunk the thread 4 g + t reads a piece of every eighth row from g on,
// with all chunks of the flight on their way at once, and the piece's numbers of x from a cache. Codes become numbers in
// registers. With TENSOR they are pairs of x's own type and tensor cores multiply them: a thread gives the k that it has to
// whatever place of the instruction is its own, since it has the same of x. Otherwise they are multiplied in float. Where all
// 4-bit codes of a chunk share a scale, tensor cores multiply the codes themselves, and sum x up beside them: scale and zero are
// applied to the sums of the chunk, and no number is rounded to x's type. Sums are float throughout; those of warps meet in
// shared memory, those of the SPLITS blocks that share columns in device memory, where the last block to arrive adds them up,
// always in the same order.
//
// Traffic: w once for each COLUMNS rows of x; x from L2 once for each block, n / (16 TILES) times; partial sums, if SPLITS is
// above one, 8 m n SPLITS bytes. Roofline: the bytes of w over the memory's rate as long as the unpacking keeps up: with TENSOR
// 2.4 instructions for each code of 8 bits and 3 for one of 4, 2.3 where scales are for sums (1.9 with TALL 2), and 5.6 where
// codes straddle words (counted in the loop for Hopper), where 4-bit codes at 4.8 TB/s on 132 multiprocessors of 1.8 GHz leave
// room for 3.2, half of them on integers, and 2-bit codes for 1.6; without it 2 + min(m, COLUMNS) or so.
#include "element.cuh"
#include "output.cuh"
#include "packed.cuh"
#include "shares.cuh"
#if TENSOR
#include "packed_pairs.cuh"
#endif

// Whether a scale is for sums of codes: whether it is that of a whole chunk.
#if TENSOR && defined(GROUP) && BITS == 4 && !defined(MANTISSA)
#if GROUP % 128 == 0
#define SCALES_AFTER
#endif
#endif

constexpr int HALVES = 2 * TALL;
constexpr int ROWS = 8 * HALVES * TILES;
constexpr int THREADS = 32 * WARPS * TILES;
constexpr int SUMS = ROWS * COLUMNS;
constexpr unsigned CODES = PIECE_WORDS * 32 / BITS;
constexpr unsigned PIECES = (K + CODES - 1) / CODES;
constexpr unsigned CHUNKS = (PIECES + 3) / 4;
constexpr unsigned STRIDE = WARPS * SPLITS;
constexpr int X_WORDS = CODES * sizeof(element) / 4;
// From a chunk to the next: words of codes, and numbers of x.
constexpr int STEP = 4 * PIECE_WORDS, X_STEP = 4 * CODES;
// Numbers of a piece that surely share a scale, and so many scales for each piece.
constexpr unsigned SHARE = sharing(CODES);
constexpr unsigned SCALES = CODES / SHARE;
// Whether no piece that a thread comes to lies beyond the end, and whether all of each piece is before it.
constexpr bool WHOLE = PIECES % (4 * FLIGHT * STRIDE) == 0;
constexpr bool FILLED = WHOLE && K % CODES == 0;
// Whether the scales of a flight lie side by side, one for each chunk, and are loaded at once.
#if defined(GROUP) && !defined(ZERO_BITS)
constexpr bool TOGETHER = WHOLE && GROUP == 4 * CODES && (FLIGHT == 2 || FLIGHT == 4) && GROUPS % FLIGHT == 0 &&
                          FLIGHT * sizeof(stored_scale) >= 4;
#else
constexpr bool TOGETHER = false;
#endif

typedef unsigned piece_words[PIECE_WORDS];

// A piece of codes, in accesses as wide as it allows. What fills no sectors is fetched through the nearest cache.
__device__ __forceinline__ void load_piece(const unsigned *from, piece_words &words) {
#pragma unroll
    for (int i = 0; i < PIECE_WORDS; i += PIECE_WORDS % 4 == 0 ? 4 : PIECE_WORDS % 2 == 0 ? 2 : 1) {
#if PIECE_WORDS % 4 == 0
        const uint4 some = __ldcg(reinterpret_cast<const uint4 *>(from + i));
        words[i] = some.x;
        words[i + 1] = some.y;
        words[i + 2] = some.z;
        words[i + 3] = some.w;
#elif PIECE_WORDS % 2 == 0
        const uint2 some = __ldg(reinterpret_cast<const uint2 *>(from + i));
        words[i] = some.x;
        words[i + 1] = some.y;
#else
        words[i] = __ldg(from + i);
#endif
    }
}

// The scales or zeros of a flight, which one access loads where they lie together.
template <int BYTES> struct access {
    typedef unsigned char word;
};
template <> struct access<4> { typedef unsigned word; };
template <> struct access<8> { typedef uint2 word; };
template <> struct access<16> { typedef uint4 word; };

template <class Stored> union of_flight {
    typename access<FLIGHT * sizeof(Stored)>::word word;
    Stored chunk[FLIGHT];

    __device__ __forceinline__ void load(const Stored *from) {
        word = __ldcg(reinterpret_cast<const decltype(word) *>(from));
    }
};

// The scales of a piece as they are loaded.
struct loaded_scales {
#if defined(GROUP)
    stored_scale scales[SCALES];
    loaded_zero zeros[SCALES];
#endif
};

__device__ __forceinline__ u64 within(u64 row, u64 rows) { return row < rows ? row : rows - 1; }

// A piece's numbers of x, the first of which is `at` in its row; zero beyond the row's end.
__device__ __forceinline__ void load_x(const element *from, unsigned at, unsigned (&words)[X_WORDS]) {
#if WIDTH > 1
#pragma unroll
    for (int i = 0; i < X_WORDS / 4; i++) {
        uint4 four = make_uint4(0, 0, 0, 0);
        if (FILLED || at + i * WIDTH < K) four = __ldg(reinterpret_cast<const uint4 *>(from) + i);
        words[4 * i] = four.x;
        words[4 * i + 1] = four.y;
        words[4 * i + 2] = four.z;
        words[4 * i + 3] = four.w;
    }
#else
#pragma unroll
    for (int i = 0; i < X_WORDS; i++) {
#if defined(ELEMENT_F32)
        words[i] = at + i < K ? __float_as_uint(from[i]) : 0;
#else
        const unsigned first = at + 2 * i < K ? from[2 * i] : 0;
        const unsigned second = at + 2 * i + 1 < K ? from[2 * i + 1] : 0;
        words[i] = first | second << 16;
#endif
    }
#endif
}

#if TENSOR

constexpr int PIECE_PAIRS = CODES / 2;
typedef unsigned numbers[PIECE_PAIRS];

// Whether pairs are of two codes of a word, so far from each other as half of its codes.
#if (PAIR_SCALES && 32 % BITS == 0) || defined(SCALES_AFTER)
#define FAR_PAIRS
#endif

// Neighbors of x in the order in which the numbers of a piece are.
__device__ __forceinline__ void reorder(const unsigned (&neighbors)[PIECE_PAIRS], unsigned (&pairs)[PIECE_PAIRS]) {
#pragma unroll
    for (int p = 0; p < PIECE_PAIRS; p++) {
#if defined(FAR_PAIRS)
        pairs[p] = far_pair(neighbors, p);
#else
        pairs[p] = neighbors[p];
#endif
    }
}

// The first code of a pair, counted in its piece.
__device__ __forceinline__ int code_of(int pair) {
#if defined(FAR_PAIRS)
    return pair / WORD_PAIRS * (2 * WORD_PAIRS) + pair % WORD_PAIRS;
#else
    return 2 * pair;
#endif
}

// A pair of numbers without scales, which may be zeros in steps away from them.
__device__ __forceinline__ unsigned codes_of(const piece_words &words, int pair) {
#if defined(FAR_PAIRS)
    return decode_pair(words[pair / WORD_PAIRS], pair % WORD_PAIRS * BITS);
#else
    const unsigned both = field(words, 2 * pair * BITS);
    return decode_pair((both & MASK) | both << (16 - BITS), 0);
#endif
}

// The product of two pairs of each of 16 rows, those of a thread's first and of its second, with the same of x.
__device__ __forceinline__ void multiply(float (&sums)[4], const numbers &first, const numbers &second,
                                         const unsigned (&pairs)[PIECE_PAIRS], int p) {
    multiply(sums, first[p], second[p], first[p + 1], second[p + 1], pairs[p], pairs[p + 1]);
}

#else
typedef float numbers[CODES];

__device__ __forceinline__ float number_of(const unsigned (&words)[X_WORDS], int i) {
#if defined(ELEMENT_F32)
    return __uint_as_float(words[i]);
#else
    return widen((element)(words[i / 2] >> 16 * (i % 2)));
#endif
}
#endif

// The numbers of a piece whose first group is counted from the weight's first. Scales of rows are left to the sums.
__device__ __forceinline__ void unpack(const piece_words &words, const loaded_scales &loaded, u64 first_group,
                                       unsigned piece, numbers &made) {
#if defined(GROUP) && !defined(SCALES_AFTER)
    float scale[SCALES], zero[SCALES];
#pragma unroll
    for (int s = 0; s < SCALES; s++) {
        scale[s] = SCALE::number(loaded.scales[s]);
        zero[s] = zero_of(loaded.zeros[s], first_group + group_of(piece * CODES + s * SHARE));
    }
#endif
#if defined(SCALES_AFTER)
#pragma unroll
    for (int p = 0; p < PIECE_PAIRS; p++) made[p] = above_sixteen(words[p / WORD_PAIRS], p % WORD_PAIRS * BITS);
#elif TENSOR && PAIR_SCALES
#if defined(GROUP)
    pair_scale of[SCALES];
#pragma unroll
    for (int s = 0; s < SCALES; s++) of[s] = for_pairs(scale[s], zero[s]);
#endif
#pragma unroll
    for (int p = 0; p < PIECE_PAIRS; p++) {
        made[p] = codes_of(words, p);
#if defined(GROUP)
        made[p] = scaled_pair(made[p], of[code_of(p) / SHARE]);
#endif
    }
#else
    float floats[CODES];
#pragma unroll
    for (int i = 0; i < CODES; i++) {
        floats[i] = decode(field(words, i * BITS));
#if defined(GROUP)
        floats[i] = scaled(floats[i], scale[i / SHARE], zero[i / SHARE]);
#endif
    }
#if TENSOR
#pragma unroll
    for (int p = 0; p < PIECE_PAIRS; p++) made[p] = narrow_two(floats[2 * p], floats[2 * p + 1]);
#else
#pragma unroll
    for (int i = 0; i < CODES; i++) made[i] = floats[i];
#endif
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS, AT_ONCE)
    KERNEL(const element *__restrict__ x, const unsigned *__restrict__ codes, const stored_scale *__restrict__ scales,
#if defined(ZEROS)
           const stored_zero *__restrict__ zeros,
#endif
#ifdef OUTER
           const float *__restrict__ outer_of_weight, const float *__restrict__ outer_of_input,
#endif
#ifdef ADDED
           const output *__restrict__ added,
#endif
           output *__restrict__ y,
#if SPLITS > 1
           float *__restrict__ parts, unsigned *__restrict__ arrived,
#endif
           u64 m, u64 n) {
    __shared__ float of_warps[WARPS][SUMS];

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int g = lane / 4, t = lane % 4;
    const unsigned split = blockIdx.x % SPLITS, block = blockIdx.x / SPLITS;
    const unsigned row_blocks = ((unsigned)n + ROWS - 1) / ROWS;
    const u64 first_row = (u64)(block % row_blocks) * ROWS;
    const u64 first_column = (u64)(block / row_blocks) * COLUMNS;

    // Beyond the last row of either the last one is read again, and what comes of it is not written. Where there is nothing beyond
    // the last row of w, rows lie at constant distances.
    const unsigned *from[HALVES];
    u64 first_group[HALVES];
#pragma unroll
    for (int h = 0; h < HALVES; h++) {
        const u64 row = first_row + 8 * HALVES * threadIdx.y + g + 8 * h;
        const u64 read = ROWS_FIT ? row : within(row, n);
        from[h] = codes + read * ROW_WORDS;
        first_group[h] = read * GROUPS;
    }

#if TENSOR
    float sums[TALL][COLUMNS / 8][4] = {};
#else
    float sums[HALVES][COLUMNS] = {};
#endif

    for (unsigned first = FLIGHT * (split * WARPS + warp); first < CHUNKS; first += FLIGHT * STRIDE) {
        // All loads before any use, and no branch between. What is beyond the end meets zeros of x. Chunks lie at constant
        // distances from the first, which costs no instructions.
        const unsigned begun = first * 4 + t;
        piece_words loaded[FLIGHT][HALVES];
        loaded_scales of_groups[FLIGHT][HALVES];
#if defined(GROUP)
#pragma unroll
        for (int h = 0; h < HALVES; h++) {
            if (TOGETHER) {
                const u64 group = first_group[h] + first;
                of_flight<stored_scale> some;
                some.load(scales + group);
#pragma unroll
                for (int f = 0; f < FLIGHT; f++) of_groups[f][h].scales[0] = some.chunk[f];
#if defined(ZEROS) && !defined(ZERO_BITS)
                of_flight<stored_zero> others;
                others.load(zeros + group);
#pragma unroll
                for (int f = 0; f < FLIGHT; f++) of_groups[f][h].zeros[0] = others.chunk[f];
#endif
                continue;
            }
#pragma unroll
            for (int i = 0; i < FLIGHT * (int)SCALES; i++) {
                const int f = i / SCALES, s = i % SCALES;
                const unsigned sought = begun + f * 4, piece = WHOLE || sought < PIECES ? sought : PIECES - 1;
                const u64 group = first_group[h] + group_of(piece * CODES + s * SHARE);
                of_groups[f][h].scales[s] = __ldg(scales + group);
#if defined(ZEROS)
                of_groups[f][h].zeros[s] = load_zero(zeros, group);
#endif
            }
        }
#endif
#pragma unroll
        for (int f = 0; f < FLIGHT; f++) {
            const unsigned sought = begun + f * 4;
            const unsigned piece = WHOLE || sought < PIECES ? sought : PIECES - 1;
#pragma unroll
            for (int h = 0; h < HALVES; h++) {
                const unsigned *const chunk = from[h] + begun * PIECE_WORDS + f * STEP;
                load_piece(WHOLE ? chunk : from[h] + piece * PIECE_WORDS, loaded[f][h]);
            }
        }
#pragma unroll
        for (int f = 0; f < FLIGHT; f++) {
            const unsigned sought = begun + f * 4;
            const unsigned piece = WHOLE || sought < PIECES ? sought : PIECES - 1;
            numbers w[HALVES];
#pragma unroll
            for (int h = 0; h < HALVES; h++) unpack(loaded[f][h], of_groups[f][h], first_group[h], piece, w[h]);

#if defined(SCALES_AFTER)
            float scale[HALVES], rest[HALVES];
#pragma unroll
            for (int h = 0; h < HALVES; h++) {
                const u64 group = first_group[h] + group_of(piece * CODES);
                scale[h] = SCALE::number(of_groups[f][h].scales[0]);
                rest[h] = rest_of(scale[h], zero_of(of_groups[f][h].zeros[0], group));
            }
#endif
#if TENSOR
#pragma unroll
            for (int tile = 0; tile < COLUMNS / 8; tile++) {
                const u64 column = within(first_column + tile * 8 + g, m);
                unsigned words[X_WORDS], pairs[PIECE_PAIRS];
                load_x(x + column * K + begun * CODES + f * X_STEP, sought * CODES, words);
                reorder(words, pairs);
#if defined(SCALES_AFTER)
                float of_codes[TALL][4] = {}, of_x[4] = {};
#pragma unroll
                for (int p = 0; p < PIECE_PAIRS; p += 2) {
#pragma unroll
                    for (int a = 0; a < TALL; a++) multiply(of_codes[a], w[2 * a], w[2 * a + 1], pairs, p);
                    multiply(of_x, ONES, ONES, ONES, ONES, pairs[p], pairs[p + 1]);
                }
#pragma unroll
                for (int i = 0; i < 4 * TALL; i++) {
                    const int a = i / 4, h = i / 2;
                    float &sum = sums[a][tile][i % 4];
                    sum = fmaf(scale[h], of_codes[a][i % 4], fmaf(rest[h], of_x[i % 4], sum));
                }
#else
#pragma unroll
                for (int p = 0; p < PIECE_PAIRS; p += 2) {
#pragma unroll
                    for (int a = 0; a < TALL; a++) multiply(sums[a][tile], w[2 * a], w[2 * a + 1], pairs, p);
                }
#endif
            }
#else
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                unsigned words[X_WORDS];
                const u64 column = within(first_column + c, m);
                load_x(x + column * K + begun * CODES + f * X_STEP, sought * CODES, words);
#pragma unroll
                for (int i = 0; i < CODES; i++) {
                    const float of_x = number_of(words, i);
#pragma unroll
                    for (int h = 0; h < HALVES; h++) sums[h][c] = fmaf(w[h][i], of_x, sums[h][c]);
                }
            }
#endif
        }
    }

    // By columns of the tile, so that neighboring threads write neighbors of y.
    const int row = 8 * HALVES * threadIdx.y + g;
#if TENSOR
#pragma unroll
    for (int tile = 0; tile < COLUMNS / 8; tile++) {
#pragma unroll
        for (int i = 0; i < 4 * TALL; i++) {
            of_warps[warp][(tile * 8 + 2 * t + i % 2) * ROWS + row + 8 * (i / 2)] = sums[i / 4][tile][i % 4];
        }
    }
#else
#pragma unroll
    for (int h = 0; h < HALVES; h++) {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            float sum = sums[h][c];
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            if (t == 0) of_warps[warp][c * ROWS + row + 8 * h] = sum;
        }
    }
#endif
    __syncthreads();

    const int thread = threadIdx.y * (32 * WARPS) + threadIdx.x;
    const auto finish = [&](int at, float sum) {
        const u64 of_y = first_row + at % ROWS, column = first_column + at / ROWS;
        if (of_y >= n || column >= m) return;
#if !defined(GROUP)
        sum *= SCALE::number(scales[of_y]);
#endif
#ifdef OUTER
        sum *= *outer_of_weight * *outer_of_input;
#endif
#ifdef ADDED
        sum += from_output(added[column * n + of_y]);
#endif
        y[column * n + of_y] = to_output(sum);
    };
    const auto of_block = [&](int at) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < WARPS; i++) sum += of_warps[i][at];
        return sum;
    };

#if SPLITS > 1
    add_shares<SPLITS, SUMS, THREADS>(parts, arrived, thread, of_block, finish);
#else
    for (int at = thread; at < SUMS; at += THREADS) finish(at, of_block(at));
#endif
}
