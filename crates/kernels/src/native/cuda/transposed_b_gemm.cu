// y[m, n] = x[m, K] w[K, n] for e4m3 operands on Hopper, with w row-major along n ("TN" wgmma needs w along K, and
// 8-bit wgmma has no transpose flag). INPUTS 4: sums are multiplied by row_scale[m] * column_scale[n]; INPUTS 5: then
// addend[m, n] is added, with the rounding of scale_epilogue.cu. K and n are multiples of 16. Scales are f32; y and the
// addend have dtype `element`.
//
// Algorithm: persistent, warp-specialized GEMM with clusters and TMA multicast, as int8_fp8_gemm.cu, with swapped
// operands: A = w^T comes from registers, B = x from shared memory. Each warp transposes its w tile on the way into
// registers: ldmatrix.trans transposes pairs of bytes (PTX ISA, "ldmatrix"), and byte permutes (prmt) complete the
// transposition. Each step of 128 is promoted to f32 accumulators in registers, so sums do not lose the low bits of
// fast accumulation. The operand registers are double-buffered: the w fragments of the next step are loaded while wgmma
// runs.
//
//     block tile 128 x 128; consumer warp group 1: columns 0..63, group 2: columns 64..127; A: 64 columns of w
//
//     w tile (k rows of 128 bytes)                registers of lane 4 g + t: 16 columns of a warp, 32 rows
//     row k    | .. c c' .. |   ldmatrix.trans    word 0: column c,  rows 4t..4t+3   word 2: column c,  rows 16+4t..
//     row k+1  | .. c c' .. |   ------------->    word 1: column c', rows 4t..4t+3   word 3: column c', rows 16+4t..
//     row k+2  | .. c c' .. |   + prmt            c = 2 g, c' = 2 g + 1
//     row k+3  | .. c c' .. |
//
//     cluster: two blocks along n; each loads half of the rows of x and multicasts it to both
//
// Traffic: x, w, addend and y once, if x fits into L2. Roofline: a step takes 2 * 128 * 128 * 128 / 8192 = 512 cycles
// of tensor cores, but 48 KiB of loads per pair of SMs, whose bandwidth is the bound (docs/design/gemm_kernels.md).
//
// Parameters:
//   KERNEL     name of the kernel
//   ELEMENT_*  dtype `element`: ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   WIDTH      any value; required by element.cuh
//   K          reduction size
//   STAGES     pipeline stages
//   INPUTS     2 for x and w, 4 with row and column scales, 5 also with an addend

#ifndef KERNEL
#error "KERNEL: name of the kernel"
#endif
#ifndef K
#error "K: reduction size"
#endif
#ifndef STAGES
#error "STAGES: pipeline stages"
#endif
#ifndef INPUTS
#error "INPUTS: 2 for x and w, 4 with row and column scales, 5 also with an addend"
#endif

#include "element.cuh"
#include "hopper.cuh"

constexpr int BLOCK_M = 128;
constexpr int BLOCK_N = 128;
constexpr int BLOCK_K = 128;
constexpr int GROUP_THREADS = 128;
constexpr int CONSUMER_WARPS = 2 * GROUP_THREADS / 32;
constexpr int CLUSTER_SIZE = 2;
constexpr int X_BYTES = BLOCK_M * BLOCK_K;
constexpr int STAGE_BYTES = X_BYTES + BLOCK_N * BLOCK_K;
constexpr int STEPS = (K + BLOCK_K - 1) / BLOCK_K;

// wgmma m64n128k32: 64 columns of w by 128 rows of x; overwrites d unless `accumulate` is set.
__device__ __forceinline__ void wgmma(float (&d)[BLOCK_M / 2], const unsigned *a, u64 b, int accumulate) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {" ACCUMULATORS_64
        "}, {%64, %65, %66, %67}, %68, accumulate, 1, 1;\n}"
        : BIND_64("+f", d, 0)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

// Address of 16-byte vector `vector` of row `row` of the w tile, with 128-byte swizzle.
__device__ __forceinline__ unsigned vector_address(unsigned tile, unsigned row, unsigned vector) {
    return tile + row * BLOCK_K + (vector ^ row % 8) * 16;
}

// Loads 16 columns by 32 rows of w, transposed: rows 4 t to 4 t + 3 and 16 + 4 t to 16 + 4 t + 3 of two adjacent
// columns per lane, t = lane % 4. The assignment of rows to matrices avoids bank conflicts; lanes with t >= 2 receive
// the two row pairs in reverse order.
__device__ __forceinline__ void load_transposed(unsigned tile, unsigned vector, int lane, unsigned *words) {
    // The lane addresses row `lane % 8` of matrix `lane / 8`: first or second row pair of four rows, in the lower or
    // upper 16 rows.
    const unsigned row_pair = lane % 8 / 2, second = (lane / 8 % 2) ^ (row_pair >= 2);
    const unsigned source = vector_address(tile, lane / 16 * 16 + row_pair * 4 + second * 2 + lane % 2, vector);
    unsigned matrices[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                 : "r"(source));
    const unsigned even = lane % 4 < 2 ? 0x6420 : 0x2064, odd = lane % 4 < 2 ? 0x7531 : 0x3175;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        words[2 * half] = __byte_perm(matrices[2 * half], matrices[2 * half + 1], even);
        words[2 * half + 1] = __byte_perm(matrices[2 * half], matrices[2 * half + 1], odd);
    }
}

struct __align__(2 * sizeof(element)) element_pair {
    element val[2];
};

extern "C" __global__ void __cluster_dims__(CLUSTER_SIZE, 1, 1) __launch_bounds__(3 * GROUP_THREADS, 1)
    KERNEL(const unsigned char *, const unsigned char *,
#if INPUTS >= 4
           const float *__restrict__ row_scales, const float *__restrict__ column_scales,
#endif
#if INPUTS >= 5
           const element *__restrict__ addend,
#endif
           element *__restrict__ y, u64 m, u64 n, const __grid_constant__ tensor_map x_map,
           const __grid_constant__ tensor_map w_map) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) u64 barriers[2 * STAGES];
    const unsigned stages = shared_address(shared);
    const unsigned full = shared_address(barriers), empty = full + 8 * STAGES;
    // Arrivals at `empty`: each consumer warp of this block, and one warp per consumer group of the other block.
    if (threadIdx.x == 0) init_pipeline_barriers<STAGES>(full, empty, CONSUMER_WARPS + 2);
    publish_barriers();
    cluster_sync();

    // Tiles advance along m first, so that each tile of w is read from memory once.
    const unsigned rank = blockIdx.x % CLUSTER_SIZE;
    const unsigned tiles_m = ((unsigned)m + BLOCK_M - 1) / BLOCK_M,
                   tiles_n = ((unsigned)n + CLUSTER_SIZE * BLOCK_N - 1) / (CLUSTER_SIZE * BLOCK_N);
    const unsigned tile_pairs = tiles_m * tiles_n, first_tile_pair = blockIdx.x / CLUSTER_SIZE,
                   stride = gridDim.x / CLUSTER_SIZE;
    const int group = threadIdx.x / GROUP_THREADS;
    if (group == 0) {
        warpgroup_reg_dealloc<40>();
        pipeline_state<STAGES> pipe = {0, 0};
        for (unsigned tile_pair = first_tile_pair; threadIdx.x == 0 && tile_pair < tile_pairs; tile_pair += stride) {
            const int row = tile_pair % tiles_m * BLOCK_M,
                      column = (tile_pair / tiles_m * CLUSTER_SIZE + rank) * BLOCK_N;
            for (int step = 0; step < STEPS; step++, pipe.advance()) {
                const unsigned barrier = full + 8 * pipe.stage, destination = stages + pipe.stage * STAGE_BYTES;
                if (pipe.round > 0) mbarrier_wait(empty + 8 * pipe.stage, (pipe.round - 1) % 2);
                mbarrier_arrive_expect_tx(barrier, STAGE_BYTES);
                // TMA boxes count 16-bit elements, i.e. pairs of 8-bit values.
                tma_load_multicast(destination + rank * (X_BYTES / CLUSTER_SIZE), x_map, step * (BLOCK_K / 2),
                                   row + rank * (BLOCK_M / CLUSTER_SIZE), barrier, (1 << CLUSTER_SIZE) - 1);
                tma_load(destination + X_BYTES, w_map, column / 2, step * BLOCK_K, 0, barrier);
            }
        }
    } else {
        warpgroup_reg_alloc<232>();
        const int lane = threadIdx.x % 32, warp = threadIdx.x % GROUP_THREADS / 32;
        const unsigned columns = (group - 1) * (BLOCK_N / 2) + warp * 16;
        const auto release = [&](int stage) {
            if (lane == 0) mbarrier_arrive(empty + 8 * stage);
            // The wgmma of a warp group is complete for all of its four warps.
            if (lane == 0 && warp == 0) mbarrier_arrive_remote(empty + 8 * stage, rank ^ 1);
        };
        pipeline_state<STAGES> pipe = {0, 0};
        for (unsigned tile_pair = first_tile_pair; tile_pair < tile_pairs; tile_pair += stride) {
            float sums[BLOCK_M / 2] = {}, step_sums[BLOCK_M / 2];
            unsigned even[BLOCK_K / 8], odd[BLOCK_K / 8];
            const auto load_fragments = [&](unsigned (&values)[BLOCK_K / 8]) {
                mbarrier_wait(full + 8 * pipe.stage, pipe.round % 2);
                const unsigned w_tile = stages + pipe.stage * STAGE_BYTES + X_BYTES;
#pragma unroll
                for (int part = 0; part < BLOCK_K / 32; part++) {
                    load_transposed(w_tile + part * 32 * BLOCK_N, columns / 16, lane, &values[4 * part]);
                }
                // All fragments are complete before the first wgmma; otherwise the instructions would be serialized.
#pragma unroll
                for (int i = 0; i < BLOCK_K / 8; i++) asm volatile("" : "+r"(values[i]));
            };
            // Multiplies one step, and meanwhile loads the fragments of the next one, if any.
            const auto wgmma_step = [&](const unsigned (&values)[BLOCK_K / 8], unsigned (&next_values)[BLOCK_K / 8],
                                        bool has_next) {
                const int stage = pipe.stage;
                wgmma_fence();
#pragma unroll
                for (int part = 0; part < BLOCK_K / 32; part++) {
                    wgmma(step_sums, &values[4 * part], k_major(stages + stage * STAGE_BYTES + part * 32), part != 0);
                }
                wgmma_commit();
                pipe.advance();
                if (has_next) load_fragments(next_values);
                wgmma_wait_accumulators<0>(step_sums);
                release(stage);
#pragma unroll
                for (int i = 0; i < BLOCK_M / 2; i++) sums[i] += step_sums[i];
            };
            load_fragments(even);
            for (int step = 0; step + 1 < STEPS; step += 2) {
                wgmma_step(even, odd, true);
                wgmma_step(odd, even, step + 2 < STEPS);
            }
            if constexpr (STEPS % 2 == 1) wgmma_step(even, odd, false);

            // Each lane stores two adjacent columns per row.
            const unsigned column = (tile_pair / tiles_m * CLUSTER_SIZE + rank) * BLOCK_N + columns + lane / 4 * 2;
            if (column >= n) continue;
#if INPUTS >= 4
            const float column_factors[2] = {column_scales[column], column_scales[column + 1]};
#endif
#pragma unroll
            for (int i = 0; i < BLOCK_M / 4; i++) {
                const u64 row = tile_pair % tiles_m * BLOCK_M + i / 2 * 8 + lane % 4 * 2 + i % 2;
                if (row >= m) continue;
                float values[2] = {sums[i / 2 * 4 + i % 2], sums[i / 2 * 4 + 2 + i % 2]};
                element_pair *const destination = reinterpret_cast<element_pair *>(y + row * n + column);
#if INPUTS >= 5
                const element_pair addends = *reinterpret_cast<const element_pair *>(addend + row * n + column);
#endif
                element_pair result;
#pragma unroll
                for (int side = 0; side < 2; side++) {
#if INPUTS >= 4
                    values[side] = __fmul_rn(values[side], __fmul_rn(row_scales[row], column_factors[side]));
#endif
#if INPUTS >= 5
                    values[side] = __fadd_rn(widen(addends.val[side]), values[side]);
#endif
                    result.val[side] = narrow(values[side]);
                }
                *destination = result;
            }
        }
    }
    // Shared memory must remain valid until the other block has finished its multicast and remote arrivals.
    cluster_sync();
}
