// Sums that so many blocks in a row have shares of: the last of them to arrive adds the shares up, always in the same order.
//
// `parts` has room for all sums of every block; `arrived`, one for those that share, is 0 before a launch and after it.
#pragma once

// COUNT sums of SHARERS blocks of BLOCK threads: `own` is a block's share of one, and the last block tells `finish` of each.
// Every thread of a block must call it.
template <int SHARERS, int COUNT, int BLOCK, class Sum, class Own, class Finish>
__device__ __forceinline__ void add_shares(Sum *parts, unsigned *arrived, int thread, Own own, Finish finish) {
    const unsigned together = blockIdx.x / SHARERS;
    Sum *const mine = parts + (u64)blockIdx.x * COUNT;
    for (int at = thread; at < COUNT; at += BLOCK) mine[at] = own(at);
    __threadfence();
    __syncthreads();
    __shared__ bool last;
    if (thread == 0) last = atomicAdd(arrived + together, 1u) == SHARERS - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    const Sum *const all = parts + (u64)together * SHARERS * COUNT;
    for (int at = thread; at < COUNT; at += BLOCK) {
        Sum sum = 0;
        for (int i = 0; i < SHARERS; i++) sum += __ldcg(all + (u64)i * COUNT + at);
        finish(at, sum);
    }
    // For the next launch.
    if (thread == 0) arrived[together] = 0;
}
