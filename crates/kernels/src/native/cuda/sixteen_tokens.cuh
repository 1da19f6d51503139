// What a warp of tensor cores makes of the 16 tokens of a sequence and one head, for numbers of 16 bits: softmax(q k^T * SCALE) v.
//
// Data flow: x[sequences * TOKENS, 3 * HEADS * HEAD] holds q, k and v side by side, each head by head. Everything stays in
// registers: 16 tokens are the rows of one instruction. A lane has 8 neighbors of two tokens of q, k and v at a time; which of
// them an instruction sums up together does not matter as long as it is the same of q and of k. Words of v are turned between
// lanes. Weights are two numbers of 16 bits each, of which the second is what the first leaves, so that nothing of v is lost; sums
// are in float, rounded once.
#pragma once
#include "element.cuh"
#include "halves.cuh"

constexpr unsigned PIECES = HEAD / 8;
// Pieces from a token to the next, and from q to k and from k to v.
constexpr u64 TOKEN = 3ull * HEADS * PIECES;
constexpr u64 PART = (u64)HEADS * PIECES;

// Eight rows of four lanes' words, turned.
__device__ __forceinline__ unsigned turned(unsigned word) {
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(word));
    return word;
}

// Of tokens `lane / 4` and 8 more: the weights of all values, as far as 16 bits go, and what they leave.
struct shares {
    unsigned weights[4], rest[4];

    // From a lane's first piece of q.
    __device__ __forceinline__ explicit shares(const uint4 *of_head) {
        // Against two neighbors of the first eight keys, and two of the others.
        float scores[2][4] = {};
#pragma unroll 4
        for (unsigned piece = 0; piece < PIECES; piece += 4) {
            const uint4 q = of_head[piece], later_q = of_head[8 * TOKEN + piece];
            const uint4 k = of_head[PART + piece], later_k = of_head[8 * TOKEN + PART + piece];
            multiply(scores[0], q.x, later_q.x, q.y, later_q.y, k.x, k.y);
            multiply(scores[1], q.x, later_q.x, q.y, later_q.y, later_k.x, later_k.y);
            multiply(scores[0], q.z, later_q.z, q.w, later_q.w, k.z, k.w);
            multiply(scores[1], q.z, later_q.z, q.w, later_q.w, later_k.z, later_k.w);
        }
#pragma unroll
        for (int token = 0; token < 2; token++) {
            float *const first = &scores[0][2 * token], *const second = &scores[1][2 * token];
            float most = __int_as_float(0xff800000), sum = 0.0f;
#pragma unroll
            for (int i = 0; i < 2; i++) {
                first[i] *= SCALE;
                second[i] *= SCALE;
                // A score that is no number makes all weights so.
                most = fmaxf(most, fmaxf(first[i], second[i]));
            }
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
#pragma unroll
            for (int i = 0; i < 2; i++) {
                first[i] = expf(first[i] - most);
                second[i] = expf(second[i] - most);
                sum += first[i] + second[i];
            }
            sum += __shfl_xor_sync(~0u, sum, 1);
            sum += __shfl_xor_sync(~0u, sum, 2);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                first[i] /= sum;
                second[i] /= sum;
            }
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float first = scores[i / 2][i % 2 * 2], second = scores[i / 2][i % 2 * 2 + 1];
            weights[i] = narrow_two(first, second);
            rest[i] = narrow_two(first - widen((element)weights[i]), second - widen((element)(weights[i] >> 16)));
        }
    }

    // A lane's piece of the two tokens, of the values' pieces there.
    __device__ __forceinline__ void mix(const uint4 &v, const uint4 &later_v, uint4 &of_token, uint4 &of_later) const {
        const unsigned words[4] = {v.x, v.y, v.z, v.w}, later_words[4] = {later_v.x, later_v.y, later_v.z, later_v.w};
        unsigned mixed[2][4];
#pragma unroll
        for (int word = 0; word < 4; word++) {
            const unsigned first = turned(words[word]), second = turned(later_words[word]);
            float sums[4] = {};
            multiply(sums, rest[0], rest[1], rest[2], rest[3], first, second);
            multiply(sums, weights[0], weights[1], weights[2], weights[3], first, second);
            mixed[0][word] = narrow_two(sums[0], sums[1]);
            mixed[1][word] = narrow_two(sums[2], sums[3]);
        }
        of_token = make_uint4(mixed[0][0], mixed[0][1], mixed[0][2], mixed[0][3]);
        of_later = make_uint4(mixed[1][0], mixed[1][1], mixed[1][2], mixed[1][3]);
    }
};
