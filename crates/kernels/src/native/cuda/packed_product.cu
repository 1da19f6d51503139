// y[m, n] = x[m, K] * w[n, K]^T [+ added[m, n]] for few rows of x and weights in codes, which are never written unpacked.
//
// Data flow: a block makes 16 * TILES columns of y for up to COLUMNS rows of x. Its TILES groups of WARPS warps take 16 rows
// of w each, a warp takes every WARPS * SPLITS-th chunk of 64 bytes of these rows. In a chunk the thread 4 g + t reads 16
// bytes, a piece, of the rows g and g + 8, with FLIGHT chunks on their way at once, and the piece's numbers of x from a
// cache. Codes become numbers in registers. With TENSOR they are pairs of x's own type and tensor cores multiply them: a
// thread gives the k that it has to whatever place of the instruction is its own, since it has the same of x. Otherwise
// they are multiplied in float. Sums are float throughout; those of warps meet in shared memory, those of the SPLITS
// blocks that share columns in device memory, where the last block to arrive adds them up, always in the same order.
//
// Traffic: w once for each COLUMNS rows of x; x from L2 once for each block, n / (16 TILES) times; partial sums, if SPLITS
// is above one, 8 m n SPLITS bytes. Roofline: the bytes of w over the memory's rate as long as the unpacking keeps up: with
// TENSOR about 2 instructions for each code, where 4-bit codes at 4.8 TB/s on 132 multiprocessors of 1.8 GHz leave room for
// 3; without it 2 + min(m, COLUMNS) or so.
#include "element.cuh"
#include "packed.cuh"
#if TENSOR
#include "packed_pairs.cuh"
#endif

constexpr int ROWS = 16 * TILES;
constexpr int THREADS = 32 * WARPS * TILES;
constexpr int SUMS = ROWS * COLUMNS;
// Codes in a piece. All of them are in one group, which holds a multiple of 32.
constexpr unsigned CODES = 4 * WORD_CODES;
constexpr unsigned ROW_PIECES = ROW_WORDS / 4;
constexpr unsigned PIECES = (K + CODES - 1) / CODES;
constexpr unsigned CHUNKS = (PIECES + 3) / 4;
constexpr unsigned STRIDE = WARPS * SPLITS;
constexpr int X_WORDS = CODES * sizeof(element) / 4;
// Whether no piece that a thread comes to lies beyond the end, and whether all of each piece is before it.
constexpr bool WHOLE = PIECES % (4 * FLIGHT * STRIDE) == 0;
constexpr bool FILLED = WHOLE && K % CODES == 0;

// A piece's numbers of a row of x, zero beyond its end.
__device__ __forceinline__ void load_x(const element *row, bool inside, unsigned piece, unsigned (&words)[X_WORDS]) {
    const unsigned at = piece * CODES;
#if WIDTH > 1
#pragma unroll
    for (int i = 0; i < X_WORDS / 4; i++) {
        uint4 four = make_uint4(0, 0, 0, 0);
        if (inside && (FILLED || at + i * WIDTH < K)) four = __ldg(reinterpret_cast<const uint4 *>(row + at) + i);
        words[4 * i] = four.x;
        words[4 * i + 1] = four.y;
        words[4 * i + 2] = four.z;
        words[4 * i + 3] = four.w;
    }
#else
#pragma unroll
    for (int i = 0; i < X_WORDS; i++) {
#if defined(ELEMENT_F32)
        words[i] = inside && at + i < K ? __float_as_uint(row[at + i]) : 0;
#else
        const unsigned first = inside && at + 2 * i < K ? row[at + 2 * i] : 0;
        const unsigned second = inside && at + 2 * i + 1 < K ? row[at + 2 * i + 1] : 0;
        words[i] = first | second << 16;
#endif
    }
#endif
}

#if TENSOR
typedef unsigned numbers[4][WORD_PAIRS];
#else
typedef float numbers[4][WORD_CODES];

__device__ __forceinline__ float number_of(const unsigned (&words)[X_WORDS], int i) {
#if defined(ELEMENT_F32)
    return __uint_as_float(words[i]);
#else
    return widen((element)(words[i / 2] >> 16 * (i % 2)));
#endif
}
#endif

// The numbers of a piece. Scales of rows are left to the sums.
__device__ __forceinline__ void unpack(const uint4 &piece, scale_type scale, scale_type zero, numbers &of_words) {
    const unsigned words[4] = {piece.x, piece.y, piece.z, piece.w};
#pragma unroll
    for (int w = 0; w < 4; w++) {
#if TENSOR
        decode_pairs(words[w], of_words[w]);
#if defined(CODES_INT4)
#pragma unroll
        for (int i = 0; i < WORD_PAIRS; i++) {
            of_words[w][i] = fma_pairs(of_words[w][i], scale * 0x10001u, zero * 0x10001u);
        }
#endif
#else
        decode(words[w], of_words[w]);
#if defined(CODES_INT4)
#pragma unroll
        for (int i = 0; i < WORD_CODES; i++) {
            of_words[w][i] = fmaf(of_words[w][i], widen_scale(scale), widen_scale(zero));
        }
#endif
#endif
    }
}

// On tensor cores two blocks share a multiprocessor; without them a thread needs the registers.
extern "C" __global__ void __launch_bounds__(THREADS, TENSOR ? 2 : 1)
    KERNEL(const element *__restrict__ x, const uint4 *__restrict__ codes, const scale_type *__restrict__ scales,
#if defined(CODES_INT4)
           const scale_type *__restrict__ zeros,
#endif
#ifdef ADDED
           const element *__restrict__ added,
#endif
           element *__restrict__ y,
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

    // Beyond the last row the last one is read again, and what comes of it is not written.
    const uint4 *from[2];
#if defined(CODES_INT4)
    const scale_type *scales_from[2], *zeros_from[2];
#endif
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const u64 row = first_row + 16 * threadIdx.y + g + 8 * h;
        const u64 read = row < n ? row : n - 1;
        from[h] = codes + read * ROW_PIECES;
#if defined(CODES_INT4)
        scales_from[h] = scales + read * GROUPS;
        zeros_from[h] = zeros + read * GROUPS;
#endif
    }

#if TENSOR
    float sums[COLUMNS / 8][4] = {};
#else
    float sums[2][COLUMNS] = {};
#endif

    for (unsigned first = split * WARPS + warp; first < CHUNKS; first += FLIGHT * STRIDE) {
        // All loads before any use, and no branch between. What is beyond the end meets zeros of x.
        uint4 loaded[FLIGHT][2];
        scale_type of_groups[FLIGHT][2] = {}, zeros_of_groups[FLIGHT][2] = {};
#pragma unroll
        for (int f = 0; f < FLIGHT; f++) {
            const unsigned sought = (first + f * STRIDE) * 4 + t;
            const unsigned piece = WHOLE || sought < PIECES ? sought : PIECES - 1;
#pragma unroll
            for (int h = 0; h < 2; h++) {
                loaded[f][h] = __ldcg(from[h] + piece);
#if defined(CODES_INT4)
                of_groups[f][h] = __ldg(scales_from[h] + piece * CODES / GROUP);
                zeros_of_groups[f][h] = __ldg(zeros_from[h] + piece * CODES / GROUP);
#endif
            }
        }
#pragma unroll
        for (int f = 0; f < FLIGHT; f++) {
            const unsigned piece = (first + f * STRIDE) * 4 + t;
            numbers w[2];
#pragma unroll
            for (int h = 0; h < 2; h++) unpack(loaded[f][h], of_groups[f][h], zeros_of_groups[f][h], w[h]);

#if TENSOR
#pragma unroll
            for (int tile = 0; tile < COLUMNS / 8; tile++) {
                const u64 column = first_column + tile * 8 + g;
                unsigned words[X_WORDS];
                load_x(x + column * K, column < m, piece, words);
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    unsigned pairs[WORD_PAIRS];
                    reorder(words + i * WORD_PAIRS, pairs);
#pragma unroll
                    for (int p = 0; p < WORD_PAIRS; p += 2) {
                        multiply(sums[tile], w[0][i][p], w[1][i][p], w[0][i][p + 1], w[1][i][p + 1], pairs[p],
                                 pairs[p + 1]);
                    }
                }
            }
#else
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                unsigned words[X_WORDS];
                load_x(x + (first_column + c) * K, first_column + c < m, piece, words);
#pragma unroll
                for (int i = 0; i < CODES; i++) {
                    const float of_x = number_of(words, i);
#pragma unroll
                    for (int h = 0; h < 2; h++) {
                        sums[h][c] = fmaf(w[h][i / WORD_CODES][i % WORD_CODES], of_x, sums[h][c]);
                    }
                }
            }
#endif
        }
    }

    // By columns of the tile, so that neighbouring threads write neighbours of y.
    const int row = 16 * threadIdx.y + g;
#if TENSOR
#pragma unroll
    for (int tile = 0; tile < COLUMNS / 8; tile++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            of_warps[warp][(tile * 8 + 2 * t + i % 2) * ROWS + row + 8 * (i / 2)] = sums[tile][i];
        }
    }
#else
#pragma unroll
    for (int h = 0; h < 2; h++) {
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
#if !defined(CODES_INT4)
        sum *= widen_scale(scales[of_y]);
#endif
#ifdef ADDED
        sum += widen(added[column * n + of_y]);
#endif
        y[column * n + of_y] = narrow(sum);
    };
    const auto of_block = [&](int at) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < WARPS; i++) sum += of_warps[i][at];
        return sum;
    };

#if SPLITS > 1
    float *own = parts + (u64)blockIdx.x * SUMS;
    for (int at = thread; at < SUMS; at += THREADS) own[at] = of_block(at);
    __threadfence();
    __syncthreads();
    __shared__ bool last;
    if (thread == 0) last = atomicAdd(arrived + block, 1u) == SPLITS - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    const float *all = parts + (u64)block * SPLITS * SUMS;
    for (int at = thread; at < SUMS; at += THREADS) {
        float sum = 0.0f;
        for (int i = 0; i < SPLITS; i++) sum += __ldcg(all + (u64)i * SUMS + at);
        finish(at, sum);
    }
    // For the next launch.
    if (thread == 0) arrived[block] = 0;
#else
    for (int at = thread; at < SUMS; at += THREADS) finish(at, of_block(at));
#endif
}
