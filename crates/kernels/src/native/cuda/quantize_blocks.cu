// Block-wise e4m3 quantization of bf16 with f32 scales (amax / 448, neither scales nor quotients rounded), in the
// layout of cuBLASLt's 1 x 128 and 128 x 128 scaling modes (CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F and
// ..._BLK128x128_32F).
//
// Contract, with padded(n) = n rounded up to a multiple of 4:
//   SQUARE_BLOCKS 0  x[rows, columns] -> quantized[rows, columns], scales[columns / 128, padded(rows)];
//                    columns is a multiple of 128
//   SQUARE_BLOCKS 1  x[rows, columns] -> quantized[columns, rows], scales[columns / 128, padded(rows / 128)];
//                    rows and columns are multiples of 128
//
//   SQUARE_BLOCKS 0: a thread holds 8 elements; 16 lanes share a block and reduce amax by shuffles.
//   SQUARE_BLOCKS 1: a thread block holds one 128 x 128 block in registers, 8 x 8 elements per thread:
//     threadIdx.x % 16 selects 8 rows, threadIdx.x / 16 selects 8 columns;
//     each thread writes 8 bytes of each of its columns, 16 threads a whole column of the block.
//
// Traffic: x and the quantized values once. Roofline: memory, 3 bytes per element.
//
// Parameters:
//   KERNEL         kernel name
//   THREADS        threads per block; 256 for square blocks
//   SQUARE_BLOCKS  1 for blocks of 128 x 128 and transposed output, 0 for blocks of 1 x 128
// Optional:
//   STATIC_SCALE   float; replaces the scales of amax

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif
#ifndef THREADS
#error "THREADS: threads per block"
#endif
#ifndef SQUARE_BLOCKS
#error "SQUARE_BLOCKS: 1 for blocks of 128 x 128 and transposed output, 0 for blocks of 1 x 128"
#endif

#include "e4m3.cuh"

constexpr int BLOCK_SIZE = 128;
constexpr int WIDTH = 8;

// Scale from amax without intermediate rounding to bf16.
__device__ __forceinline__ float exact_scale(unsigned amax) {
#ifdef STATIC_SCALE
    return STATIC_SCALE;
#else
    const float scale = __fdiv_rn(bf16x2_low(amax), 448.0f);
    return scale < 0x1p-63f ? 1.0f : scale;
#endif
}

__device__ __forceinline__ unsigned to_e4m3x2(float low, float high, float scale) {
    unsigned short quantized;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;"
        : "=h"(quantized)
        : "f"(__fdiv_rn(high, scale)), "f"(__fdiv_rn(low, scale)));
    return quantized;
}

// Maximum over groups of LANES_PER_BLOCK lanes, as bits of a bf16.
template <int LANES_PER_BLOCK> __device__ __forceinline__ unsigned shuffle_max(unsigned pair) {
#pragma unroll
    for (int distance = LANES_PER_BLOCK / 2; distance > 0; distance /= 2) {
        pair = __vmaxu2(pair, __shfl_xor_sync(0xffffffffu, pair, distance));
    }
    return max(pair & 0xffffu, pair >> 16);
}

__device__ __forceinline__ unsigned padded(u64 count) { return ((unsigned)count + 3) / 4 * 4; }

#if SQUARE_BLOCKS
extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const bf16 *__restrict__ x, unsigned char *__restrict__ quantized, float *__restrict__ scales, u64 rows,
           u64 columns) {
    constexpr int THREADS_PER_SIDE = BLOCK_SIZE / WIDTH;
    static_assert(THREADS == THREADS_PER_SIDE * THREADS_PER_SIDE, "one thread per 8 x 8 elements");
    const unsigned block_columns = (unsigned)columns / BLOCK_SIZE;
    const unsigned block_column = blockIdx.x % block_columns, block_row = blockIdx.x / block_columns;
    const u64 row = (u64)block_row * BLOCK_SIZE + threadIdx.x % THREADS_PER_SIDE * WIDTH;
    const u64 column = (u64)block_column * BLOCK_SIZE + threadIdx.x / THREADS_PER_SIDE * WIDTH;

    uint4 values[WIDTH];
    unsigned amax = 0;
#pragma unroll
    for (int r = 0; r < WIDTH; r++)
        values[r] = __ldg(reinterpret_cast<const uint4 *>(x + (row + r) * columns + column));
#pragma unroll
    for (int r = 0; r < WIDTH; r++) {
        amax = max_magnitude(max_magnitude(max_magnitude(max_magnitude(amax, values[r].x), values[r].y), values[r].z),
                             values[r].w);
    }
    __shared__ unsigned warp_amax[THREADS / 32];
    const unsigned amax_of_warp = shuffle_max<32>(amax);
    if (threadIdx.x % 32 == 0) warp_amax[threadIdx.x / 32] = amax_of_warp;
    __syncthreads();
    unsigned block_amax = 0;
#pragma unroll
    for (int warp = 0; warp < THREADS / 32; warp++) block_amax = max(block_amax, warp_amax[warp]);
    const float scale = exact_scale(block_amax);
    if (threadIdx.x == 0) scales[(u64)block_column * padded(rows / BLOCK_SIZE) + block_row] = scale;

#pragma unroll
    for (int c = 0; c < WIDTH; c++) {
        unsigned pairs[WIDTH / 2];
#pragma unroll
        for (int r = 0; r < WIDTH; r += 2) {
            const unsigned first[4] = {values[r].x, values[r].y, values[r].z, values[r].w};
            const unsigned second[4] = {values[r + 1].x, values[r + 1].y, values[r + 1].z, values[r + 1].w};
            pairs[r / 2] = c % 2 == 0 ? to_e4m3x2(bf16x2_low(first[c / 2]), bf16x2_low(second[c / 2]), scale)
                                      : to_e4m3x2(bf16x2_high(first[c / 2]), bf16x2_high(second[c / 2]), scale);
        }
        *reinterpret_cast<uint2 *>(quantized + (column + c) * rows + row) =
            make_uint2(pairs[0] | pairs[1] << 16, pairs[2] | pairs[3] << 16);
    }
}
#else
extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const uint4 *__restrict__ x, uint2 *__restrict__ quantized,
           float *__restrict__ scales, u64 rows, u64 columns) {
    constexpr int LANES = BLOCK_SIZE / WIDTH;
    const u64 v = (u64)blockIdx.x * THREADS + threadIdx.x;
    const bool is_inside = v < rows * columns / WIDTH;
    const uint4 values = is_inside ? __ldcs(x + v) : make_uint4(0, 0, 0, 0);
    const unsigned amax =
        max_magnitude(max_magnitude(max_magnitude(max_magnitude(0, values.x), values.y), values.z), values.w);
    const float scale = exact_scale(shuffle_max<LANES>(amax));
    if (!is_inside) return;
    const u64 block = v / LANES;
    const unsigned blocks = (unsigned)columns / BLOCK_SIZE;
    if (threadIdx.x % LANES == 0) scales[block % blocks * padded(rows) + block / blocks] = scale;
    const unsigned pairs[4] = {values.x, values.y, values.z, values.w};
    unsigned quantized_pairs[4];
#pragma unroll
    for (int p = 0; p < 4; p++) quantized_pairs[p] = to_e4m3x2(bf16x2_low(pairs[p]), bf16x2_high(pairs[p]), scale);
    __stcs(quantized + v,
           make_uint2(quantized_pairs[0] | quantized_pairs[1] << 16, quantized_pairs[2] | quantized_pairs[3] << 16));
}
#endif
