// e4m3 codes and one scale for each row of bf16; with SCALE defined, codes by that scale, which is the only one.
//
// A block is THREADS threads (whole warps) for each of ROWS rows. Each thread keeps PIECES pieces of WIDTH elements (1 or
// 8) in registers, so that memory is read once; with PIECES 0, for rows too long for that, it is read twice.
// Traffic: x once, or twice, and the codes once. Roofline: three bytes a number over the memory's rate.
#include "e4m3.cuh"

constexpr int WARPS = THREADS / 32;
constexpr int PAIRS = (WIDTH + 1) / 2;

struct piece {
    unsigned pairs[PAIRS];
};

// Nothing is read or written twice: caches need not keep it.
__device__ __forceinline__ piece load(const bf16 *row, unsigned at) {
    piece loaded;
#if WIDTH == 8
    *reinterpret_cast<uint4 *>(&loaded) = __ldcs(reinterpret_cast<const uint4 *>(row) + at);
#else
    loaded.pairs[0] = __ldcs(row + at);
#endif
    return loaded;
}

__device__ __forceinline__ void store(unsigned char *row, unsigned at, const piece &x, float inverse) {
#if WIDTH == 8
    float q[8];
#pragma unroll
    for (int p = 0; p < 4; p++) {
        q[2 * p] = lower(x.pairs[p]) * inverse;
        q[2 * p + 1] = upper(x.pairs[p]) * inverse;
    }
    const uint2 codes = make_uint2(codes_of(q[0], q[1], q[2], q[3]), codes_of(q[4], q[5], q[6], q[7]));
    __stcs(reinterpret_cast<uint2 *>(row) + at, codes);
#else
    __stcs(row + at, (unsigned char)codes_of(lower(x.pairs[0]) * inverse, 0.0f));
#endif
}

// The largest over all threads of a row, given to each of them. Every thread of the block must call it.
__device__ __forceinline__ unsigned row_largest(unsigned pair, unsigned (&shared)[ROWS][WARPS]) {
    unsigned largest = __reduce_max_sync(0xffffffffu, max(pair & 0xffffu, pair >> 16));
    if (WARPS == 1) return largest;
    const int lane = threadIdx.x % 32;
    if (lane == 0) shared[threadIdx.y][threadIdx.x / 32] = largest;
    __syncthreads();
    return __reduce_max_sync(0xffffffffu, lane < WARPS ? shared[threadIdx.y][lane] : 0u);
}

extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
    KERNEL(const bf16 *__restrict__ x, unsigned char *__restrict__ codes, float *__restrict__ scales, u64 rows,
           u64 columns) {
    const u64 row = (u64)blockIdx.x * ROWS + threadIdx.y;
    // Threads beyond the last row own nothing, but stay for the barrier.
    const unsigned pieces = row < rows ? columns / WIDTH : 0;
    const bf16 *from = x + row * columns;
    unsigned char *to = codes + row * columns;

#if PIECES > 0
    piece values[PIECES];
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const unsigned at = p * THREADS + threadIdx.x;
        if (at < pieces) values[p] = load(from, at);
    }
#endif

#ifdef SCALE
    const float inverse = 1.0f / SCALE;
    if (row == 0 && threadIdx.x == 0) scales[0] = SCALE;
#else
    __shared__ unsigned of_warps[ROWS][WARPS];
    unsigned largest = 0;
#if PIECES > 0
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        if (p * THREADS + threadIdx.x < pieces) {
#pragma unroll
            for (int i = 0; i < PAIRS; i++) largest = larger(largest, values[p].pairs[i]);
        }
    }
#else
    for (unsigned at = threadIdx.x; at < pieces; at += THREADS) {
        const piece loaded = load(from, at);
#pragma unroll
        for (int i = 0; i < PAIRS; i++) largest = larger(largest, loaded.pairs[i]);
    }
#endif
    const float scale = scale_of(row_largest(largest, of_warps));
    const float inverse = inverse_of(scale);
    if (row < rows && threadIdx.x == 0) scales[row] = scale;
#endif

#if PIECES > 0
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const unsigned at = p * THREADS + threadIdx.x;
        if (at < pieces) store(to, at, values[p], inverse);
    }
#else
    for (unsigned at = threadIdx.x; at < pieces; at += THREADS) store(to, at, load(from, at), inverse);
#endif
}
