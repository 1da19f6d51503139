// Split-K reduction of GEMM partial sums in the last block to arrive.
//
// Each of SPLITS adjacent blocks writes its partial tile to global memory, then increments the arrival counter of its
// output tile. The block that observes SPLITS - 1 earlier arrivals adds all partial tiles in block order, so the result
// is deterministic. References: CUDA C++ Programming Guide, "Memory Fence Functions" (last-block reduction); CUTLASS,
// "Parallelized Reductions" (split-K).
//
//     grid:      | tile 0: split 0 .. SPLITS-1 | tile 1: split 0 .. SPLITS-1 | ...
//     partials:  | COUNT sums per block, in the order of the blocks              |
//     arrivals:  | one counter per tile; 0 before and after each launch          |
//
// Traffic: 4 SPLITS bytes written and read per output element.
#pragma once

// Writes `partial(i)` of this block for each of COUNT outputs; the last block calls `store(i, sum)` for each output.
// All BLOCK_THREADS threads of a block must call the function.
template <int SPLITS, int COUNT, int BLOCK_THREADS, class Sum, class Partial, class Store>
__device__ __forceinline__ void split_k_reduce(Sum *partials, unsigned *arrivals, int thread, Partial partial,
                                               Store store) {
    const unsigned tile = blockIdx.x / SPLITS;
    Sum *const block_partials = partials + (u64)blockIdx.x * COUNT;
    for (int index = thread; index < COUNT; index += BLOCK_THREADS) block_partials[index] = partial(index);
    __threadfence();
    __syncthreads();
    __shared__ bool last;
    if (thread == 0) last = atomicAdd(arrivals + tile, 1u) == SPLITS - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    const Sum *const tile_partials = partials + (u64)tile * SPLITS * COUNT;
    for (int index = thread; index < COUNT; index += BLOCK_THREADS) {
        Sum sum = 0;
        for (int split = 0; split < SPLITS; split++) sum += __ldcg(tile_partials + (u64)split * COUNT + index);
        store(index, sum);
    }
    // Resets the counter for the next launch.
    if (thread == 0) arrivals[tile] = 0;
}
