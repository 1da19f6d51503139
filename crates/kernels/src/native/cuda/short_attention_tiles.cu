// Attention of 16 tokens by tensor cores, each token to all of its own sequence: y = softmax(q k^T * SCALE) v for every head, of
// numbers of 16 bits. A warp is a head of a sequence; `sixteen_tokens.cuh` has its data flow.
//
// Traffic and roofline: as in `short_attention.cu`, 125 us for 16384 tokens of 4096.
#include "sixteen_tokens.cuh"

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    KERNEL(const uint4 *__restrict__ x, uint4 *__restrict__ y, u64 sequences, u64) {
    const u64 at = (u64)blockIdx.x * WARPS + threadIdx.y;
    if (at >= sequences * HEADS) return;
    // The last come first: they were written last, so that a cache may still have them.
    const u64 sequence = sequences - 1 - at / HEADS, head = at % HEADS;
    const unsigned lane = threadIdx.x, token = lane / 4;
    const uint4 *const of_head = x + (sequence * TOKENS + token) * TOKEN + head * PIECES + lane % 4;
    const shares of(of_head);
    uint4 *const to = y + (sequence * TOKENS + token) * PART + head * PIECES + lane % 4;
#pragma unroll 4
    for (unsigned piece = 0; piece < PIECES; piece += 4) {
        of.mix(of_head[2 * PART + piece], of_head[8 * TOKEN + 2 * PART + piece], to[piece], to[8 * PART + piece]);
    }
}
