// Row-wise e4m3 quantization of bf16: one scale per row, or one static scale.
//
// Contract: x[rows, columns], bf16, row-major -> quantized[rows, columns], e4m3; scales[rows], f32 (scales[1] if
// static). Bit-identical to the host reference (e4m3.cuh).
//
// blockDim = (THREADS, ROWS). A row is distributed over THREADS threads and stays in registers, VECTORS_PER_THREAD
// vectors of WIDTH elements per thread, between amax and conversion. With VECTORS_PER_THREAD 0 it is read twice. Loads
// and stores are evict-first.
//
// Traffic: x once (twice with VECTORS_PER_THREAD 0) and the quantized values once. Roofline: memory, 3 bytes per
// element.
//
// Parameters:
//   KERNEL              kernel name
//   WIDTH               elements per vector access: 1 or 8
//   THREADS             threads per row: whole warps
//   ROWS                rows per block
//   VECTORS_PER_THREAD  vectors of a row per thread in registers; 0 if the row is too long
// Optional:
//   STATIC_SCALE        float; replaces the scales of amax

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif
#ifndef WIDTH
#error "WIDTH: elements per vector access: 1 or 8"
#endif
#ifndef THREADS
#error "THREADS: threads per row: whole warps"
#endif
#ifndef ROWS
#error "ROWS: rows per block"
#endif
#ifndef VECTORS_PER_THREAD
#error "VECTORS_PER_THREAD: vectors of a row per thread in registers"
#endif

#include "e4m3.cuh"

constexpr int WARPS = THREADS / 32;
constexpr int PAIRS = (WIDTH + 1) / 2;

struct quant_vec {
    unsigned pairs[PAIRS];
};

// Evict-first, because nothing is accessed again.
__device__ __forceinline__ quant_vec load(const bf16 *row, unsigned v) {
    quant_vec loaded;
#if WIDTH == 8
    *reinterpret_cast<uint4 *>(&loaded) = __ldcs(reinterpret_cast<const uint4 *>(row) + v);
#else
    loaded.pairs[0] = __ldcs(row + v);
#endif
    return loaded;
}

__device__ __forceinline__ void store(unsigned char *row, unsigned v, const quant_vec &x, float inverse) {
#if WIDTH == 8
    float q[8];
#pragma unroll
    for (int p = 0; p < 4; p++) {
        q[2 * p] = bf16x2_low(x.pairs[p]) * inverse;
        q[2 * p + 1] = bf16x2_high(x.pairs[p]) * inverse;
    }
    const uint2 quantized = make_uint2(to_e4m3(q[0], q[1], q[2], q[3]), to_e4m3(q[4], q[5], q[6], q[7]));
    __stcs(reinterpret_cast<uint2 *>(row) + v, quantized);
#else
    __stcs(row + v, (unsigned char)to_e4m3(bf16x2_low(x.pairs[0]) * inverse, 0.0f));
#endif
}

// Maximum over all threads of a row, returned to each of them. Every thread of the block must call it.
__device__ __forceinline__ unsigned row_max(unsigned pair, unsigned (&shared)[ROWS][WARPS]) {
    unsigned amax = __reduce_max_sync(0xffffffffu, max(pair & 0xffffu, pair >> 16));
    if (WARPS == 1) return amax;
    const int lane = threadIdx.x % 32;
    if (lane == 0) shared[threadIdx.y][threadIdx.x / 32] = amax;
    __syncthreads();
    return __reduce_max_sync(0xffffffffu, lane < WARPS ? shared[threadIdx.y][lane] : 0u);
}

extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
    KERNEL(const bf16 *__restrict__ x, unsigned char *__restrict__ quantized, float *__restrict__ scales, u64 rows,
           u64 columns) {
    const u64 row = (u64)blockIdx.x * ROWS + threadIdx.y;
    // Threads beyond the last row have no vectors, but take part in the barrier.
    const unsigned vecs = row < rows ? columns / WIDTH : 0;
    const bf16 *x_row = x + row * columns;
    unsigned char *quantized_row = quantized + row * columns;

#if VECTORS_PER_THREAD > 0
    quant_vec values[VECTORS_PER_THREAD];
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        const unsigned v = p * THREADS + threadIdx.x;
        if (v < vecs) values[p] = load(x_row, v);
    }
#endif

#ifdef STATIC_SCALE
    const float inverse = 1.0f / STATIC_SCALE;
    if (row == 0 && threadIdx.x == 0) scales[0] = STATIC_SCALE;
#else
    __shared__ unsigned warp_amax[ROWS][WARPS];
    unsigned amax = 0;
#if VECTORS_PER_THREAD > 0
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        if (p * THREADS + threadIdx.x < vecs) {
#pragma unroll
            for (int i = 0; i < PAIRS; i++) amax = max_magnitude(amax, values[p].pairs[i]);
        }
    }
#else
    for (unsigned v = threadIdx.x; v < vecs; v += THREADS) {
        const quant_vec loaded = load(x_row, v);
#pragma unroll
        for (int i = 0; i < PAIRS; i++) amax = max_magnitude(amax, loaded.pairs[i]);
    }
#endif
    const float scale = scale_from_amax(row_max(amax, warp_amax));
    const float inverse = reciprocal(scale);
    if (row < rows && threadIdx.x == 0) scales[row] = scale;
#endif

#if VECTORS_PER_THREAD > 0
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        const unsigned v = p * THREADS + threadIdx.x;
        if (v < vecs) store(quantized_row, v, values[p], inverse);
    }
#else
    for (unsigned v = threadIdx.x; v < vecs; v += THREADS) store(quantized_row, v, load(x_row, v), inverse);
#endif
}
