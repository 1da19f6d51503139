// y[pixel, filter] = sum over taps and channels of x * w + bias[filter] [, then ReLU] on Hopper: 2-D convolution with
// channels last (NHWC). Filters have FILTER_SIZE by FILTER_SIZE taps, stride STRIDE and zero padding PADDING. Channels
// and filters are padded to multiples of eight. All operands are f16 or bf16; sums are f32.
//
// Algorithm: implicit GEMM (CUTLASS, "Implicit GEMM Convolution"; Chetlur et al., "cuDNN: Efficient Primitives for Deep
// Learning", 2014): m = output pixels, n = filters, k = taps x channels. No im2col matrix is written: TMA in im2col
// mode gathers the pixels under a tap, with zeros outside the image (PTX ISA, "cp.async.bulk.tensor", im2col mode).
// Persistent and warp-specialized: a producer thread fills STAGES stages, two consumer warp groups multiply 64 pixels
// each with wgmma. While they store a tile, the producer fills the stages of the next one.
//
//     k steps:  tap 0: channels 0..63, 64..127, ... | tap 1: channels 0..63, ... | ... | last tap
//     stage:    x box [128 pixels][64 channels], shifted by the tap   ]  128-byte rows, swizzled
//               w box [BLOCK_N filters][64 channels] of the tap       ]
//     tile:     consumer warp group 1: pixels 0..63, group 2: pixels 64..127, all BLOCK_N filters
//
// Traffic: x, w and y once; from L2, x once per tap. Roofline: an SM executes 4096 FLOP per cycle, so a step with 256
// filters takes 1024 cycles, in which L2 delivers 48 KiB.
//
// Parameters:
//   KERNEL       name of the kernel
//   ELEMENT_*    dtype `element`: ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   WIDTH        any value; required by element.cuh
//   FILTER_SIZE  taps per filter side
//   STRIDE       pixels between adjacent outputs
//   PADDING      zero padding per side
//   OUT_HEIGHT   rows of an output image
//   OUT_WIDTH    columns of an output image
//   CHANNELS     stored input channels
//   RELU         1 if a ReLU follows
//   BLOCK_N      filters per tile: 64, 128 or 256
//   STAGES       pipeline stages

#ifndef KERNEL
#error "KERNEL: name of the kernel"
#endif
#ifndef FILTER_SIZE
#error "FILTER_SIZE: taps per filter side"
#endif
#ifndef STRIDE
#error "STRIDE: pixels between adjacent outputs"
#endif
#ifndef PADDING
#error "PADDING: zero padding per side"
#endif
#ifndef OUT_HEIGHT
#error "OUT_HEIGHT: rows of an output image"
#endif
#ifndef OUT_WIDTH
#error "OUT_WIDTH: columns of an output image"
#endif
#ifndef CHANNELS
#error "CHANNELS: stored input channels"
#endif
#ifndef RELU
#error "RELU: 1 if a ReLU follows"
#endif
#ifndef BLOCK_N
#error "BLOCK_N: filters per tile: 64, 128 or 256"
#endif
#ifndef STAGES
#error "STAGES: pipeline stages"
#endif

#include "activations.cuh"
#include "element.cuh"
#include "hopper.cuh"

constexpr int BLOCK_M = 128;
constexpr int BLOCK_K = 64;
constexpr int GROUP_THREADS = 128;
constexpr int CONSUMER_WARPS = 2 * GROUP_THREADS / 32;
// A row of a step has 128 bytes, swizzled.
constexpr int PIXEL_BYTES = BLOCK_M * 2 * BLOCK_K;
constexpr int FILTER_BYTES = BLOCK_N * 2 * BLOCK_K;
constexpr int STAGE_BYTES = PIXEL_BYTES + FILTER_BYTES;
constexpr int CHANNEL_STEPS = (CHANNELS + BLOCK_K - 1) / BLOCK_K;
constexpr int STEPS = FILTER_SIZE * FILTER_SIZE * CHANNEL_STEPS;
constexpr int THREAD_SUMS = BLOCK_N / 2;

// wgmma m64nNk16 with both operands in shared memory, N = BLOCK_N; overwrites d unless `accumulate` is set.
#if BLOCK_N == 256
__device__ __forceinline__ void wgmma(float (&d)[128], u64 a, u64 b, int accumulate) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %130, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32." MMA_DTYPE "." MMA_DTYPE " {" ACCUMULATORS_128
        "}, %128, %129, accumulate, 1, 1, 0, 0;\n}"
        : BIND_128("+f", d, 0)
        : "l"(a), "l"(b), "r"(accumulate));
}
#elif BLOCK_N == 128
__device__ __forceinline__ void wgmma(float (&d)[64], u64 a, u64 b, int accumulate) {
    wgmma_shared(d, a, b, accumulate);
}
#else
__device__ __forceinline__ void wgmma(float (&d)[32], u64 a, u64 b, int accumulate) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32." MMA_DTYPE "." MMA_DTYPE
        " {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
        "}, %32, %33, accumulate, 1, 1, 0, 0;\n}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
          "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
          "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
          "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "l"(a), "l"(b), "r"(accumulate));
}
#endif

// Starts the TMA load of 64 channels of 128 pixels from this pixel on, shifted by a tap.
__device__ __forceinline__ void tma_load_im2col(unsigned destination, const tensor_map &images, int channel, int x,
                                                int y, int image, int tap_x, int tap_y, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(destination),
        "l"(&images), "r"(barrier), "r"(channel), "r"(x), "r"(y), "r"(image), "h"((unsigned short)tap_x),
        "h"((unsigned short)tap_y)
        : "memory");
}

__device__ __forceinline__ float epilogue(float sum, float bias) {
    const float value = sum + bias;
    return RELU ? relu(value) : value;
}

extern "C" __global__ void __launch_bounds__(3 * GROUP_THREADS, 1)
    KERNEL(const element *, const element *, const element *__restrict__ bias, element *__restrict__ y, u64 pixels,
           u64 filters, const __grid_constant__ tensor_map x_map, const __grid_constant__ tensor_map w_map) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) u64 barriers[2 * STAGES];
    const unsigned stages = shared_address(shared);
    const unsigned full = shared_address(barriers), empty = full + 8 * STAGES;
    if (threadIdx.x == 0) init_pipeline_barriers<STAGES>(full, empty, CONSUMER_WARPS);
    publish_barriers();

    const unsigned tiles_n = ((unsigned)filters + BLOCK_N - 1) / BLOCK_N;
    const unsigned tiles = tiles_n * (((unsigned)pixels + BLOCK_M - 1) / BLOCK_M);
    const int group = threadIdx.x / GROUP_THREADS;
    if (group == 0) {
        warpgroup_reg_dealloc<40>();
        pipeline_state<STAGES> pipe = {0, 0};
        for (unsigned tile = blockIdx.x; threadIdx.x == 0 && tile < tiles; tile += gridDim.x) {
            const unsigned pixel = tile / tiles_n * BLOCK_M;
            const int image = pixel / (OUT_HEIGHT * OUT_WIDTH), in_image = pixel % (OUT_HEIGHT * OUT_WIDTH);
            const int top = in_image / OUT_WIDTH * STRIDE - PADDING, left = in_image % OUT_WIDTH * STRIDE - PADDING;
            const int filter = tile % tiles_n * BLOCK_N;
            for (int tap = 0; tap < FILTER_SIZE * FILTER_SIZE; tap++) {
                for (int chunk = 0; chunk < CHANNEL_STEPS; chunk++, pipe.advance()) {
                    const unsigned barrier = full + 8 * pipe.stage, destination = stages + pipe.stage * STAGE_BYTES;
                    if (pipe.round > 0) mbarrier_wait(empty + 8 * pipe.stage, (pipe.round - 1) % 2);
                    mbarrier_arrive_expect_tx(barrier, STAGE_BYTES);
                    tma_load_im2col(destination, x_map, chunk * BLOCK_K, left, top, image, tap % FILTER_SIZE,
                                    tap / FILTER_SIZE, barrier);
                    tma_load(destination + PIXEL_BYTES, w_map, chunk * BLOCK_K, tap, filter, barrier);
                }
            }
        }
    } else {
        warpgroup_reg_alloc<232>();
        const int lane = threadIdx.x % 32, warp = threadIdx.x % GROUP_THREADS / 32;
        const unsigned rows = (group - 1) * (BLOCK_M / 2);
        float sums[THREAD_SUMS] = {};
        pipeline_state<STAGES> pipe = {0, 0};
        for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            int previous = 0;
            for (int step = 0; step < STEPS; step++, pipe.advance()) {
                mbarrier_wait(full + 8 * pipe.stage, pipe.round % 2);
                const unsigned x_tile = stages + pipe.stage * STAGE_BYTES + rows * 2 * BLOCK_K;
                const unsigned w_tile = stages + pipe.stage * STAGE_BYTES + PIXEL_BYTES;
                wgmma_fence();
#pragma unroll
                for (int part = 0; part < BLOCK_K / 16; part++) {
                    wgmma(sums, k_major(x_tile + part * 32), k_major(w_tile + part * 32), step != 0 || part != 0);
                }
                wgmma_commit();
                // The wgmma group of the previous step is complete: its stage is free.
                wgmma_wait<1>();
                if (step != 0 && lane == 0) mbarrier_arrive(empty + 8 * previous);
                previous = pipe.stage;
            }
            wgmma_wait_accumulators<0>(sums);
            if (lane == 0) mbarrier_arrive(empty + 8 * previous);

            const u64 row = (u64)(tile / tiles_n) * BLOCK_M + rows + warp * 16 + lane / 4;
            const unsigned first_filter = tile % tiles_n * BLOCK_N;
#pragma unroll
            for (int part = 0; part < BLOCK_N; part += 32) {
                float biases[8];
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    const unsigned filter = first_filter + part + i / 2 * 8 + lane % 4 * 2 + i % 2;
                    biases[i] = filter < filters ? widen(bias[filter]) : 0.0f;
                }
                // After the transposition each lane stores eight filters; four lanes cover 64 contiguous bytes of a
                // pixel.
                const unsigned store_filter = first_filter + part + lane % 4 * 8;
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    unsigned words[4];
#pragma unroll
                    for (int chunk = 0; chunk < 4; chunk++) {
                        const float *const pair_sums = &sums[part / 2 + 4 * chunk + 2 * h];
                        words[chunk] = pack_pair(epilogue(pair_sums[0], biases[2 * chunk]),
                                                 epilogue(pair_sums[1], biases[2 * chunk + 1]));
                    }
                    transpose_4x4(words, lane);
                    if (row + 8 * h < pixels && store_filter < filters) {
                        *reinterpret_cast<uint4 *>(y + (row + 8 * h) * filters + store_filter) =
                            make_uint4(words[0], words[1], words[2], words[3]);
                    }
                }
            }
        }
    }
}
