// Primitives of Hopper (sm_90a): mbarriers, TMA and bulk copies, and warp-group matrix multiplication (wgmma) with
// operands in shared memory.
//
// References: PTX ISA, sections "mbarrier", "cp.async.bulk.tensor", "wgmma.mma_async", "Matrix Descriptor Format",
// "setmaxnreg"; CUTLASS, `cute/arch/copy_sm90_tma.hpp`, `cute/arch/mma_sm90_gmma.hpp` and
// `cutlass/pipeline/sm90_pipeline.hpp`.
//
// Shared-memory tiles use the 128-byte swizzle: rows of 128 bytes, and the 16-byte vector v of row r is at position v ^
// (r % 8). Eight rows of one vector column touch all 32 banks once. A group of 8 rows is 1024 bytes.
//
//     row 0:  v0 v1 v2 v3 v4 v5 v6 v7        row 4:  v4 v5 v6 v7 v0 v1 v2 v3
//     row 1:  v1 v0 v3 v2 v5 v4 v7 v6        row 5:  v5 v4 v7 v6 v1 v0 v3 v2
//     row 2:  v2 v3 v0 v1 v6 v7 v4 v5        row 6:  v6 v7 v4 v5 v2 v3 v0 v1
//     row 3:  v3 v2 v1 v0 v7 v6 v5 v4        row 7:  v7 v6 v5 v4 v3 v2 v1 v0
//
//     full[stage]:   the producer's TMA loads complete it, consumers wait for it
//     empty[stage]:  consumers arrive at it, the producer waits for it
//
// Accumulator fragment of wgmma m64nNk*: warp w of the group holds rows 16 w to 16 w + 15; d[4 j + 2 h + i] of a lane
// is row 16 w + lane / 4 + 8 h, column 8 j + 2 (lane % 4) + i.
//
// Include element.cuh first: it defines u64.
//
// Parameters:
//   ELEMENT_BF16  optional: 16-bit operands are bf16; otherwise they are f16 (mma16.cuh)
#pragma once

#include "mma16.cuh"

__device__ __forceinline__ unsigned shared_address(const void *pointer) {
    return (unsigned)__cvta_generic_to_shared(pointer);
}

template <int COUNT> __device__ __forceinline__ void warpgroup_reg_dealloc() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT> __device__ __forceinline__ void warpgroup_reg_alloc() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

__device__ __forceinline__ void named_barrier_sync(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// mbarriers. A phase ends after `arrivals` arrivals; a waiter passes the parity of the phase.
__device__ __forceinline__ void mbarrier_init(unsigned barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void mbarrier_arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void mbarrier_wait(unsigned barrier, int parity) {
    asm volatile(
        "{\n.reg .pred complete;\nWAITING:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
        "@!complete bra WAITING;\n}" ::"r"(barrier),
        "r"(parity)
        : "memory");
}

// Arrives at the barrier at the same offset in another block of the cluster. Without release semantics at cluster
// scope: consumers have written nothing, and a release would wait for all outstanding memory accesses.
__device__ __forceinline__ void mbarrier_arrive_remote(unsigned barrier, unsigned block) {
    asm volatile(
        "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier),
        "r"(block)
        : "memory");
}
__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Arrives, and adds `bytes` to the bytes that copies must deliver before the phase ends.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Initializes the barriers of a pipeline: one producer thread arrives at `full`, `consumers` arrive at `empty`.
template <int DEPTH>
__device__ __forceinline__ void init_pipeline_barriers(unsigned full, unsigned empty, int consumers) {
    for (int stage = 0; stage < DEPTH; stage++) {
        mbarrier_init(full + 8 * stage, 1);
        mbarrier_init(empty + 8 * stage, consumers);
    }
}

// Makes initialized barriers visible to all threads of the block and to the async proxy.
__device__ __forceinline__ void publish_barriers() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
}

// CUtensorMap of the driver API: boxes of 64 16-bit elements by a number of rows, 128-byte swizzle, zero fill out of
// bounds.
struct __align__(64) tensor_map {
    u64 words[16];
};

__device__ __forceinline__ void prefetch_tensor_map(const tensor_map &matrix) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&matrix) : "memory");
}

// Starts a TMA load of one box; called by one thread.
__device__ __forceinline__ void tma_load(unsigned destination, const tensor_map &matrix, int column, int row, int plane,
                                         unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(destination),
        "l"(&matrix), "r"(barrier), "r"(column), "r"(row), "r"(plane)
        : "memory");
}
// Starts a TMA load of one box into the same offset of the blocks of a cluster whose bits are set in `blocks`. Each
// block is notified at its own barrier.
__device__ __forceinline__ void tma_load_multicast(unsigned destination, const tensor_map &matrix, int column, int row,
                                                   unsigned barrier, unsigned short blocks) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(destination),
        "l"(&matrix), "r"(barrier), "r"(column), "r"(row), "r"(0), "h"(blocks)
        : "memory");
}
// Starts a contiguous copy of `bytes` bytes, a multiple of 16.
__device__ __forceinline__ void bulk_load(unsigned destination, const void *source, unsigned bytes, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(destination),
        "l"(source), "r"(bytes), "r"(barrier)
        : "memory");
}

// Matrix descriptor of a tile with 128-byte swizzle. The stride between groups of eight rows is 1024 bytes.
__device__ __forceinline__ u64 smem_descriptor(unsigned address, unsigned leading_bytes) {
    return (1ull << 62) | (1024ull >> 4) << 32 | (u64)(leading_bytes >> 4) << 16 | (address & 0x3ffff) >> 4;
}
// Descriptors of a K-major operand (k is contiguous), and of an MN-major one, which may span several columns of 64
// elements.
__device__ __forceinline__ u64 k_major(unsigned address) { return smem_descriptor(address, 16); }
__device__ __forceinline__ u64 mn_major(unsigned address, unsigned leading_bytes) {
    return smem_descriptor(address, leading_bytes);
}

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most PENDING committed wgmma groups are in flight.
template <int PENDING> __device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}
// Prevents the compiler from moving accesses to an accumulator across a wait.
__device__ __forceinline__ void fence_register(float &accumulator) { asm volatile("" : "+f"(accumulator)::"memory"); }
__device__ __forceinline__ void fence_register(int &accumulator) { asm volatile("" : "+r"(accumulator)::"memory"); }
template <int PENDING, typename Accumulator, int COUNT>
__device__ __forceinline__ void wgmma_wait_accumulators(Accumulator (&accumulators)[COUNT]) {
    wgmma_wait<PENDING>();
#pragma unroll
    for (int i = 0; i < COUNT; i++) fence_register(accumulators[i]);
}

// Transposes a 4 x 4 matrix of words held by four adjacent lanes: lane l then holds word l of each lane, in lane order.
__device__ __forceinline__ void transpose_4x4(unsigned (&words)[4], int lane) {
#pragma unroll
    for (int pair = 0; pair < 4; pair += 2) {
        const bool odd = lane & 1;
        const unsigned other = __shfl_xor_sync(~0u, odd ? words[pair] : words[pair + 1], 1);
        (odd ? words[pair] : words[pair + 1]) = other;
    }
#pragma unroll
    for (int pair = 0; pair < 2; pair++) {
        const bool high = lane & 2;
        const unsigned other = __shfl_xor_sync(~0u, high ? words[pair] : words[pair + 2], 2);
        (high ? words[pair] : words[pair + 2]) = other;
    }
}

// Position in a pipeline: stage, and number of completed rounds over all stages. The parity of a phase is round % 2.
template <int DEPTH> struct pipeline_state {
    int stage;
    unsigned round;
    __device__ __forceinline__ void advance() {
        if (++stage == DEPTH) stage = 0, round++;
    }
};

// Operand lists of accumulator registers from %0 on, and the matching constraints for inline assembly.
#define ACCUMULATORS_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define ACCUMULATORS_16 ACCUMULATORS_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define ACCUMULATORS_32 \
    ACCUMULATORS_16 ", %16, %17, %18, %19, %20, %21, %22, %23" \
                    ", %24, %25, %26, %27, %28, %29, %30, %31"
#define ACCUMULATORS_48 \
    ACCUMULATORS_32 ", %32, %33, %34, %35, %36, %37, %38, %39" \
                    ", %40, %41, %42, %43, %44, %45, %46, %47"
#define ACCUMULATORS_64 \
    ACCUMULATORS_48 ", %48, %49, %50, %51, %52, %53, %54, %55" \
                    ", %56, %57, %58, %59, %60, %61, %62, %63"
#define ACCUMULATORS_80 \
    ACCUMULATORS_64 ", %64, %65, %66, %67, %68, %69, %70, %71" \
                    ", %72, %73, %74, %75, %76, %77, %78, %79"
#define ACCUMULATORS_96 \
    ACCUMULATORS_80 ", %80, %81, %82, %83, %84, %85, %86, %87" \
                    ", %88, %89, %90, %91, %92, %93, %94, %95"
#define ACCUMULATORS_112 \
    ACCUMULATORS_96 ", %96, %97, %98, %99, %100, %101, %102, %103" \
                    ", %104, %105, %106, %107, %108, %109, %110, %111"
#define ACCUMULATORS_128 \
    ACCUMULATORS_112 ", %112, %113, %114, %115, %116, %117, %118, %119" \
                    ", %120, %121, %122, %123, %124, %125, %126, %127"
#define BIND_8(constraint, d, i)                                                                              \
    constraint(d[i]), constraint(d[i + 1]), constraint(d[i + 2]), constraint(d[i + 3]), constraint(d[i + 4]), \
        constraint(d[i + 5]), constraint(d[i + 6]), constraint(d[i + 7])
#define BIND_16(constraint, d, i) BIND_8(constraint, d, i), BIND_8(constraint, d, i + 8)
#define BIND_32(constraint, d, i) BIND_16(constraint, d, i), BIND_16(constraint, d, i + 16)
#define BIND_48(constraint, d, i) BIND_32(constraint, d, i), BIND_16(constraint, d, i + 32)
#define BIND_64(constraint, d, i) BIND_32(constraint, d, i), BIND_32(constraint, d, i + 32)
#define BIND_80(constraint, d, i) BIND_64(constraint, d, i), BIND_16(constraint, d, i + 64)
#define BIND_96(constraint, d, i) BIND_64(constraint, d, i), BIND_32(constraint, d, i + 64)
#define BIND_128(constraint, d, i) BIND_64(constraint, d, i), BIND_64(constraint, d, i + 64)

// m64n128k16 with both operands in shared memory; overwrites d unless `accumulate` is set.
__device__ __forceinline__ void wgmma_shared(float (&d)[64], u64 a, u64 b, int accumulate) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32." MMA_DTYPE "." MMA_DTYPE " {" ACCUMULATORS_64
        "}, %64, %65, accumulate, 1, 1, 0, 0;\n}"
        : BIND_64("+f", d, 0)
        : "l"(a), "l"(b), "r"(accumulate));
}

// m64nNk16 with A in registers and B in shared memory; MN_MAJOR if B is MN-major. The operands after the COUNT = N / 2
// accumulators are numbered A0 to A3, B, ACCUMULATE and MAJOR.
#define WGMMA_REGISTERS(N, COUNT, A0, A1, A2, A3, B, ACCUMULATE, MAJOR)                                           \
    template <bool MN_MAJOR>                                                                                      \
    __device__ __forceinline__ void wgmma_registers(float (&d)[COUNT], const unsigned *a, u64 b, int accumulate) { \
        asm volatile("{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %" #ACCUMULATE ", 0;\n"                  \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." MMA_DTYPE "." MMA_DTYPE                    \
                     " {" ACCUMULATORS_##COUNT "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #B                \
                     ", accumulate, 1, 1, %" #MAJOR ";\n}"                                                        \
                     : BIND_##COUNT("+f", d, 0)                                                                   \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(MN_MAJOR));       \
    }
WGMMA_REGISTERS(16, 8, 8, 9, 10, 11, 12, 13, 14)
WGMMA_REGISTERS(32, 16, 16, 17, 18, 19, 20, 21, 22)
WGMMA_REGISTERS(64, 32, 32, 33, 34, 35, 36, 37, 38)
WGMMA_REGISTERS(96, 48, 48, 49, 50, 51, 52, 53, 54)
WGMMA_REGISTERS(128, 64, 64, 65, 66, 67, 68, 69, 70)
WGMMA_REGISTERS(160, 80, 80, 81, 82, 83, 84, 85, 86)
WGMMA_REGISTERS(192, 96, 96, 97, 98, 99, 100, 101, 102)
WGMMA_REGISTERS(256, 128, 128, 129, 130, 131, 132, 133, 134)
