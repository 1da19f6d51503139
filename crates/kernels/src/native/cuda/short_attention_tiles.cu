// Attention of 16 tokens by tensor cores, each token to all of its own sequence: y = softmax(q k^T * SCALE) v for every head, of
// numbers of 16 bits; and with TENSOR the scale of codes of y. A warp is a head of a sequence; `sixteen_tokens.cuh` has its data flow.
//
// Traffic and roofline: as in `short_attention.cu`, 125 us for 16384 tokens of 4096.
#include "sixteen_tokens.cuh"
#ifdef TENSOR
#include "largest_of_all.cuh"
#endif

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    KERNEL(const uint4 *__restrict__ x, uint4 *__restrict__ y,
#ifdef TENSOR
           float *__restrict__ scale, unsigned *state,
#endif
           u64 sequences, u64) {
    const u64 at = (u64)blockIdx.x * WARPS + threadIdx.y;
    unsigned largest = 0;
    if (at < sequences * HEADS) {
        const u64 sequence = at / HEADS, head = at % HEADS;
        const unsigned lane = threadIdx.x, token = lane / 4;
        const uint4 *const of_head = x + (sequence * TOKENS + token) * TOKEN + head * PIECES + lane % 4;
        const shares of(of_head);
        uint4 *const to = y + (sequence * TOKENS + token) * PART + head * PIECES + lane % 4;
#pragma unroll 4
        for (unsigned piece = 0; piece < PIECES; piece += 4) {
            uint4 mixed[2];
            of.mix(of_head[2 * PART + piece], of_head[8 * TOKEN + 2 * PART + piece], mixed[0], mixed[1]);
            to[piece] = mixed[0];
            to[8 * PART + piece] = mixed[1];
#ifdef TENSOR
            largest = larger(larger(largest, mixed[0]), mixed[1]);
#endif
        }
    }
#ifdef TENSOR
    scale_of_all<WARPS>(__float_as_uint(widen((element)larger_half(largest))), scale, state);
#endif
}
