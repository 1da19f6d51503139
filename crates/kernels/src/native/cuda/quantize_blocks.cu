// e4m3 codes of bf16 under an f32 scale for each block, neither quotients nor scales rounded on the way; with SCALE defined,
// by that scale. Traffic: x and the codes once; rows and columns come in 128.
//
// SQUARES 0: blocks are 128 numbers of a row. Sixteen threads share one, eight numbers each, and write as many codes in the
// order of x. SQUARES 1: blocks are 128 by 128 and the codes are those of the transpose. A thread block takes one; a thread keeps
// eight columns of eight rows in registers, and writes eight codes of each of its columns, sixteen threads a whole column.
//
// Scales lie as cuBLASLt takes them: those of rows by blocks along the row, next to each other from row to row and filled up to
// fours; those of squares by columns of squares, next to each other from square to square of a column and filled up to fours.
// Roofline: three bytes a number over the memory's rate.
#include "e4m3.cuh"

constexpr int SIDE = 128;
constexpr int WIDTH = 8;

// As `scale_of`, in steps that are not rounded.
__device__ __forceinline__ float exact_scale(unsigned largest) {
#ifdef SCALE
    return SCALE;
#else
    const float scale = __fdiv_rn(lower(largest), 448.0f);
    return scale < 0x1p-63f ? 1.0f : scale;
#endif
}

__device__ __forceinline__ unsigned codes_of_two(float low, float high, float scale) {
    unsigned short codes;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(__fdiv_rn(high, scale)), "f"(__fdiv_rn(low, scale)));
    return codes;
}

// The larger of the magnitudes that threads so near hold, as bits of a bf16.
template <int THREADS_NEAR> __device__ __forceinline__ unsigned largest_of(unsigned pair) {
#pragma unroll
    for (int distance = THREADS_NEAR / 2; distance > 0; distance /= 2) {
        pair = __vmaxu2(pair, __shfl_xor_sync(0xffffffffu, pair, distance));
    }
    return max(pair & 0xffffu, pair >> 16);
}

__device__ __forceinline__ unsigned in_fours(u64 count) { return ((unsigned)count + 3) / 4 * 4; }

#if SQUARES
extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const bf16 *__restrict__ x, unsigned char *__restrict__ codes, float *__restrict__ scales, u64 rows,
           u64 columns) {
    constexpr int GROUPS = SIDE / WIDTH;
    static_assert(THREADS == GROUPS * GROUPS, "a thread for eight columns of eight rows");
    const unsigned across = (unsigned)columns / SIDE;
    const unsigned of_columns = blockIdx.x % across, of_rows = blockIdx.x / across;
    const u64 row = (u64)of_rows * SIDE + threadIdx.x % GROUPS * WIDTH;
    const u64 column = (u64)of_columns * SIDE + threadIdx.x / GROUPS * WIDTH;

    uint4 values[WIDTH];
    unsigned largest = 0;
#pragma unroll
    for (int r = 0; r < WIDTH; r++) values[r] = __ldg(reinterpret_cast<const uint4 *>(x + (row + r) * columns + column));
#pragma unroll
    for (int r = 0; r < WIDTH; r++) {
        largest = larger(larger(larger(larger(largest, values[r].x), values[r].y), values[r].z), values[r].w);
    }
    __shared__ unsigned of_warps[THREADS / 32];
    const unsigned of_warp = largest_of<32>(largest);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = of_warp;
    __syncthreads();
    unsigned of_block = 0;
#pragma unroll
    for (int warp = 0; warp < THREADS / 32; warp++) of_block = max(of_block, of_warps[warp]);
    const float scale = exact_scale(of_block);
    if (threadIdx.x == 0) scales[(u64)of_columns * in_fours(rows / SIDE) + of_rows] = scale;

#pragma unroll
    for (int c = 0; c < WIDTH; c++) {
        unsigned pairs[WIDTH / 2];
#pragma unroll
        for (int r = 0; r < WIDTH; r += 2) {
            const unsigned first[4] = {values[r].x, values[r].y, values[r].z, values[r].w};
            const unsigned second[4] = {values[r + 1].x, values[r + 1].y, values[r + 1].z, values[r + 1].w};
            pairs[r / 2] = c % 2 == 0 ? codes_of_two(lower(first[c / 2]), lower(second[c / 2]), scale)
                                      : codes_of_two(upper(first[c / 2]), upper(second[c / 2]), scale);
        }
        *reinterpret_cast<uint2 *>(codes + (column + c) * rows + row) =
            make_uint2(pairs[0] | pairs[1] << 16, pairs[2] | pairs[3] << 16);
    }
}
#else
extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const uint4 *__restrict__ x, uint2 *__restrict__ codes, float *__restrict__ scales, u64 rows, u64 columns) {
    constexpr int LANES = SIDE / WIDTH;
    const u64 at = (u64)blockIdx.x * THREADS + threadIdx.x;
    const bool owns = at < rows * columns / WIDTH;
    const uint4 values = owns ? __ldcs(x + at) : make_uint4(0, 0, 0, 0);
    const unsigned largest = larger(larger(larger(larger(0, values.x), values.y), values.z), values.w);
    const float scale = exact_scale(largest_of<LANES>(largest));
    if (!owns) return;
    const u64 block = at / LANES;
    const unsigned blocks = (unsigned)columns / SIDE;
    if (threadIdx.x % LANES == 0) scales[block % blocks * in_fours(rows) + block / blocks] = scale;
    const unsigned pairs[4] = {values.x, values.y, values.z, values.w};
    unsigned of_pairs[4];
#pragma unroll
    for (int p = 0; p < 4; p++) of_pairs[p] = codes_of_two(lower(pairs[p]), upper(pairs[p]), scale);
    __stcs(codes + at, make_uint2(of_pairs[0] | of_pairs[1] << 16, of_pairs[2] | of_pairs[3] << 16));
}
#endif
