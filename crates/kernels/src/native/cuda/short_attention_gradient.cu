// Backward pass of attention within sequences of TOKENS tokens. With P = softmax(SOFTMAX_SCALE q k^T) for each head:
//   dv = P^T dy;  dP = dy v^T;  dS = P (dP - rowsum(P dP)) SOFTMAX_SCALE;  dq = dS k;  dk = dS^T q
// (FlashAttention-2, backward pass, with P recomputed.)
//
// Contract: x, dx[sequences * TOKENS, 3 * HEADS * HEAD_DIM] with q, k and v next to each other, each divided into
// heads; dy[sequences * TOKENS, HEADS * HEAD_DIM]; row-major, element dtype. Arithmetic in f32, rounded once.
//
// One block per head and sequence, one warp per TOKENS_PER_WARP tokens:
//   1. the tokens as queries: lanes stride over HEAD_DIM; dot products q k^T and dy v^T with all tokens; P and dS of
//      the warp's rows go to shared memory (TOKENS x TOKENS each)
//   2. barrier
//   3. the tokens as queries, keys and values: lanes stride over HEAD_DIM again and accumulate dq, dk and dv
//
// Traffic: 7 * tokens * HEADS * HEAD_DIM elements. Roofline: memory, or L1, which delivers about ten times as many
// bytes to the warps of a block; 8192 tokens of 4096 bf16 elements are 470 MB, 109 us at 4.3 TB/s.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH            elements per vector access (element.cuh)
//   KERNEL           kernel name
//   TOKENS           tokens per sequence
//   HEADS            heads per token
//   HEAD_DIM         elements per head
//   SOFTMAX_SCALE    float factor of the scores: 1 / sqrt(HEAD_DIM)
//   TOKENS_PER_WARP  tokens per warp

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
#ifndef TOKENS_PER_WARP
#error "TOKENS_PER_WARP: tokens per warp"
#endif

#include "element.cuh"

constexpr int WARPS = TOKENS / TOKENS_PER_WARP;
constexpr unsigned HEAD_VECS = HEAD_DIM / WIDTH;
// Vectors from one token to the next, and from q to k and from k to v.
constexpr u64 TOKEN_STRIDE = 3ull * HEADS * HEAD_VECS;
constexpr u64 QKV_STRIDE = (u64)HEADS * HEAD_VECS;

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    KERNEL(const packed_vec *__restrict__ x, const packed_vec *__restrict__ dy, packed_vec *__restrict__ dx,
           u64 sequences, u64) {
    __shared__ float shared_p[TOKENS][TOKENS], shared_ds[TOKENS][TOKENS];
    const u64 sequence = blockIdx.x / HEADS;
    const unsigned head = blockIdx.x % HEADS;
    const int lane = threadIdx.x, first_token = threadIdx.y * TOKENS_PER_WARP;
    // Uniform for the block, which belongs to one sequence.
    if (sequence >= sequences) return;
    const packed_vec *x_head = x + sequence * TOKENS * TOKEN_STRIDE + head * HEAD_VECS;
    const packed_vec *dy_head = dy + sequence * TOKENS * QKV_STRIDE + head * HEAD_VECS;
    packed_vec *dx_head = dx + sequence * TOKENS * TOKEN_STRIDE + head * HEAD_VECS;

    float probs[TOKENS_PER_WARP][TOKENS] = {}, dprobs[TOKENS_PER_WARP][TOKENS] = {};
    for (unsigned v = lane; v < HEAD_VECS; v += 32) {
        float query[TOKENS_PER_WARP][WIDTH], upstream[TOKENS_PER_WARP][WIDTH];
#pragma unroll
        for (int o = 0; o < TOKENS_PER_WARP; o++) {
            widen_all(x_head[(first_token + o) * TOKEN_STRIDE + v], query[o]);
            widen_all(dy_head[(first_token + o) * QKV_STRIDE + v], upstream[o]);
        }
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
            float key[WIDTH], value[WIDTH];
            widen_all(x_head[t * TOKEN_STRIDE + QKV_STRIDE + v], key);
            widen_all(x_head[t * TOKEN_STRIDE + 2 * QKV_STRIDE + v], value);
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
#pragma unroll
                for (int o = 0; o < TOKENS_PER_WARP; o++) {
                    probs[o][t] = fmaf(query[o][i], key[i], probs[o][t]);
                    dprobs[o][t] = fmaf(upstream[o][i], value[i], dprobs[o][t]);
                }
            }
        }
    }
#pragma unroll
    for (int o = 0; o < TOKENS_PER_WARP; o++) {
        float row_max = __int_as_float(0xff800000), sum = 0.0f, row_dot = 0.0f;
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
            probs[o][t] = warp_sum(probs[o][t]) * SOFTMAX_SCALE;
            dprobs[o][t] = warp_sum(dprobs[o][t]);
            // A NaN score makes all probabilities NaN.
            row_max = fmaxf(row_max, probs[o][t]);
        }
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
            probs[o][t] = expf(probs[o][t] - row_max);
            sum += probs[o][t];
        }
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
            probs[o][t] /= sum;
            row_dot = fmaf(probs[o][t], dprobs[o][t], row_dot);
        }
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
            if (lane == t) {
                shared_p[first_token + o][t] = probs[o][t];
                shared_ds[first_token + o][t] = probs[o][t] * (dprobs[o][t] - row_dot) * SOFTMAX_SCALE;
            }
        }
    }
    __syncthreads();

    for (unsigned v = lane; v < HEAD_VECS; v += 32) {
        float dq[TOKENS_PER_WARP][WIDTH] = {}, dk[TOKENS_PER_WARP][WIDTH] = {}, dv[TOKENS_PER_WARP][WIDTH] = {};
#pragma unroll 4
        for (int t = 0; t < TOKENS; t++) {
            float query[WIDTH], key[WIDTH], upstream[WIDTH];
            widen_all(x_head[t * TOKEN_STRIDE + v], query);
            widen_all(x_head[t * TOKEN_STRIDE + QKV_STRIDE + v], key);
            widen_all(dy_head[t * QKV_STRIDE + v], upstream);
#pragma unroll
            for (int o = 0; o < TOKENS_PER_WARP; o++) {
                const float ds_query = shared_ds[first_token + o][t], ds_key = shared_ds[t][first_token + o];
                const float p_value = shared_p[t][first_token + o];
#pragma unroll
                for (int i = 0; i < WIDTH; i++) {
                    dq[o][i] = fmaf(ds_query, key[i], dq[o][i]);
                    dk[o][i] = fmaf(ds_key, query[i], dk[o][i]);
                    dv[o][i] = fmaf(p_value, upstream[i], dv[o][i]);
                }
            }
        }
#pragma unroll
        for (int o = 0; o < TOKENS_PER_WARP; o++) {
            packed_vec *dx_vecs = dx_head + (first_token + o) * TOKEN_STRIDE + v;
            dx_vecs[0] = narrow_all(dq[o]);
            dx_vecs[QKV_STRIDE] = narrow_all(dk[o]);
            dx_vecs[2 * QKV_STRIDE] = narrow_all(dv[o]);
        }
    }
}
