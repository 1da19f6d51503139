// The codes of x[rows, columns] in bf16, and with TURNED those of its transpose, in one pass, by the largest magnitudes that
// `largest_of_lines.cu` has found: with LINES of each row for the codes of x and of each column for those of the transpose,
// else one for both, which with SCALE_PER_LINE is written for each of them. PLAIN leaves out neither x's codes nor its scales.
//
// A block takes a tile of 128 by 128. A thread reads 8 columns of 4 rows, writes 8 codes of each row, and puts words of 4 rows
// of each column into shared memory, from where warps write the columns as rows. Words are moved round in their column, so
// that neither direction asks one bank twice.
// Traffic: 2 bytes read and 1 or 2 written for each number. Roofline: memory. Rows and columns come in sixteens.
#include "line_codes.cuh"

constexpr int TILE = 128;
constexpr int THREADS = 256;
constexpr int WORDS = TILE / 4;

__device__ __forceinline__ unsigned place(unsigned column, unsigned word) {
    return column * WORDS + (word + column / 8 * 2) % WORDS;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const bf16 *__restrict__ x,
#ifdef LINES
#ifdef PLAIN
           const unsigned *__restrict__ of_rows,
#endif
#ifdef TURNED
           const unsigned *__restrict__ of_columns,
#endif
#else
           const unsigned *__restrict__ of_all,
#endif
#ifdef PLAIN
           unsigned char *__restrict__ codes, float *__restrict__ scales,
#endif
#ifdef TURNED
           unsigned char *__restrict__ turned, float *__restrict__ scales_of_turned,
#endif
           u64 rows, u64 columns) {
    const unsigned tiles = ((unsigned)columns + TILE - 1) / TILE;
    const u64 left = (u64)(blockIdx.x % tiles) * TILE;
    const u64 top = (u64)(blockIdx.x / tiles) * TILE;
    const unsigned piece = threadIdx.x % 16, four = threadIdx.x / 16;
    const u64 column = left + 8 * piece;
#ifndef LINES
    const divisor whole(*of_all);
#endif

#ifdef TURNED
    __shared__ unsigned words[TILE * WORDS];
    float inverses[8], scales_of_columns[8];
#pragma unroll
    for (int c = 0; c < 8; c++) {
#ifdef LINES
        const divisor of_column(column < columns ? of_columns[column + c] : 0);
#else
        const divisor of_column = whole;
#endif
        inverses[c] = of_column.inverse;
        scales_of_columns[c] = of_column.scale;
    }
#endif

#pragma unroll
    for (int half = 0; half < 2; half++) {
        const unsigned word = half * 16 + four;
        const u64 row = top + 4 * word;
        const bool within = row < rows && column < columns;
        unsigned pairs[4][4] = {};
#pragma unroll
        for (int r = 0; r < 4; r++) {
            if (within) {
                *reinterpret_cast<uint4 *>(pairs[r]) =
                    __ldcs(reinterpret_cast<const uint4 *>(x + (row + r) * columns + column));
            }
        }
#ifdef PLAIN
#pragma unroll
        for (int r = 0; r < 4; r++) {
            if (!within) break;
#ifdef LINES
            const divisor of_row(of_rows[row + r]);
#else
            const divisor of_row = whole;
#endif
            unsigned packed[2];
#pragma unroll
            for (int q = 0; q < 2; q++) {
                const unsigned first = pairs[r][2 * q], second = pairs[r][2 * q + 1];
                packed[q] = codes_of(of_row.of(lower(first)), of_row.of(upper(first))) |
                            codes_of(of_row.of(lower(second)), of_row.of(upper(second))) << 16;
            }
            __stcs(reinterpret_cast<uint2 *>(codes + (row + r) * columns + column), make_uint2(packed[0], packed[1]));
            if (column == 0) {
#if defined(LINES) || defined(SCALE_PER_LINE)
                scales[row + r] = of_row.scale;
#else
                if (row + r == 0) scales[0] = of_row.scale;
#endif
            }
        }
#endif
#ifdef TURNED
#pragma unroll
        for (int c = 0; c < 8; c++) {
            divisor of_column(0);
            of_column.inverse = inverses[c];
            of_column.scale = scales_of_columns[c];
            float quotients[4];
#pragma unroll
            for (int r = 0; r < 4; r++) {
                quotients[r] = of_column.of(c % 2 == 0 ? lower(pairs[r][c / 2]) : upper(pairs[r][c / 2]));
            }
            words[place(8 * piece + c, word)] =
                codes_of(quotients[0], quotients[1]) | codes_of(quotients[2], quotients[3]) << 16;
        }
        if (within && row == 0) {
#pragma unroll
            for (int c = 0; c < 8; c++) {
#if defined(LINES) || defined(SCALE_PER_LINE)
                scales_of_turned[column + c] = scales_of_columns[c];
#else
                if (column + c == 0) scales_of_turned[0] = scales_of_columns[c];
#endif
            }
        }
#endif
    }

#ifdef TURNED
    __syncthreads();
    const unsigned lane = threadIdx.x % 32;
    if (top + 4 * lane >= rows) return;
    for (unsigned at = threadIdx.x / 32; at < TILE && left + at < columns; at += THREADS / 32) {
        __stcs(reinterpret_cast<unsigned *>(turned + (left + at) * rows + top) + lane, words[place(at, lane)]);
    }
#endif
}
