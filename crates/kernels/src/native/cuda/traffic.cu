// Traffic and little else: each thread takes PIECES pieces of 16 bytes, THREADS pieces apart. All are loaded before any
// is used, except by threads that have fewer, which are in the last block.
// Roofline: the memory's, which it is there to find.

typedef unsigned long long u64;

// y = x.
extern "C" __global__ void __launch_bounds__(THREADS)
    probe_copy(const uint4 *__restrict__ x, uint4 *__restrict__ y, u64 pieces, u64) {
    const u64 first = (u64)blockIdx.x * (THREADS * PIECES) + threadIdx.x;
    if (first + (PIECES - 1) * THREADS < pieces) {
        uint4 loaded[PIECES];
#pragma unroll
        for (int p = 0; p < PIECES; p++) loaded[p] = x[first + p * THREADS];
#pragma unroll
        for (int p = 0; p < PIECES; p++) y[first + p * THREADS] = loaded[p];
    } else {
        for (u64 at = first; at < pieces; at += THREADS) y[at] = x[at];
    }
}

__device__ __forceinline__ unsigned total(uint4 piece) { return piece.x + piece.y + piece.z + piece.w; }

// y[block] = the sum of the block's words.
extern "C" __global__ void __launch_bounds__(THREADS)
    probe_sum(const uint4 *__restrict__ x, unsigned *__restrict__ y, u64 pieces, u64 sums) {
    __shared__ unsigned of_warps[THREADS / 32];
    const u64 first = (u64)blockIdx.x * (THREADS * PIECES) + threadIdx.x;
    unsigned sum = 0;
    if (first + (PIECES - 1) * THREADS < pieces) {
        uint4 loaded[PIECES];
#pragma unroll
        for (int p = 0; p < PIECES; p++) loaded[p] = x[first + p * THREADS];
#pragma unroll
        for (int p = 0; p < PIECES; p++) sum += total(loaded[p]);
    } else {
        for (u64 at = first; at < pieces; at += THREADS) sum += total(x[at]);
    }

#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0 && blockIdx.x < sums) {
        for (int warp = 1; warp < THREADS / 32; warp++) sum += of_warps[warp];
        y[blockIdx.x] = sum;
    }
}
