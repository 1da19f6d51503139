// Attention within sequences of 16 tokens on tensor cores, no mask: y = softmax(SOFTMAX_SCALE q k^T) v for each head;
// with PER_TENSOR also the tensor-wide quantization scale of y.
//
// Contract: x[sequences * 16, 3 * HEADS * HEAD_DIM] with q, k and v next to each other, each divided into heads;
// y[sequences * 16, HEADS * HEAD_DIM]; row-major, f16 or bf16; HEAD_DIM is a multiple of 32. With PER_TENSOR: scale[1],
// f32, and state[2], 0 before and after each launch (grid_amax.cuh).
//
// One warp per head and sequence, WARPS warps per block; algorithm and fragments in mma_attention16.cuh.
//
// Traffic and roofline: as in short_attention.cu: memory, 125 us for 16384 tokens of 4096 bf16 elements at 4.3 TB/s.
//
// Parameters:
//   ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH          elements per vector access (element.cuh)
//   KERNEL         kernel name
//   TOKENS         tokens per sequence: 16 (mma_attention16.cuh)
//   HEADS          heads per token (mma_attention16.cuh)
//   HEAD_DIM       elements per head (mma_attention16.cuh)
//   SOFTMAX_SCALE  float factor of the scores (mma_attention16.cuh)
//   WARPS          warps per block
// Optional:
//   PER_TENSOR     also compute the tensor-wide scale of y; requires the macros of dynamic_quant.cuh

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif
#ifndef WARPS
#error "WARPS: warps per block"
#endif

#include "mma_attention16.cuh"
#ifdef PER_TENSOR
#include "grid_amax.cuh"
#endif

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    KERNEL(const uint4 *__restrict__ x, uint4 *__restrict__ y,
#ifdef PER_TENSOR
           float *__restrict__ scale, unsigned *state,
#endif
           u64 sequences, u64) {
    const u64 head_index = (u64)blockIdx.x * WARPS + threadIdx.y;
    unsigned amax = 0;
    if (head_index < sequences * HEADS) {
        const u64 sequence = head_index / HEADS, head = head_index % HEADS;
        const unsigned lane = threadIdx.x, token = lane / 4;
        const uint4 *const q_vecs = x + (sequence * TOKENS + token) * TOKEN_STRIDE + head * HEAD_VECS + lane % 4;
        const attention_weights weights(q_vecs);
        uint4 *const y_vecs = y + (sequence * TOKENS + token) * QKV_STRIDE + head * HEAD_VECS + lane % 4;
#pragma unroll 4
        for (unsigned v = 0; v < HEAD_VECS; v += 4) {
            uint4 output[2];
            weights.weighted_sum(q_vecs[2 * QKV_STRIDE + v], q_vecs[8 * TOKEN_STRIDE + 2 * QKV_STRIDE + v], output[0],
                                 output[1]);
            y_vecs[v] = output[0];
            y_vecs[8 * QKV_STRIDE + v] = output[1];
#ifdef PER_TENSOR
            amax = max_magnitude(max_magnitude(amax, output[0]), output[1]);
#endif
        }
    }
#ifdef PER_TENSOR
    write_grid_scale<WARPS>(__float_as_uint(widen((element)max_of_pair(amax))), scale, state);
#endif
}
