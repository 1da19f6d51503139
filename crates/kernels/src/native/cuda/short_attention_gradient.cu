// The gradient of attention of short sequences, given q, k and v and the gradient dy of what they were mixed into. For
// every head, with the shares p = softmax(q k^T * SCALE): dv = p^T dy, and of the scores s = p (dy v^T - the sum of p dy v^T
// over the keys) * SCALE: dq = s k, dk = s^T q.
//
// Data flow: x and dx[sequences * TOKENS, 3 * HEADS * HEAD] hold q, k and v side by side, each head by head; dy has rows of
// HEADS * HEAD. A block is one head of one sequence; a warp takes OWN of its tokens, first as queries: lanes go along HEAD,
// and the warp adds up their parts of the products with all keys and values. Shares and scores of all tokens then meet in
// shared memory, and lanes go along HEAD again, for what comes back to the warp's tokens as queries, keys and values. All
// in float; rounded once, at the end.
//
// Traffic: 7 * tokens * HEADS * HEAD elements. Roofline: memory, or the first cache, which gives ten times as much to the
// warps of a block; 8192 tokens of 4096 in bf16 are 470 MB, 109 us at the 4.3 TB/s that a copy reaches on an H200.
#include "element.cuh"

constexpr int WARPS = TOKENS / OWN;
constexpr unsigned PIECES = HEAD / WIDTH;
// Pieces from a token to the next, and from q to k and from k to v.
constexpr u64 TOKEN = 3ull * HEADS * PIECES;
constexpr u64 PART = (u64)HEADS * PIECES;

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    KERNEL(const packed *__restrict__ x, const packed *__restrict__ dy, packed *__restrict__ dx, u64 sequences, u64) {
    __shared__ float shared_shares[TOKENS][TOKENS], shared_scores[TOKENS][TOKENS];
    const u64 sequence = blockIdx.x / HEADS;
    const unsigned head = blockIdx.x % HEADS;
    const int lane = threadIdx.x, first = threadIdx.y * OWN;
    // The whole block goes: it is one sequence.
    if (sequence >= sequences) return;
    const packed *of_head = x + sequence * TOKENS * TOKEN + head * PIECES;
    const packed *of_dy = dy + sequence * TOKENS * PART + head * PIECES;
    packed *to_head = dx + sequence * TOKENS * TOKEN + head * PIECES;

    float shares[OWN][TOKENS] = {}, back[OWN][TOKENS] = {};
    for (unsigned at = lane; at < PIECES; at += 32) {
        float query[OWN][WIDTH], slope[OWN][WIDTH];
#pragma unroll
        for (int o = 0; o < OWN; o++) {
            widen_all(of_head[(first + o) * TOKEN + at], query[o]);
            widen_all(of_dy[(first + o) * PART + at], slope[o]);
        }
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
            float key[WIDTH], value[WIDTH];
            widen_all(of_head[t * TOKEN + PART + at], key);
            widen_all(of_head[t * TOKEN + 2 * PART + at], value);
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
#pragma unroll
                for (int o = 0; o < OWN; o++) {
                    shares[o][t] = fmaf(query[o][i], key[i], shares[o][t]);
                    back[o][t] = fmaf(slope[o][i], value[i], back[o][t]);
                }
            }
        }
    }
#pragma unroll
    for (int o = 0; o < OWN; o++) {
        float most = __int_as_float(0xff800000), sum = 0.0f, level = 0.0f;
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
            shares[o][t] = warp_sum(shares[o][t]) * SCALE;
            back[o][t] = warp_sum(back[o][t]);
            // A score that is no number makes all shares so.
            most = fmaxf(most, shares[o][t]);
        }
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
            shares[o][t] = expf(shares[o][t] - most);
            sum += shares[o][t];
        }
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
            shares[o][t] /= sum;
            level = fmaf(shares[o][t], back[o][t], level);
        }
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
            if (lane == t) {
                shared_shares[first + o][t] = shares[o][t];
                shared_scores[first + o][t] = shares[o][t] * (back[o][t] - level) * SCALE;
            }
        }
    }
    __syncthreads();

    for (unsigned at = lane; at < PIECES; at += 32) {
        float of_query[OWN][WIDTH] = {}, of_key[OWN][WIDTH] = {}, of_value[OWN][WIDTH] = {};
#pragma unroll 4
        for (int t = 0; t < TOKENS; t++) {
            float query[WIDTH], key[WIDTH], slope[WIDTH];
            widen_all(of_head[t * TOKEN + at], query);
            widen_all(of_head[t * TOKEN + PART + at], key);
            widen_all(of_dy[t * PART + at], slope);
#pragma unroll
            for (int o = 0; o < OWN; o++) {
                const float as_query = shared_scores[first + o][t], as_key = shared_scores[t][first + o];
                const float as_value = shared_shares[t][first + o];
#pragma unroll
                for (int i = 0; i < WIDTH; i++) {
                    of_query[o][i] = fmaf(as_query, key[i], of_query[o][i]);
                    of_key[o][i] = fmaf(as_key, query[i], of_key[o][i]);
                    of_value[o][i] = fmaf(as_value, slope[i], of_value[o][i]);
                }
            }
        }
#pragma unroll
        for (int o = 0; o < OWN; o++) {
            packed *to = to_head + (first + o) * TOKEN + at;
            to[0] = narrow_all(of_query[o]);
            to[PART] = narrow_all(of_key[o]);
            to[2 * PART] = narrow_all(of_value[o]);
        }
    }
}
