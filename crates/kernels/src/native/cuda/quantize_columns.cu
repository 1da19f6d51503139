// Column-wise e4m3 quantization of bf16 with transposed output, reading x once: one scale per column, or one static
// scale.
//
// Contract: x[rows, columns], bf16, row-major -> quantized[columns, rows], e4m3; scales[columns], f32 (scales[1] if
// static). rows is a multiple of 16 and columns of 8. Bit-identical to quantize_rows.cu on the transpose.
//
// A cluster of CLUSTER_SIZE blocks owns a panel of LANES * 8 columns and all rows. With a static scale each block is a
// cluster, and the blocks of a panel divide the rows.
//
//   thread:   16 consecutive rows x 8 columns in registers: reads 16 bytes of each row, writes 16 bytes of each column
//             |<- lane 0: 8 columns ->|<- lane 1 ->| ... |<- lane LANES-1 ->|   row 16 i
//             |                       |            |     |                  |   ...          i = threadIdx.x / LANES
//             |                       |            |     |                  |   row 16 i + 15
//   amax:     registers -> shuffles over rows of a warp -> shared memory of the block -> distributed shared memory of
//             all blocks of the cluster (mapa and st.shared::cluster, PTX ISA)
//
// Traffic: x and the quantized values once. Roofline: memory, 3 bytes per element.
//
// Parameters:
//   KERNEL         kernel name
//   THREADS        threads per block
//   LANES          threads that read one row of the panel: 2 or 4
//   CLUSTER_SIZE   blocks per cluster; 1 with STATIC_SCALE
//   MAX_REGISTERS  registers per thread that __launch_bounds__ allows
// Optional:
//   STATIC_SCALE   float; replaces the scales of amax

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif
#ifndef THREADS
#error "THREADS: threads per block"
#endif
#ifndef LANES
#error "LANES: threads that read one row of the panel: 2 or 4"
#endif
#ifndef CLUSTER_SIZE
#error "CLUSTER_SIZE: blocks per cluster"
#endif
#ifndef MAX_REGISTERS
#error "MAX_REGISTERS: registers per thread that __launch_bounds__ allows"
#endif

#include "e4m3.cuh"

constexpr int ROWS = 16;
constexpr int COLUMNS = 8;
constexpr int PAIRS = COLUMNS / 2;
constexpr int PANEL = LANES * COLUMNS;
constexpr int ROWS_PER_BLOCK = THREADS / LANES * ROWS;

// Bypasses L1 and prefetches 128 bytes into L2, which neighboring clusters read next.
__device__ __forceinline__ uint4 load(const char *x_ptr) {
    uint4 loaded;
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(loaded.x), "=r"(loaded.y), "=r"(loaded.z), "=r"(loaded.w)
                 : "l"(x_ptr));
    return loaded;
}

__device__ __forceinline__ void cluster_arrive_relaxed() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// Stores to the counterpart of a shared variable in another block of the cluster.
__device__ __forceinline__ void store_remote(unsigned *local, unsigned block, unsigned value) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(local);
    asm volatile("{\n"
                 ".reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "st.shared::cluster.u32 [there], %2;\n"
                 "}" ::"r"(address),
                 "r"(block), "r"(value)
                 : "memory");
}

extern "C" __global__ void
#if CLUSTER_SIZE > 1
__cluster_dims__(CLUSTER_SIZE, 1, 1)
#endif
    __launch_bounds__(THREADS, 65536 / (THREADS * MAX_REGISTERS))
        KERNEL(const bf16 *__restrict__ x, unsigned char *__restrict__ quantized, float *__restrict__ scales, u64 rows,
               u64 columns) {
#if CLUSTER_SIZE > 1
    // Remote stores require that the other blocks have started. Waiting is delayed until after the loads.
    cluster_arrive_relaxed();
#endif
#ifdef STATIC_SCALE
    const unsigned row_parts = ((unsigned)rows + ROWS_PER_BLOCK - 1) / ROWS_PER_BLOCK;
#else
    const unsigned row_parts = CLUSTER_SIZE;
#endif
    const unsigned row_part = blockIdx.x % row_parts;
    const unsigned lane_in_row = threadIdx.x % LANES;
    // 32-bit arithmetic: sizes are below 2^31.
    const unsigned column = blockIdx.x / row_parts * PANEL + lane_in_row * COLUMNS;
    const unsigned row = row_part * ROWS_PER_BLOCK + threadIdx.x / LANES * ROWS;
    const bool is_inside = row < rows && column < columns;

    uint4 values[ROWS];
    const char *x_ptr = reinterpret_cast<const char *>(x + (u64)row * columns + column);
    const unsigned row_bytes = 2 * (unsigned)columns;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        values[r] = is_inside ? load(x_ptr + (u64)row_bytes * r) : make_uint4(0, 0, 0, 0);
    }

#ifdef STATIC_SCALE
    const float inverse = 1.0f / STATIC_SCALE;
    if (blockIdx.x == 0 && threadIdx.x == 0) scales[0] = STATIC_SCALE;
#else
    constexpr int WARPS = THREADS / 32;
    constexpr int PANEL_PAIRS = LANES * PAIRS;
    static_assert(PANEL_PAIRS * CLUSTER_SIZE <= THREADS, "one thread per amax pair and destination block");
    __shared__ unsigned warp_amax[WARPS][PANEL_PAIRS];
    __shared__ unsigned cluster_amax[CLUSTER_SIZE][PANEL_PAIRS];
    // Volatile: each is loaded where it is used, to limit register pressure.
    __shared__ volatile float inverses[PANEL];

    unsigned amax[PAIRS] = {};
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        amax[0] = max_magnitude(amax[0], values[r].x);
        amax[1] = max_magnitude(amax[1], values[r].y);
        amax[2] = max_magnitude(amax[2], values[r].z);
        amax[3] = max_magnitude(amax[3], values[r].w);
    }
#pragma unroll
    for (int p = 0; p < PAIRS; p++) {
#pragma unroll
        for (int distance = LANES; distance < 32; distance *= 2) {
            amax[p] = __vmaxu2(amax[p], __shfl_xor_sync(0xffffffffu, amax[p], distance));
        }
        if (threadIdx.x % 32 < LANES) warp_amax[threadIdx.x / 32][lane_in_row * PAIRS + p] = amax[p];
    }
    __syncthreads();

#if CLUSTER_SIZE > 1
    cluster_wait();
#endif
    if (threadIdx.x < PANEL_PAIRS * CLUSTER_SIZE) {
        const unsigned pair = threadIdx.x % PANEL_PAIRS;
        unsigned block_amax = warp_amax[0][pair];
#pragma unroll
        for (int warp = 1; warp < WARPS; warp++) block_amax = __vmaxu2(block_amax, warp_amax[warp][pair]);
#if CLUSTER_SIZE > 1
        store_remote(&cluster_amax[row_part][pair], threadIdx.x / PANEL_PAIRS, block_amax);
#else
        cluster_amax[0][pair] = block_amax;
#endif
    }
#if CLUSTER_SIZE > 1
    __syncwarp();
    cluster_arrive();
    cluster_wait();
#else
    __syncthreads();
#endif

    if (threadIdx.x < PANEL) {
        unsigned pair_amax = cluster_amax[0][threadIdx.x / 2];
#pragma unroll
        for (int block = 1; block < CLUSTER_SIZE; block++)
            pair_amax = __vmaxu2(pair_amax, cluster_amax[block][threadIdx.x / 2]);
        const float scale = scale_from_amax(threadIdx.x % 2 == 0 ? pair_amax & 0xffffu : pair_amax >> 16);
        inverses[threadIdx.x] = reciprocal(scale);
        const unsigned scale_column = column - lane_in_row * COLUMNS + threadIdx.x;
        if (row_part == 0 && scale_column < columns) scales[scale_column] = scale;
    }
    __syncthreads();
#endif

    if (!is_inside) return;
    unsigned char *out = quantized + (u64)column * rows + row;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
#ifndef STATIC_SCALE
        const float inverse = inverses[lane_in_row * COLUMNS + c];
#endif
        unsigned words[4];
#pragma unroll
        for (int r = 0; r < ROWS; r += 4) {
            float quotients[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const unsigned pairs[PAIRS] = {values[r + i].x, values[r + i].y, values[r + i].z, values[r + i].w};
                quotients[i] = (c % 2 == 0 ? bf16x2_low(pairs[c / 2]) : bf16x2_high(pairs[c / 2])) * inverse;
            }
            words[r / 4] = to_e4m3(quotients[0], quotients[1], quotients[2], quotients[3]);
        }
        __stcs(reinterpret_cast<uint4 *>(out), make_uint4(words[0], words[1], words[2], words[3]));
        out += (unsigned)rows;
    }
}
