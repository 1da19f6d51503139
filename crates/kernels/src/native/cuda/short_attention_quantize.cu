// Attention within sequences of 16 tokens on tensor cores, fused with row-wise dynamic quantization of its output:
//   x -> softmax(SOFTMAX_SCALE q k^T) v of each head -> amax of a token over all heads -> scale -> quantized values.
//
// Contract: x[rows, 3 * HEADS * HEAD_DIM] with q, k and v next to each other, each divided into heads, f16 or bf16;
// quantized[rows, STRIDE], one byte per element; scales[rows], f32. rows is a multiple of 16; HEAD_DIM of 32.
//
// Persistent blocks loop over sequences, one warp per head (mma_attention16.cuh). The output of a warp stays in
// registers, rounded to 16 bits, until the heads have exchanged their amax through shared memory, double buffered:
//
//   warp h:  load v | S = q k^T, softmax | O = P v, in the registers of v | amax | barrier | scale, quantize, store
//   shared:  head_amax[2 buffers][16 tokens][HEADS]
//
// Traffic: 3 * rows * HEADS * HEAD_DIM elements read and a third as many bytes written. Roofline: memory; 16384 tokens
// of 4096 bf16 elements are 470 MB, 109 us at 4.3 TB/s.
//
// Parameters:
//   ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH          elements per vector access (element.cuh)
//   KERNEL         kernel name
//   TOKENS         tokens per sequence: 16 (mma_attention16.cuh)
//   HEADS          heads per token (mma_attention16.cuh)
//   HEAD_DIM       elements per head (mma_attention16.cuh)
//   SOFTMAX_SCALE  float factor of the scores (mma_attention16.cuh)
//   STRIDE         bytes from one row of quantized values to the next
//   QUANT_INT8 | QUANT_E4M3  quantized dtype (dynamic_quant.cuh)
// Optional:
//   QUANT_IN_F32, QUANT_FULL_RANGE  see dynamic_quant.cuh

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif
#ifndef STRIDE
#error "STRIDE: bytes from one row of quantized values to the next"
#endif

#include "dynamic_quant.cuh"
#include "mma_attention16.cuh"

// Maximum over the four lanes of a token; magnitudes as bits are ordered like their values.
__device__ __forceinline__ unsigned token_max(unsigned amax) {
    amax = max(amax, __shfl_xor_sync(~0u, amax, 1));
    return max(amax, __shfl_xor_sync(~0u, amax, 2));
}

// Quantizes and stores a lane's vectors of a token.
struct quantize_store {
    uint2 *const out;
    const uint4 (&vecs)[HEAD_VECS / 4];

    template <class Division> __device__ __forceinline__ void operator()(const Division &divide) const {
#pragma unroll
        for (unsigned v = 0; v < HEAD_VECS / 4; v++) {
            const unsigned pairs[4] = {vecs[v].x, vecs[v].y, vecs[v].z, vecs[v].w};
            float quotients[8];
#pragma unroll
            for (int i = 0; i < 8; i++) quotients[i] = divide(widen((element)(pairs[i / 2] >> 16 * (i % 2))));
            out[4 * v] = make_uint2(quantize4(quotients[0], quotients[1], quotients[2], quotients[3]),
                                    quantize4(quotients[4], quotients[5], quotients[6], quotients[7]));
        }
    }
};

extern "C" __global__ void __launch_bounds__(32 * HEADS)
    KERNEL(const uint4 *__restrict__ x, unsigned char *__restrict__ quantized, float *__restrict__ scales, u64 rows,
           u64) {
    // Double buffering: warps may start the next sequence while others still read the current amax.
    __shared__ unsigned head_amax[2][TOKENS][HEADS];
    const unsigned lane = threadIdx.x, head = threadIdx.y, token = lane / 4;
    const u64 sequences = rows / TOKENS;
    bool buffer = false;
    for (u64 i_sequence = blockIdx.x; i_sequence < sequences; i_sequence += gridDim.x, buffer = !buffer) {
        // Reverse order: the last sequences were written last and may still be in L2.
        const u64 sequence = sequences - 1 - i_sequence;
        const uint4 *const q_vecs = x + (sequence * TOKENS + token) * TOKEN_STRIDE + head * HEAD_VECS + lane % 4;
        // Holds values first, then the output.
        uint4 out_vecs[2][HEAD_VECS / 4];
#pragma unroll
        for (unsigned v = 0; v < HEAD_VECS / 4; v++) {
            out_vecs[0][v] = q_vecs[2 * QKV_STRIDE + 4 * v];
            out_vecs[1][v] = q_vecs[8 * TOKEN_STRIDE + 2 * QKV_STRIDE + 4 * v];
        }
        const attention_weights weights(q_vecs);
        unsigned amax[2] = {};
#pragma unroll
        for (unsigned v = 0; v < HEAD_VECS / 4; v++) {
            weights.weighted_sum(out_vecs[0][v], out_vecs[1][v], out_vecs[0][v], out_vecs[1][v]);
            amax[0] = max_magnitude(amax[0], out_vecs[0][v]);
            amax[1] = max_magnitude(amax[1], out_vecs[1][v]);
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const unsigned row_amax = token_max(max_of_pair(amax[i]));
            if (lane % 4 == 0) head_amax[buffer][token + 8 * i][head] = __float_as_uint(widen((element)row_amax));
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 2; i++) {
            unsigned row_amax = 0;
            for (unsigned h = lane % 4; h < HEADS; h += 4)
                row_amax = max(row_amax, head_amax[buffer][token + 8 * i][h]);
            const float scale = scale_from_amax(token_max(row_amax));
            const u64 row = sequence * TOKENS + token + 8 * i;
            if (head == 0 && lane % 4 == 0) scales[row] = scale;
            uint2 *const out = reinterpret_cast<uint2 *>(quantized + row * STRIDE) + head * HEAD_VECS + lane % 4;
            quantizer(scale).with_division(quantize_store{out, out_vecs[i]});
        }
    }
}
