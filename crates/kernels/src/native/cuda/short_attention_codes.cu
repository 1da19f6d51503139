// Attention of 16 tokens as the input of a layer, in codes: x -> softmax(q k^T * SCALE) v of every head -> largest magnitude of a
// token -> scale -> codes[rows, STRIDE], scales[rows].
//
// Data flow: a block takes sequences in turn, a warp a head of them; `sixteen_tokens.cuh` has what it does. What it has mixed stays
// in registers, rounded to 16 bits, until all heads know the largest magnitudes of the tokens. Before that its values are there,
// which are on their way while the scores are made.
// Traffic: 3 * rows * HEADS * HEAD elements read, a byte written for each of a third of them. Roofline: memory; 16384 tokens of 4096 in
// bf16 are 470 MB, 109 us at the 4.3 TB/s that a copy reaches on an H200.
#include "input_codes.cuh"
#include "sixteen_tokens.cuh"

// As bits, of all that lanes of a token hold: without signs they are ordered like the numbers.
__device__ __forceinline__ unsigned largest_of_token(unsigned largest) {
    largest = max(largest, __shfl_xor_sync(~0u, largest, 1));
    return max(largest, __shfl_xor_sync(~0u, largest, 2));
}

// The codes of a lane's pieces of a token.
struct stored {
    uint2 *const to;
    const uint4 (&pieces)[PIECES / 4];

    template <class Quotient> __device__ __forceinline__ void operator()(const Quotient &quotient) const {
#pragma unroll
        for (unsigned piece = 0; piece < PIECES / 4; piece++) {
            const unsigned pairs[4] = {pieces[piece].x, pieces[piece].y, pieces[piece].z, pieces[piece].w};
            float numbers[8];
#pragma unroll
            for (int i = 0; i < 8; i++) numbers[i] = quotient(widen((element)(pairs[i / 2] >> 16 * (i % 2))));
            to[4 * piece] = make_uint2(four_codes(numbers[0], numbers[1], numbers[2], numbers[3]),
                                       four_codes(numbers[4], numbers[5], numbers[6], numbers[7]));
        }
    }
};

extern "C" __global__ void __launch_bounds__(32 * HEADS)
    KERNEL(const uint4 *__restrict__ x, unsigned char *__restrict__ codes, float *__restrict__ scales, u64 rows, u64) {
    // In turns, so that nobody has to wait for those who still read.
    __shared__ unsigned of_heads[2][TOKENS][HEADS];
    const unsigned lane = threadIdx.x, head = threadIdx.y, token = lane / 4;
    const u64 sequences = rows / TOKENS;
    bool turn = false;
    for (u64 at = blockIdx.x; at < sequences; at += gridDim.x, turn = !turn) {
        // The last come first: they were written last, so that a cache may still have them.
        const u64 sequence = sequences - 1 - at;
        const uint4 *const of_head = x + (sequence * TOKENS + token) * TOKEN + head * PIECES + lane % 4;
        // Values first, and then what is mixed of them.
        uint4 held[2][PIECES / 4];
#pragma unroll
        for (unsigned piece = 0; piece < PIECES / 4; piece++) {
            held[0][piece] = of_head[2 * PART + 4 * piece];
            held[1][piece] = of_head[8 * TOKEN + 2 * PART + 4 * piece];
        }
        const shares of(of_head);
        unsigned largest[2] = {};
#pragma unroll
        for (unsigned piece = 0; piece < PIECES / 4; piece++) {
            of.mix(held[0][piece], held[1][piece], held[0][piece], held[1][piece]);
            largest[0] = larger(largest[0], held[0][piece]);
            largest[1] = larger(largest[1], held[1][piece]);
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const unsigned most = largest_of_token(larger_half(largest[i]));
            if (lane % 4 == 0) of_heads[turn][token + 8 * i][head] = __float_as_uint(widen((element)most));
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 2; i++) {
            unsigned most = 0;
            for (unsigned other = lane % 4; other < HEADS; other += 4) most = max(most, of_heads[turn][token + 8 * i][other]);
            const float scale = scale_of(largest_of_token(most));
            const u64 row = sequence * TOKENS + token + 8 * i;
            if (head == 0 && lane % 4 == 0) scales[row] = scale;
            uint2 *const to = reinterpret_cast<uint2 *>(codes + row * STRIDE) + head * PIECES + lane % 4;
            encoder(scale).with_quotient(stored{to, held[i]});
        }
    }
}
