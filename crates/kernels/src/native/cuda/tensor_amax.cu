// Tensor-wide quantization scale of x[rows, columns]: x -> [prologue] -> amax -> scale[1].
//
// Contract: x row-major, element dtype; scale: f32; state[2]: workspace, 0 before and after each launch
// (grid_amax.cuh).
//
// Persistent blocks, blockDim = (THREADS, ROWS), loop over rows from the last to the first, because the last rows were
// written last and may still be in L2. Prologue and row in registers: input_row.cuh.
//
// Traffic: rows * columns elements read. An x that fits into L2 stays there for quantize_input.cu. Roofline: memory.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH               elements per vector access (element.cuh)
//   KERNEL              kernel name
//   THREADS             threads per row: whole warps (row_statistics.cuh)
//   ROWS                rows per block (row_statistics.cuh)
//   EPSILON             float that is added to the variance (row_statistics.cuh)
//   VECTORS_PER_THREAD  vectors of a row per thread in registers; 0 if the row is too long (input_row.cuh)
//   QUANT_INT8 | QUANT_E4M3  quantized dtype (dynamic_quant.cuh)
// Optional:
//   AMAX_TARGET         float to which amax is mapped (dynamic_quant.cuh)
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

#include "input_row.cuh"
#include "grid_amax.cuh"

extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
    KERNEL(const element *__restrict__ x, float *__restrict__ scale, unsigned *state, u64 rows, u64 columns) {
    unsigned amax = 0;
    const u64 iterations = (rows + ROWS - 1) / ROWS;
    for (u64 iteration = blockIdx.x; iteration < iterations; iteration += gridDim.x) {
        input_row input;
        input.load(x, (iterations - 1 - iteration) * ROWS + threadIdx.y, rows, columns);
        amax = max(amax, input.transformed_amax((float)columns));
#ifdef RMS_NORM
        // The next row reuses the shared sums.
        __syncthreads();
#endif
    }
    write_grid_scale<ROWS * WARPS>(amax, scale, state);
}
