// Attention of short sequences, each token to all TOKENS of its own: y = softmax(q k^T * SCALE) v for every head.
//
// Data flow: x[sequences * TOKENS, 3 * HEADS * HEAD] holds q, k and v side by side, each head by head. A block is one head of
// one sequence; a warp takes QUERIES of its tokens. Lanes go along HEAD: each adds up its part of the products with all
// keys, the warp adds up the parts, every lane makes the same weights of them, and lanes go along HEAD again for the sum of
// the values. Nothing is shared but through the cache: keys and values are read from memory once and from the first cache
// by the other warps. All in float; rounded once, at the end.
//
// Traffic: 4 * tokens * HEADS * HEAD elements. Roofline: memory; 16384 tokens of 4096 in bf16 are 537 MB, 125 us at the
// 4.3 TB/s that a copy reaches on an H200. The first cache gives TOKENS / QUERIES times as much as memory.
#include "element.cuh"

constexpr int WARPS = TOKENS / QUERIES;
constexpr unsigned PIECES = HEAD / WIDTH;
// Pieces from a token to the next, and from q to k and from k to v.
constexpr u64 TOKEN = 3ull * HEADS * PIECES;
constexpr u64 PART = (u64)HEADS * PIECES;

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    KERNEL(const piece *__restrict__ x, piece *__restrict__ y, u64 sequences, u64) {
    const u64 sequence = blockIdx.x / HEADS;
    const unsigned head = blockIdx.x % HEADS;
    const int lane = threadIdx.x, first = threadIdx.y * QUERIES;
    if (sequence >= sequences) return;
    const piece *of_head = x + sequence * TOKENS * TOKEN + head * PIECES;

    float scores[QUERIES][TOKENS] = {};
    for (unsigned at = lane; at < PIECES; at += 32) {
        float query[QUERIES][WIDTH];
#pragma unroll
        for (int q = 0; q < QUERIES; q++) {
            const piece loaded = of_head[(first + q) * TOKEN + at];
#pragma unroll
            for (int i = 0; i < WIDTH; i++) query[q][i] = widen(loaded.parts[i]);
        }
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
            const piece key = of_head[t * TOKEN + PART + at];
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
#pragma unroll
                for (int q = 0; q < QUERIES; q++) scores[q][t] = fmaf(query[q][i], widen(key.parts[i]), scores[q][t]);
            }
        }
    }
#pragma unroll
    for (int q = 0; q < QUERIES; q++) {
        float most = __int_as_float(0xff800000), sum = 0.0f;
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
#pragma unroll
            for (int distance = 16; distance > 0; distance /= 2) {
                scores[q][t] += __shfl_xor_sync(0xffffffffu, scores[q][t], distance);
            }
            scores[q][t] *= SCALE;
            // A score that is no number makes all weights so.
            most = fmaxf(most, scores[q][t]);
        }
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
            scores[q][t] = expf(scores[q][t] - most);
            sum += scores[q][t];
        }
#pragma unroll
        for (int t = 0; t < TOKENS; t++) scores[q][t] /= sum;
    }
    for (unsigned at = lane; at < PIECES; at += 32) {
        float mixed[QUERIES][WIDTH] = {};
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
            const piece value = of_head[t * TOKEN + 2 * PART + at];
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
#pragma unroll
                for (int q = 0; q < QUERIES; q++) mixed[q][i] = fmaf(scores[q][t], widen(value.parts[i]), mixed[q][i]);
            }
        }
#pragma unroll
        for (int q = 0; q < QUERIES; q++) {
            y[(sequence * TOKENS + first + q) * PART + head * PIECES + at] = narrow_all(mixed[q]);
        }
    }
}
