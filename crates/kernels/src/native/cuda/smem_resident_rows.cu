// Dynamic quantization with one tensor-wide scale, reading x once: x -> [prologue] -> amax -> grid barrier -> scale ->
// quantized[rows, STRIDE].
//
// Contract: x[rows, columns], row-major, element dtype; quantized: one byte per element, rows padded to STRIDE bytes
// (padding is not written); tensor_scale[1], f32; slots[gridDim.x], u64 workspace, 0 before the first launch.
// Cooperative launch: all blocks must be resident.
//
// x stays on the multiprocessors until the scale is known. A block owns ROWS_PER_BLOCK rows, ROWS at a time:
//
//   rows 0 .. ROWS-1      registers (input_row.cuh), prologue applied
//   all other rows        shared memory as loaded, by bulk copies (cp.async.bulk, PTX ISA), one mbarrier per ROWS rows
//   pass 1                amax of registers and shared memory -> slots[block] = launch number << 32 | amax
//   grid barrier          every block polls all slots until they carry its launch number
//   pass 2                prologue again from shared memory (statistics are kept), quantize, store
//
// Traffic: rows * columns elements read, as many bytes written. Roofline: memory; 4096 x 4096 bf16 elements are 50 MB,
// 12 us at 4.3 TB/s.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH               elements per vector access (element.cuh)
//   KERNEL              kernel name
//   THREADS             threads per row: whole warps (row_statistics.cuh)
//   ROWS                rows per block (row_statistics.cuh)
//   EPSILON             float that is added to the variance (row_statistics.cuh)
//   VECTORS_PER_THREAD  vectors of a row per thread in registers; 0 if the row is too long (input_row.cuh)
//   ROWS_PER_BLOCK      rows that a block owns
//   STRIDE              bytes from one row of quantized values to the next
//   QUANT_INT8 | QUANT_E4M3  quantized dtype (dynamic_quant.cuh)
// Optional:
//   LAYER_NORM          prologue: layer normalization without weights
//   RMS_NORM            prologue: RMS normalization without weights
//   PROLOGUE            prologue: activation function (activations.cuh)
//   MONOTONIC_FROM      float; from here on PROLOGUE increases by more than its error between adjacent 16-bit floats,
//                       and no smaller x has a result of larger magnitude
//   FULL_TILES          true if every thread of every block owns all its vectors; default false
//   QUANT_IN_F32, QUANT_FULL_RANGE  see dynamic_quant.cuh

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif
#ifndef ROWS_PER_BLOCK
#error "ROWS_PER_BLOCK: rows that a block owns"
#endif
#ifndef STRIDE
#error "STRIDE: bytes from one row of quantized values to the next"
#endif

#include "input_row.cuh"
#include "hopper.cuh"

constexpr unsigned ITERATIONS = (ROWS_PER_BLOCK + ROWS - 1) / ROWS;

// Maximum over the block, returned to each thread.
__device__ __forceinline__ unsigned block_max(unsigned amax) {
    __shared__ unsigned warp_amax[ROWS * WARPS];
    const unsigned lane = threadIdx.x % 32;
    amax = __reduce_max_sync(0xffffffffu, amax);
    // All reads of an earlier call are complete.
    __syncthreads();
    if (lane == 0) warp_amax[threadIdx.y * WARPS + threadIdx.x / 32] = amax;
    __syncthreads();
    return __reduce_max_sync(0xffffffffu, lane < ROWS * WARPS ? warp_amax[lane] : 0u);
}

extern "C" __global__ void __launch_bounds__(THREADS * ROWS, 1)
    KERNEL(const element *__restrict__ x, unsigned char *__restrict__ quantized, float *__restrict__ tensor_scale,
           volatile u64 *slots, u64 rows, u64 columns) {
    extern __shared__ __align__(128) unsigned char shared[];
    __shared__ __align__(8) u64 barriers[ITERATIONS];
#ifdef HAS_STATISTICS
    __shared__ row_stats shared_stats[ITERATIONS][ROWS];
#endif
    const u64 first = (u64)blockIdx.x * ROWS_PER_BLOCK;
    const unsigned owned_rows = rows - first < ROWS_PER_BLOCK ? rows - first : ROWS_PER_BLOCK,
                   row_bytes = (unsigned)columns * sizeof(element);
    const bool is_leader = threadIdx.x == 0 && threadIdx.y == 0;
    const unsigned full = shared_address(barriers), launch = (unsigned)(slots[blockIdx.x] >> 32) + 1;
    if (is_leader) {
        for (unsigned i = 1; i < ITERATIONS; i++) mbarrier_init(full + 8 * i, 1);
    }
    publish_barriers();
    if (is_leader) {
        for (unsigned i = 1; i * ROWS < owned_rows; i++) {
            const unsigned offset = i * ROWS, bytes = min(owned_rows - offset, (unsigned)ROWS) * row_bytes;
            mbarrier_arrive_expect_tx(full + 8 * i, bytes);
            bulk_load(shared_address(shared) + (offset - ROWS) * row_bytes, x + (first + offset) * columns, bytes,
                      full + 8 * i);
        }
    }

    // Rows in shared memory, without the rows in registers.
    const element *const smem_x = reinterpret_cast<const element *>(shared);
    const unsigned smem_rows = owned_rows > ROWS ? owned_rows - ROWS : 0;
    input_row register_rows;
    register_rows.load_and_transform(x, first + threadIdx.y, first + owned_rows, columns);
    unsigned amax = register_rows.amax();
    for (unsigned i = 1; i * ROWS < owned_rows; i++) {
#ifdef RMS_NORM
        // The next row reuses the shared sums.
        __syncthreads();
#endif
        mbarrier_wait(full + 8 * i, 0);
        input_row input;
        input.load(smem_x, (i - 1) * ROWS + threadIdx.y, smem_rows, columns);
        amax = max(amax, input.transformed_amax((float)columns));
#ifdef HAS_STATISTICS
        if (threadIdx.x == 0) shared_stats[i][threadIdx.y] = input.stats;
#endif
    }

    amax = block_max(amax);
    // Launch number and amax share a word, so that one store publishes both without a fence.
    if (is_leader) slots[blockIdx.x] = (u64)launch << 32 | amax;
    for (unsigned block = threadIdx.y * THREADS + threadIdx.x; block < gridDim.x; block += ROWS * THREADS) {
        u64 slot;
        do slot = slots[block];
        while ((unsigned)(slot >> 32) != launch);
        amax = max(amax, (unsigned)slot);
    }
    const float scale = scale_from_amax(block_max(amax));
    if (is_leader && blockIdx.x == 0) *tensor_scale = scale;
    const quantizer quantize(scale);
    register_rows.store(quantized + (first + threadIdx.y) * STRIDE, quantize);
    for (unsigned i = 1; i * ROWS < owned_rows; i++) {
        const unsigned row = i * ROWS + threadIdx.y;
        input_row input;
        input.load(smem_x, row - ROWS, smem_rows, columns);
#ifdef HAS_STATISTICS
        input.stats = shared_stats[i][threadIdx.y];
#endif
        input.transform_cached();
        input.store(quantized + (first + row) * STRIDE, quantize);
    }
}
