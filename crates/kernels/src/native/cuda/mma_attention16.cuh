// Attention of one head of one sequence of 16 tokens by one warp with mma.sync: softmax(SOFTMAX_SCALE q k^T) v.
//
// x[sequences * 16, 3 * HEADS * HEAD_DIM] holds q, k and v next to each other, each divided into heads. 16 tokens are
// the M of one mma.m16n8k16, so everything stays in registers, without shared memory.
//
// Fragments (PTX ISA, matrix fragments for mma.m16n8k16), lane = 4 g + t:
//   A  a0: row g,   k 2t, 2t+1     a1: row g+8, k 2t, ..    a2: row g, k 2t+8, ..    a3: row g+8, k 2t+8, ..
//   B  b0: k 2t, 2t+1, column g    b1: k 2t+8, .., column g
//   C  c0, c1: row g, columns 2t, 2t+1    c2, c3: row g+8, columns 2t, 2t+1
// Steps:
//   S = q k^T  A lane loads the 8 elements 8t..8t+7 of tokens g and g+8 with one access. The k slots of the mma are
//              columns of the head in permuted order, which is correct because q and k are permuted alike.
//   P          Accumulators of S, packed to 16 bits, are the A fragment of P v (as in FlashAttention-2).
//   O = P v    B needs tokens along k: movmatrix.trans transposes 8 x 8 words of v. Word w of a lane's 8 columns maps
//              to word w of its output.
//
// P is split into a high and a residual 16-bit part (P = weights + residual), which makes its rounding error
// negligible; accumulators are f32, rounded once.
//
// Parameters:
//   ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH          elements per vector access (element.cuh)
//   TOKENS         tokens per sequence: 16
//   HEADS          heads per token
//   HEAD_DIM       elements per head
//   SOFTMAX_SCALE  float factor of the scores: 1 / sqrt(HEAD_DIM)
#pragma once

#ifndef TOKENS
#error "TOKENS: tokens per sequence: 16"
#endif
#ifndef HEADS
#error "HEADS: heads per token"
#endif
#ifndef HEAD_DIM
#error "HEAD_DIM: elements per head"
#endif
#ifndef SOFTMAX_SCALE
#error "SOFTMAX_SCALE: float factor of the scores: 1 / sqrt(HEAD_DIM)"
#endif

#include "element.cuh"
#include "mma16.cuh"

constexpr unsigned HEAD_VECS = HEAD_DIM / 8;
// 16-byte vectors per head; vectors from one token to the next, and from q to k and from k to v.
constexpr u64 TOKEN_STRIDE = 3ull * HEADS * HEAD_VECS;
constexpr u64 QKV_STRIDE = (u64)HEADS * HEAD_VECS;

// Transposes the 8 x 8 matrix of 16-bit elements that the 32 words of a warp form.
__device__ __forceinline__ unsigned transpose8x8(unsigned word) {
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(word));
    return word;
}

// Attention weights of tokens g and g + 8 as A fragments: rounded to 16 bits, and the rounding residual.
struct attention_weights {
    unsigned weights[4], residual[4];

    // Computes the weights; `q_vecs` is the lane's first vector of q.
    __device__ __forceinline__ explicit attention_weights(const uint4 *q_vecs) {
        // [0]: keys 2t, 2t+1; [1]: keys 8+2t, 8+2t+1; each for rows g and g + 8.
        float scores[2][4] = {};
#pragma unroll 4
        for (unsigned v = 0; v < HEAD_VECS; v += 4) {
            const uint4 q = q_vecs[v], q8 = q_vecs[8 * TOKEN_STRIDE + v];
            const uint4 k = q_vecs[QKV_STRIDE + v], k8 = q_vecs[8 * TOKEN_STRIDE + QKV_STRIDE + v];
            mma_m16n8k16(scores[0], q.x, q8.x, q.y, q8.y, k.x, k.y);
            mma_m16n8k16(scores[1], q.x, q8.x, q.y, q8.y, k8.x, k8.y);
            mma_m16n8k16(scores[0], q.z, q8.z, q.w, q8.w, k.z, k.w);
            mma_m16n8k16(scores[1], q.z, q8.z, q.w, q8.w, k8.z, k8.w);
        }
#pragma unroll
        for (int token = 0; token < 2; token++) {
            float *const low = &scores[0][2 * token], *const high = &scores[1][2 * token];
            float row_max = __int_as_float(0xff800000), sum = 0.0f;
#pragma unroll
            for (int i = 0; i < 2; i++) {
                low[i] *= SOFTMAX_SCALE;
                high[i] *= SOFTMAX_SCALE;
                // A NaN score makes all weights NaN.
                row_max = fmaxf(row_max, fmaxf(low[i], high[i]));
            }
            row_max = fmaxf(row_max, __shfl_xor_sync(~0u, row_max, 1));
            row_max = fmaxf(row_max, __shfl_xor_sync(~0u, row_max, 2));
#pragma unroll
            for (int i = 0; i < 2; i++) {
                low[i] = expf(low[i] - row_max);
                high[i] = expf(high[i] - row_max);
                sum += low[i] + high[i];
            }
            sum += __shfl_xor_sync(~0u, sum, 1);
            sum += __shfl_xor_sync(~0u, sum, 2);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                low[i] /= sum;
                high[i] /= sum;
            }
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float low = scores[i / 2][i % 2 * 2], high = scores[i / 2][i % 2 * 2 + 1];
            weights[i] = pack_pair(low, high);
            residual[i] = pack_pair(low - widen((element)weights[i]), high - widen((element)(weights[i] >> 16)));
        }
    }

    // Output vectors of tokens g and g + 8 from the value vectors at the same columns.
    __device__ __forceinline__ void weighted_sum(const uint4 &v, const uint4 &v8, uint4 &out, uint4 &out8) const {
        const unsigned words[4] = {v.x, v.y, v.z, v.w}, words8[4] = {v8.x, v8.y, v8.z, v8.w};
        unsigned results[2][4];
#pragma unroll
        for (int word = 0; word < 4; word++) {
            const unsigned low = transpose8x8(words[word]), high = transpose8x8(words8[word]);
            float sums[4] = {};
            mma_m16n8k16(sums, residual[0], residual[1], residual[2], residual[3], low, high);
            mma_m16n8k16(sums, weights[0], weights[1], weights[2], weights[3], low, high);
            results[0][word] = pack_pair(sums[0], sums[1]);
            results[1][word] = pack_pair(sums[2], sums[3]);
        }
        out = make_uint4(results[0][0], results[0][1], results[0][2], results[0][3]);
        out8 = make_uint4(results[1][0], results[1][1], results[1][2], results[1][3]);
    }
};
