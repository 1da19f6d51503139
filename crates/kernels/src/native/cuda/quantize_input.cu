// Dynamic quantization of layer inputs in one pass: x -> [prologue] -> amax -> scale -> quantized[rows, STRIDE],
// scales[rows]. With PER_TENSOR the tensor-wide scale is an input, computed by tensor_amax.cu, instead.
//
// Contract: x[rows, columns], row-major, element dtype; quantized: one byte per element, or the element dtype with
// STORE_ELEMENTS; rows padded to STRIDE bytes (padding is not written); scales: f32. Bit-identical to torchao (dynamic_quant.cuh); prologue and row in registers:
// input_row.cuh.
//
// Two schedules:
//   default   one block per ROWS rows, blockDim = (THREADS, ROWS)
//   STAGES    BLOCKS_PER_SM persistent blocks per SM; ROWS rows per iteration from a ring of STAGES stages in
//             shared memory, filled by bulk copies (cp.async.bulk, PTX ISA) with one mbarrier per stage:
//               stage s: | bulk copy of rows i | wait | registers | barrier | bulk copy of rows i + STAGES | ...
//             so that memory stays busy while an expensive prologue is computed.
//
// Traffic: rows * columns elements read, as many bytes written, 4 bytes per row. Roofline: memory; 4096 x 4096 bf16
// elements are 50 MB, 12 us at 4.3 TB/s. Results of the prologue are never written.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH               elements per vector access (element.cuh)
//   KERNEL              kernel name
//   THREADS             threads per row: whole warps (row_statistics.cuh)
//   ROWS                rows per block (row_statistics.cuh)
//   EPSILON             float that is added to the variance (row_statistics.cuh)
//   VECTORS_PER_THREAD  vectors of a row per thread in registers; 0 if the row is too long (input_row.cuh)
//   STRIDE              bytes from one row of quantized values to the next
//   REVERSE_ROWS        true to process the last rows first, which are most likely cached
//   QUANT_INT8 | QUANT_E4M3  quantized dtype (dynamic_quant.cuh)
// Optional:
//   PER_TENSOR          use a tensor-wide scale
//   STAGES              pipeline stages of the persistent schedule
//   BLOCKS_PER_SM       resident blocks per SM; required with STAGES
//   LAYER_NORM          prologue: layer normalization without weights
//   RMS_NORM            prologue: RMS normalization without weights
//   PROLOGUE            prologue: activation function (activations.cuh)
//   MONOTONIC_FROM      float; from here on PROLOGUE increases by more than its error between adjacent 16-bit floats,
//                       and no smaller x has a result of larger magnitude
//   FULL_TILES          true if every thread of every block owns all its vectors; default false
//   QUANT_IN_F32, QUANT_FULL_RANGE  see dynamic_quant.cuh
//   STORE_ELEMENTS      store quantized values in the element dtype, as operands of a GEMM in that dtype

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif
#ifndef STRIDE
#error "STRIDE: bytes from one row of quantized values to the next"
#endif
#ifndef REVERSE_ROWS
#error "REVERSE_ROWS: true to process the last rows first, which are most likely cached"
#endif

#ifndef STAGES
#define BLOCKS_PER_SM 1
#define STREAMING_LOADS
#endif
#include "input_row.cuh"
#ifdef STAGES
#include "hopper.cuh"
#endif

#ifndef PER_TENSOR
// Maximum over all threads of a row, returned to each of them. Every thread of the block must call it.
__device__ __forceinline__ unsigned row_max(unsigned amax) {
    __shared__ unsigned warp_amax[ROWS][WARPS];
    amax = __reduce_max_sync(0xffffffffu, amax);
    if (WARPS == 1) return amax;
    const int lane = threadIdx.x % 32;
    if (lane == 0) warp_amax[threadIdx.y][threadIdx.x / 32] = amax;
    __syncthreads();
    return __reduce_max_sync(0xffffffffu, lane < WARPS ? warp_amax[threadIdx.y][lane] : 0u);
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS * ROWS, BLOCKS_PER_SM)
    KERNEL(const element *__restrict__ x,
#ifdef PER_TENSOR
           const float *__restrict__ tensor_scale, unsigned char *__restrict__ quantized,
#else
           unsigned char *__restrict__ quantized, float *__restrict__ scales,
#endif
           u64 rows, u64 columns) {
    const u64 iterations = (rows + ROWS - 1) / ROWS;
    // First row of an iteration. With REVERSE_ROWS the rows that were written last, and may still be in L2, come first.
    const auto first_row = [&](u64 iteration) {
        return (REVERSE_ROWS ? iterations - 1 - iteration : iteration) * ROWS;
    };
    const auto quantize_row = [&](input_row &input, u64 row) {
        input.transform((float)columns);
#ifdef PER_TENSOR
        const float scale = *tensor_scale;
#else
        const float scale = scale_from_amax(row_max(input.amax()));
        if (row < rows && threadIdx.x == 0) scales[row] = scale;
#endif
        input.store(quantized + row * STRIDE, quantizer(scale));
    };
#ifdef STAGES
    extern __shared__ __align__(128) unsigned char shared[];
    __shared__ __align__(8) u64 barriers[STAGES];
    const bool is_leader = threadIdx.x == 0 && threadIdx.y == 0;
    const unsigned full = shared_address(barriers), row_bytes = (unsigned)columns * sizeof(element);
    const auto load_stage = [&](u64 iteration, int stage) {
        if (iteration >= iterations) return;
        const u64 first = first_row(iteration), remaining = rows - first;
        const unsigned bytes = (remaining < ROWS ? (unsigned)remaining : ROWS) * row_bytes;
        mbarrier_arrive_expect_tx(full + 8 * stage, bytes);
        bulk_load(shared_address(shared) + stage * ROWS * row_bytes, x + first * columns, bytes, full + 8 * stage);
    };
    if (is_leader) {
        for (int stage = 0; stage < STAGES; stage++) mbarrier_init(full + 8 * stage, 1);
    }
    publish_barriers();
    if (is_leader) {
        for (int stage = 0; stage < STAGES; stage++) load_stage(blockIdx.x + (u64)stage * gridDim.x, stage);
    }
    pipeline_state<STAGES> pipeline = {0, 0};
    for (u64 iteration = blockIdx.x; iteration < iterations; iteration += gridDim.x, pipeline.advance()) {
        mbarrier_wait(full + 8 * pipeline.stage, pipeline.round % 2);
        input_row input;
        const element *const stage_rows = reinterpret_cast<const element *>(shared + pipeline.stage * ROWS * row_bytes);
        const u64 first = first_row(iteration);
        input.load(stage_rows, threadIdx.y, rows - first, columns);
        // All threads hold their part in registers, so the stage may be refilled.
        __syncthreads();
        if (is_leader) load_stage(iteration + (u64)STAGES * gridDim.x, pipeline.stage);
        quantize_row(input, first + threadIdx.y);
    }
#else
    const u64 row = first_row(blockIdx.x) + threadIdx.y;
    input_row input;
    input.load(x, row, rows, columns);
    quantize_row(input, row);
#endif
}
