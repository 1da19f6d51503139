// float8 quantization of training operands: x[rows, columns] in bf16 and, in the same pass, its transpose, with the
// amax that amax_rows_cols.cu has computed (torchao float8: tensorwise or axiswise scaling).
//
// Contract:
//   ROW_MAJOR_OUTPUT    quantized[rows, columns], scales: per row with AXISWISE, otherwise per tensor
//   TRANSPOSED_OUTPUT   transposed[columns, rows], transposed_scales: per column with AXISWISE, otherwise per tensor
//   BROADCAST_SCALES    a tensor-wide scale is written once per row or column
//   rows and columns are multiples of 16; amax values are bits of bf16.
//
// One block of 256 threads per tile of 128 x 128 elements:
//   load      thread (column_vec = tid % 16, row_quad = tid / 16): 8 columns of 4 rows, twice
//   direct    8 bytes of each row to `quantized`
//   transpose one 32-bit word per column with the values of 4 rows -> shared memory words[128 columns][32 words];
//             words of a column are rotated by 2 * (column / 8), so that neither direction has bank conflicts; then
//             each warp writes a column as a row
//
// Traffic: 2 bytes read and 1 or 2 bytes written per element. Roofline: memory.
//
// Parameters:
//   KERNEL             kernel name
// Optional:
//   ROW_MAJOR_OUTPUT   write x quantized, with its scales
//   TRANSPOSED_OUTPUT  write the transpose quantized, with its scales; at least one output is required
//   AXISWISE           one scale per row of x and per column for the transpose; otherwise one for the tensor
//   BROADCAST_SCALES   repeat the tensor-wide scale per row or column
//   QUANT_E5M2, POWER_OF_TWO_SCALES  see float8_quant.cuh

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif

#include "float8_quant.cuh"

constexpr int TILE = 128;
constexpr int THREADS = 256;
constexpr int WORDS = TILE / 4;

__device__ __forceinline__ unsigned rotated_index(unsigned column, unsigned word) {
    return column * WORDS + (word + column / 8 * 2) % WORDS;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const bf16 *__restrict__ x,
#ifdef AXISWISE
#ifdef ROW_MAJOR_OUTPUT
           const unsigned *__restrict__ row_amax,
#endif
#ifdef TRANSPOSED_OUTPUT
           const unsigned *__restrict__ column_amax,
#endif
#else
           const unsigned *__restrict__ tensor_amax,
#endif
#ifdef ROW_MAJOR_OUTPUT
           unsigned char *__restrict__ quantized, float *__restrict__ scales,
#endif
#ifdef TRANSPOSED_OUTPUT
           unsigned char *__restrict__ transposed, float *__restrict__ transposed_scales,
#endif
           u64 rows, u64 columns) {
    const unsigned tiles = ((unsigned)columns + TILE - 1) / TILE;
    const u64 first_column = (u64)(blockIdx.x % tiles) * TILE;
    const u64 first_row = (u64)(blockIdx.x / tiles) * TILE;
    const unsigned column_vec = threadIdx.x % 16, row_quad = threadIdx.x / 16;
    const u64 column = first_column + 8 * column_vec;
#ifndef AXISWISE
    const divider tensor_divider(*tensor_amax);
#endif

#ifdef TRANSPOSED_OUTPUT
    __shared__ unsigned words[TILE * WORDS];
    float column_inverses[8], column_scales[8];
#pragma unroll
    for (int c = 0; c < 8; c++) {
#ifdef AXISWISE
        const divider column_divider(column < columns ? column_amax[column + c] : 0);
#else
        const divider column_divider = tensor_divider;
#endif
        column_inverses[c] = column_divider.inverse;
        column_scales[c] = column_divider.scale;
    }
#endif

#pragma unroll
    for (int half = 0; half < 2; half++) {
        const unsigned word = half * 16 + row_quad;
        const u64 row = first_row + 4 * word;
        const bool is_inside = row < rows && column < columns;
        unsigned pairs[4][4] = {};
#pragma unroll
        for (int r = 0; r < 4; r++) {
            if (is_inside) {
                *reinterpret_cast<uint4 *>(pairs[r]) =
                    __ldcs(reinterpret_cast<const uint4 *>(x + (row + r) * columns + column));
            }
        }
#ifdef ROW_MAJOR_OUTPUT
#pragma unroll
        for (int r = 0; r < 4; r++) {
            if (!is_inside) break;
#ifdef AXISWISE
            const divider row_divider(row_amax[row + r]);
#else
            const divider row_divider = tensor_divider;
#endif
            unsigned words_of_row[2];
#pragma unroll
            for (int q = 0; q < 2; q++) {
                const unsigned first = pairs[r][2 * q], second = pairs[r][2 * q + 1];
                words_of_row[q] =
                    to_float8(row_divider.quotient(bf16x2_low(first)), row_divider.quotient(bf16x2_high(first))) |
                    to_float8(row_divider.quotient(bf16x2_low(second)), row_divider.quotient(bf16x2_high(second)))
                        << 16;
            }
            __stcs(reinterpret_cast<uint2 *>(quantized + (row + r) * columns + column),
                   make_uint2(words_of_row[0], words_of_row[1]));
            if (column == 0) {
#if defined(AXISWISE) || defined(BROADCAST_SCALES)
                scales[row + r] = row_divider.scale;
#else
                if (row + r == 0) scales[0] = row_divider.scale;
#endif
            }
        }
#endif
#ifdef TRANSPOSED_OUTPUT
#pragma unroll
        for (int c = 0; c < 8; c++) {
            divider column_divider(0);
            column_divider.inverse = column_inverses[c];
            column_divider.scale = column_scales[c];
            float quotients[4];
#pragma unroll
            for (int r = 0; r < 4; r++) {
                quotients[r] =
                    column_divider.quotient(c % 2 == 0 ? bf16x2_low(pairs[r][c / 2]) : bf16x2_high(pairs[r][c / 2]));
            }
            words[rotated_index(8 * column_vec + c, word)] =
                to_float8(quotients[0], quotients[1]) | to_float8(quotients[2], quotients[3]) << 16;
        }
        if (is_inside && row == 0) {
#pragma unroll
            for (int c = 0; c < 8; c++) {
#if defined(AXISWISE) || defined(BROADCAST_SCALES)
                transposed_scales[column + c] = column_scales[c];
#else
                if (column + c == 0) transposed_scales[0] = column_scales[c];
#endif
            }
        }
#endif
    }

#ifdef TRANSPOSED_OUTPUT
    __syncthreads();
    const unsigned lane = threadIdx.x % 32;
    if (first_row + 4 * lane >= rows) return;
    for (unsigned c = threadIdx.x / 32; c < TILE && first_column + c < columns; c += THREADS / 32) {
        __stcs(reinterpret_cast<unsigned *>(transposed + (first_column + c) * rows + first_row) + lane,
               words[rotated_index(c, lane)]);
    }
#endif
}
