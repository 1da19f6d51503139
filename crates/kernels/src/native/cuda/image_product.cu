// Convolution of images on Hopper, channels last: y[pixel, filter] = the sum over the taps of a filter, and the channels, of what
// lies under them, plus a bias; of that the ReLU where RELU is 1. Filters of SIDE by SIDE taps, every STRIDE pixels, on
// images with PADDING zeros around them. Channels and filters are stored in eights.
//
// It is a product of matrices: a row for each pixel of y, a column for each filter, and a step for 64 CHANNELS of a tap.
// A block takes a tile of 128 pixels by COLUMNS filters, and goes on to the one that a grid is further. A thread of its
// first warp group starts the copies of each step into a ring of STAGES: the copy engine gathers the pixels under a tap, zeros
// beyond the edges. The other two groups multiply 64 pixels each; while they write, the next tile's steps are brought.
// Traffic: x, w and y once; from L2 x once for each tap. Roofline: an SM makes 4096 operations a cycle, so that a step of
// 256 filters is 1024 cycles, in which L2 brings 48 KiB. Blocks that share the filters of a step were no faster.
#include "activations.cuh"
#include "element.cuh"
#include "hopper.cuh"

constexpr int ROWS = 128;
constexpr int STEP = 64;
constexpr int GROUP = 128;
constexpr int WARPS = 2 * GROUP / 32;
// A row of a step is 128 bytes, swizzled.
constexpr int PIXEL_BYTES = ROWS * 2 * STEP;
constexpr int FILTER_BYTES = COLUMNS * 2 * STEP;
constexpr int STAGE_BYTES = PIXEL_BYTES + FILTER_BYTES;
constexpr int CHUNKS = (CHANNELS + STEP - 1) / STEP;
constexpr int STEPS = SIDE * SIDE * CHUNKS;
constexpr int SUMS = COLUMNS / 2;

// 64 rows of sums of 16 products each, from two operands in shared memory; on top of what is there if `more`.
#if COLUMNS == 256
__device__ __forceinline__ void multiply(float (&d)[128], u64 a, u64 b, int more) {
    asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32." NUMBERS "." NUMBERS " {" REGISTERS_128
                 "}, %128, %129, more, 1, 1, 0, 0;\n}"
                 : BOUND_128("+f", d)
                 : "l"(a), "l"(b), "r"(more));
}
#elif COLUMNS == 128
__device__ __forceinline__ void multiply(float (&d)[64], u64 a, u64 b, int more) { multiply_shared(d, a, b, more); }
#else
__device__ __forceinline__ void multiply(float (&d)[32], u64 a, u64 b, int more) {
    asm volatile(
        "{\n.reg .pred more;\nsetp.ne.b32 more, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32." NUMBERS "." NUMBERS " {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
        "}, %32, %33, more, 1, 1, 0, 0;\n}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "l"(a), "l"(b), "r"(more));
}
#endif

// Starts the copy of 64 channels of 128 pixels from this one on, moved by a tap.
__device__ __forceinline__ void bring_pixels(unsigned to, const tensor_map &images, int channel, int x, int y, int image,
                                             int tap_x, int tap_y, unsigned barrier) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(to), "l"(&images), "r"(barrier), "r"(channel), "r"(x),
                 "r"(y), "r"(image), "h"((unsigned short)tap_x), "h"((unsigned short)tap_y)
                 : "memory");
}

__device__ __forceinline__ float finish(float sum, float bias) {
    const float value = sum + bias;
    return RELU ? relu(value) : value;
}

extern "C" __global__ void __launch_bounds__(3 * GROUP, 1)
KERNEL(const element *, const element *, const element *__restrict__ bias, element *__restrict__ y, u64 pixels, u64 filters,
       const __grid_constant__ tensor_map boxes_of_x, const __grid_constant__ tensor_map boxes_of_w) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) u64 barriers[2 * STAGES];
    const unsigned ring = shared_address(shared);
    const unsigned ready = shared_address(barriers), free = ready + 8 * STAGES;
    if (threadIdx.x == 0) initialize_ring<STAGES>(ready, free, WARPS);
    show_barriers();

    const unsigned across = ((unsigned)filters + COLUMNS - 1) / COLUMNS;
    const unsigned all = across * (((unsigned)pixels + ROWS - 1) / ROWS);
    const int group = threadIdx.x / GROUP;
    if (group == 0) {
        keep_registers<40>();
        place<STAGES> at = {0, 0};
        for (unsigned tile = blockIdx.x; threadIdx.x == 0 && tile < all; tile += gridDim.x) {
            const unsigned pixel = tile / across * ROWS;
            const int image = pixel / (OUT_HEIGHT * OUT_WIDTH), in_image = pixel % (OUT_HEIGHT * OUT_WIDTH);
            const int top = in_image / OUT_WIDTH * STRIDE - PADDING, left = in_image % OUT_WIDTH * STRIDE - PADDING;
            const int filter = tile % across * COLUMNS;
            for (int tap = 0; tap < SIDE * SIDE; tap++) {
                for (int chunk = 0; chunk < CHUNKS; chunk++, at.next()) {
                    const unsigned barrier = ready + 8 * at.stage, to = ring + at.stage * STAGE_BYTES;
                    if (at.round > 0) wait(free + 8 * at.stage, (at.round - 1) % 2);
                    expect(barrier, STAGE_BYTES);
                    bring_pixels(to, boxes_of_x, chunk * STEP, left, top, image, tap % SIDE, tap / SIDE, barrier);
                    bring_box(to + PIXEL_BYTES, boxes_of_w, chunk * STEP, tap, filter, barrier);
                }
            }
        }
    } else {
        more_registers<232>();
        const int lane = threadIdx.x % 32, warp = threadIdx.x % GROUP / 32;
        const unsigned rows = (group - 1) * (ROWS / 2);
        float sums[SUMS] = {};
        place<STAGES> at = {0, 0};
        for (unsigned tile = blockIdx.x; tile < all; tile += gridDim.x) {
            int last = 0;
            for (int step = 0; step < STEPS; step++, at.next()) {
                wait(ready + 8 * at.stage, at.round % 2);
                const unsigned of_x = ring + at.stage * STAGE_BYTES + rows * 2 * STEP;
                const unsigned of_w = ring + at.stage * STAGE_BYTES + PIXEL_BYTES;
                fence_products();
#pragma unroll
                for (int part = 0; part < STEP / 16; part++) {
                    multiply(sums, along_rows(of_x + part * 32), along_rows(of_w + part * 32), step != 0 || part != 0);
                }
                commit_products();
                // Until those of the step before are done: its stage is free then.
                leave_products<1>();
                if (step != 0 && lane == 0) arrive(free + 8 * last);
                last = at.stage;
            }
            finish_products<0>(sums);
            if (lane == 0) arrive(free + 8 * last);

            const u64 row = (u64)(tile / across) * ROWS + rows + warp * 16 + lane / 4;
            const unsigned column = tile % across * COLUMNS;
#pragma unroll
            for (int part = 0; part < COLUMNS; part += 32) {
                float biases[8];
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    const unsigned from = column + part + i / 2 * 8 + lane % 4 * 2 + i % 2;
                    biases[i] = from < filters ? widen(bias[from]) : 0.0f;
                }
                // Eight filters of a pixel for each lane, 64 bytes of a row from four of them.
                const unsigned to = column + part + lane % 4 * 8;
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    unsigned words[4];
#pragma unroll
                    for (int chunk = 0; chunk < 4; chunk++) {
                        const float *const two = &sums[part / 2 + 4 * chunk + 2 * half];
                        words[chunk] = narrow_two(finish(two[0], biases[2 * chunk]), finish(two[1], biases[2 * chunk + 1]));
                    }
                    turn(words, lane);
                    if (row + 8 * half < pixels && to < filters) {
                        *reinterpret_cast<uint4 *>(y + (row + 8 * half) * filters + to) =
                            make_uint4(words[0], words[1], words[2], words[3]);
                    }
                }
            }
        }
    }
}
