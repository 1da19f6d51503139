// Attention within sequences of TOKENS tokens on CUDA cores, no mask: y = softmax(SOFTMAX_SCALE q k^T) v for each head.
//
// Contract: x[sequences * TOKENS, 3 * HEADS * HEAD_DIM] with q, k and v next to each other, each divided into heads;
// y[sequences * TOKENS, HEADS * HEAD_DIM]; row-major, element dtype. Arithmetic in f32, rounded once.
//
// One block per head and sequence, one warp per QUERIES_PER_WARP query tokens. Two-pass softmax, because all scores of
// a query fit in registers:
//   1. lanes stride over HEAD_DIM: partial dot products of the warp's queries with all keys, then butterfly sums
//   2. every lane computes the softmax weights of all TOKENS keys
//   3. lanes stride over HEAD_DIM again: weighted sum of the values
// Warps share data only through L1: keys and values are read from memory by one warp and from L1 by the others.
//
// Traffic: 4 * tokens * HEADS * HEAD_DIM elements. Roofline: memory; 16384 tokens of 4096 bf16 elements are 537 MB, 125
// us at 4.3 TB/s. L1 delivers TOKENS / QUERIES_PER_WARP times the bytes of memory.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH             elements per vector access (element.cuh)
//   KERNEL            kernel name
//   TOKENS            tokens per sequence
//   HEADS             heads per token
//   HEAD_DIM          elements per head
//   SOFTMAX_SCALE     float factor of the scores: 1 / sqrt(HEAD_DIM)
//   QUERIES_PER_WARP  query tokens per warp

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif
#ifndef TOKENS
#error "TOKENS: tokens per sequence"
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
#ifndef QUERIES_PER_WARP
#error "QUERIES_PER_WARP: query tokens per warp"
#endif

#include "element.cuh"

constexpr int WARPS = TOKENS / QUERIES_PER_WARP;
constexpr unsigned HEAD_VECS = HEAD_DIM / WIDTH;
// Vectors from one token to the next, and from q to k and from k to v.
constexpr u64 TOKEN_STRIDE = 3ull * HEADS * HEAD_VECS;
constexpr u64 QKV_STRIDE = (u64)HEADS * HEAD_VECS;

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    KERNEL(const vec *__restrict__ x, vec *__restrict__ y, u64 sequences, u64) {
    const u64 sequence = blockIdx.x / HEADS;
    const unsigned head = blockIdx.x % HEADS;
    const int lane = threadIdx.x, first_query = threadIdx.y * QUERIES_PER_WARP;
    if (sequence >= sequences) return;
    const vec *x_head = x + sequence * TOKENS * TOKEN_STRIDE + head * HEAD_VECS;

    float scores[QUERIES_PER_WARP][TOKENS] = {};
    for (unsigned v = lane; v < HEAD_VECS; v += 32) {
        float query[QUERIES_PER_WARP][WIDTH];
#pragma unroll
        for (int q = 0; q < QUERIES_PER_WARP; q++) {
            const vec q_vec = x_head[(first_query + q) * TOKEN_STRIDE + v];
#pragma unroll
            for (int i = 0; i < WIDTH; i++) query[q][i] = widen(q_vec.val[i]);
        }
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
            const vec key = x_head[t * TOKEN_STRIDE + QKV_STRIDE + v];
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
#pragma unroll
                for (int q = 0; q < QUERIES_PER_WARP; q++)
                    scores[q][t] = fmaf(query[q][i], widen(key.val[i]), scores[q][t]);
            }
        }
    }
#pragma unroll
    for (int q = 0; q < QUERIES_PER_WARP; q++) {
        float row_max = __int_as_float(0xff800000), sum = 0.0f;
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
#pragma unroll
            for (int distance = 16; distance > 0; distance /= 2) {
                scores[q][t] += __shfl_xor_sync(0xffffffffu, scores[q][t], distance);
            }
            scores[q][t] *= SOFTMAX_SCALE;
            // A NaN score makes all weights NaN.
            row_max = fmaxf(row_max, scores[q][t]);
        }
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
            scores[q][t] = expf(scores[q][t] - row_max);
            sum += scores[q][t];
        }
#pragma unroll
        for (int t = 0; t < TOKENS; t++) scores[q][t] /= sum;
    }
    for (unsigned v = lane; v < HEAD_VECS; v += 32) {
        float output[QUERIES_PER_WARP][WIDTH] = {};
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
            const vec value = x_head[t * TOKEN_STRIDE + 2 * QKV_STRIDE + v];
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
#pragma unroll
                for (int q = 0; q < QUERIES_PER_WARP; q++)
                    output[q][i] = fmaf(scores[q][t], widen(value.val[i]), output[q][i]);
            }
        }
#pragma unroll
        for (int q = 0; q < QUERIES_PER_WARP; q++) {
            y[(sequence * TOKENS + first_query + q) * QKV_STRIDE + head * HEAD_VECS + v] = narrow_all(output[q]);
        }
    }
}
