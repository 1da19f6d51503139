// Memory bandwidth probes: copy, and sum (read only).
//
// Kernels: probe_copy: y = x. probe_sum: y[block] = wrapping sum of the u32 words of the block's part of x.
//
// Contract: x: 16-byte vectors. Each thread processes VECTORS_PER_THREAD vectors, THREADS apart, and loads all of them
// before it uses the first, except in the last block if it is incomplete.
//
// Traffic: x once, and y once for the copy. Roofline: memory, which these kernels measure.
//
// Parameters:
//   THREADS             threads per block: whole warps
//   VECTORS_PER_THREAD  16-byte vectors per thread

#ifndef THREADS
#error "THREADS: threads per block: whole warps"
#endif
#ifndef VECTORS_PER_THREAD
#error "VECTORS_PER_THREAD: 16-byte vectors per thread"
#endif

typedef unsigned long long u64;

extern "C" __global__ void __launch_bounds__(THREADS)
    probe_copy(const uint4 *__restrict__ x, uint4 *__restrict__ y, u64 vecs, u64) {
    const u64 first = (u64)blockIdx.x * (THREADS * VECTORS_PER_THREAD) + threadIdx.x;
    if (first + (VECTORS_PER_THREAD - 1) * THREADS < vecs) {
        uint4 loaded[VECTORS_PER_THREAD];
#pragma unroll
        for (int p = 0; p < VECTORS_PER_THREAD; p++) loaded[p] = x[first + p * THREADS];
#pragma unroll
        for (int p = 0; p < VECTORS_PER_THREAD; p++) y[first + p * THREADS] = loaded[p];
    } else {
        for (u64 v = first; v < vecs; v += THREADS) y[v] = x[v];
    }
}

__device__ __forceinline__ unsigned word_sum(uint4 vec) { return vec.x + vec.y + vec.z + vec.w; }

extern "C" __global__ void __launch_bounds__(THREADS)
    probe_sum(const uint4 *__restrict__ x, unsigned *__restrict__ y, u64 vecs, u64 sums) {
    __shared__ unsigned warp_sums[THREADS / 32];
    const u64 first = (u64)blockIdx.x * (THREADS * VECTORS_PER_THREAD) + threadIdx.x;
    unsigned sum = 0;
    if (first + (VECTORS_PER_THREAD - 1) * THREADS < vecs) {
        uint4 loaded[VECTORS_PER_THREAD];
#pragma unroll
        for (int p = 0; p < VECTORS_PER_THREAD; p++) loaded[p] = x[first + p * THREADS];
#pragma unroll
        for (int p = 0; p < VECTORS_PER_THREAD; p++) sum += word_sum(loaded[p]);
    } else {
        for (u64 v = first; v < vecs; v += THREADS) sum += word_sum(x[v]);
    }

#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0 && blockIdx.x < sums) {
        for (int warp = 1; warp < THREADS / 32; warp++) sum += warp_sums[warp];
        y[blockIdx.x] = sum;
    }
}
