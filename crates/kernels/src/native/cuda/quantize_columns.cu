// e4m3 codes of the transpose of bf16, and one scale for each column; with SCALE defined, codes by that scale, which is
// the only one. Rows come in sixteens and columns in eights.
//
// A cluster of BLOCKS blocks takes LANES * 8 columns and all rows; without scales to find, a block is a cluster and takes
// some of the rows. A thread keeps 8 columns of 16 rows that follow each other in
// registers: it reads 16 bytes of each of its rows, LANES neighbors of a row, and writes 16 codes of each of its columns.
// The largest magnitudes go through shared memory, of the own block first and then of all blocks of the cluster.
// Traffic: x and the codes once. Roofline: three bytes a number over the memory's rate.
#include "e4m3.cuh"

constexpr int ROWS = 16;
constexpr int COLUMNS = 8;
constexpr int PAIRS = COLUMNS / 2;
constexpr int PANEL = LANES * COLUMNS;
constexpr int ROWS_PER_BLOCK = THREADS / LANES * ROWS;

// What the caches fetch with it is what neighboring clusters ask for next.
__device__ __forceinline__ uint4 load(const char *from) {
    uint4 loaded;
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(loaded.x), "=r"(loaded.y), "=r"(loaded.z), "=r"(loaded.w)
                 : "l"(from));
    return loaded;
}

__device__ __forceinline__ void cluster_begun() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// Stores to the same variable of another block of the cluster.
__device__ __forceinline__ void store_in_block(unsigned *own, unsigned block, unsigned value) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(own);
    asm volatile("{\n"
                 ".reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "st.shared::cluster.u32 [there], %2;\n"
                 "}" ::"r"(address), "r"(block), "r"(value)
                 : "memory");
}

extern "C" __global__ void
#if BLOCKS > 1
__cluster_dims__(BLOCKS, 1, 1)
#endif
__launch_bounds__(THREADS, 65536 / (THREADS * REGISTERS))
    KERNEL(const bf16 *__restrict__ x, unsigned char *__restrict__ codes, float *__restrict__ scales, u64 rows,
           u64 columns) {
#if BLOCKS > 1
    // Before anything is stored in another block it must have begun; the loads need not wait for that.
    cluster_begun();
#endif
#ifdef SCALE
    const unsigned parts = ((unsigned)rows + ROWS_PER_BLOCK - 1) / ROWS_PER_BLOCK;
#else
    const unsigned parts = BLOCKS;
#endif
    const unsigned part = blockIdx.x % parts;
    const unsigned lane_of_row = threadIdx.x % LANES;
    // Sizes are below 2^31.
    const unsigned column = blockIdx.x / parts * PANEL + lane_of_row * COLUMNS;
    const unsigned row = part * ROWS_PER_BLOCK + threadIdx.x / LANES * ROWS;
    const bool owns = row < rows && column < columns;

    uint4 values[ROWS];
    const char *from = reinterpret_cast<const char *>(x + (u64)row * columns + column);
    const unsigned bytes_to_next_row = 2 * (unsigned)columns;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        values[r] = owns ? load(from + (u64)bytes_to_next_row * r) : make_uint4(0, 0, 0, 0);
    }

#ifdef SCALE
    const float inverse = 1.0f / SCALE;
    if (blockIdx.x == 0 && threadIdx.x == 0) scales[0] = SCALE;
#else
    constexpr int WARPS = THREADS / 32;
    constexpr int PANEL_PAIRS = LANES * PAIRS;
    static_assert(PANEL_PAIRS * BLOCKS <= THREADS, "a thread for each result that goes to another block");
    __shared__ unsigned of_warps[WARPS][PANEL_PAIRS];
    __shared__ unsigned of_blocks[BLOCKS][PANEL_PAIRS];
    // Volatile: loaded one at a time, where registers become free.
    __shared__ volatile float inverses[PANEL];

    unsigned largest[PAIRS] = {};
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        largest[0] = larger(largest[0], values[r].x);
        largest[1] = larger(largest[1], values[r].y);
        largest[2] = larger(largest[2], values[r].z);
        largest[3] = larger(largest[3], values[r].w);
    }
#pragma unroll
    for (int p = 0; p < PAIRS; p++) {
#pragma unroll
        for (int distance = LANES; distance < 32; distance *= 2) {
            largest[p] = __vmaxu2(largest[p], __shfl_xor_sync(0xffffffffu, largest[p], distance));
        }
        if (threadIdx.x % 32 < LANES) of_warps[threadIdx.x / 32][lane_of_row * PAIRS + p] = largest[p];
    }
    __syncthreads();

#if BLOCKS > 1
    cluster_wait();
#endif
    if (threadIdx.x < PANEL_PAIRS * BLOCKS) {
        const unsigned pair = threadIdx.x % PANEL_PAIRS;
        unsigned of_block = of_warps[0][pair];
#pragma unroll
        for (int warp = 1; warp < WARPS; warp++) of_block = __vmaxu2(of_block, of_warps[warp][pair]);
#if BLOCKS > 1
        store_in_block(&of_blocks[part][pair], threadIdx.x / PANEL_PAIRS, of_block);
#else
        of_blocks[0][pair] = of_block;
#endif
    }
#if BLOCKS > 1
    __syncwarp();
    cluster_arrive();
    cluster_wait();
#else
    __syncthreads();
#endif

    if (threadIdx.x < PANEL) {
        unsigned of_pair = of_blocks[0][threadIdx.x / 2];
#pragma unroll
        for (int block = 1; block < BLOCKS; block++) of_pair = __vmaxu2(of_pair, of_blocks[block][threadIdx.x / 2]);
        const float scale = scale_of(threadIdx.x % 2 == 0 ? of_pair & 0xffffu : of_pair >> 16);
        inverses[threadIdx.x] = inverse_of(scale);
        const unsigned at = column - lane_of_row * COLUMNS + threadIdx.x;
        if (part == 0 && at < columns) scales[at] = scale;
    }
    __syncthreads();
#endif

    if (!owns) return;
    unsigned char *to = codes + (u64)column * rows + row;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
#ifndef SCALE
        const float inverse = inverses[lane_of_row * COLUMNS + c];
#endif
        unsigned of_column[4];
#pragma unroll
        for (int r = 0; r < ROWS; r += 4) {
            float quotients[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const unsigned pairs[PAIRS] = {values[r + i].x, values[r + i].y, values[r + i].z, values[r + i].w};
                quotients[i] = (c % 2 == 0 ? lower(pairs[c / 2]) : upper(pairs[c / 2])) * inverse;
            }
            of_column[r / 4] = codes_of(quotients[0], quotients[1], quotients[2], quotients[3]);
        }
        __stcs(reinterpret_cast<uint4 *>(to), make_uint4(of_column[0], of_column[1], of_column[2], of_column[3]));
        to += (unsigned)rows;
    }
}
