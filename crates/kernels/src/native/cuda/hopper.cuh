// What Hopper's tensor cores are told: products of warp groups (wgmma), with operands in memory that a block shares, swizzled in
// rows of 128 bytes; and the barriers and copies that bring operands there.
#pragma once

#include "halves.cuh"

__device__ __forceinline__ unsigned shared_address(const void *pointer) { return (unsigned)__cvta_generic_to_shared(pointer); }

template <int COUNT> __device__ __forceinline__ void keep_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT> __device__ __forceinline__ void more_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

__device__ __forceinline__ void wait_for_group(int name, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(name), "r"(threads) : "memory");
}

// Barriers: so many arrivals end a phase; who waits names the parity of the phase.
__device__ __forceinline__ void initialize(unsigned barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void wait(unsigned barrier, int parity) {
    asm volatile(
        "{\n.reg .pred done;\nWAITING:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra WAITING;\n}" ::"r"(barrier), "r"(parity) : "memory");
}

// Arrives at the barrier of another block of the cluster that lies where this block's does. Not as a release to the cluster: nothing
// was written, and that would wait for all memory, some 1000 cycles a step.
__device__ __forceinline__ void arrive_at(unsigned barrier, unsigned block) {
    asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(barrier), "r"(block)
                 : "memory");
}
__device__ __forceinline__ void wait_for_cluster() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Of bytes that copies will bring to a barrier's phase, besides an arrival.
__device__ __forceinline__ void expect(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Those of a ring of stages: one thread tells that a stage is ready, and so many that it is free.
template <int LENGTH> __device__ __forceinline__ void initialize_ring(unsigned ready, unsigned free, int readers) {
    for (int stage = 0; stage < LENGTH; stage++) {
        initialize(ready + 8 * stage, 1);
        initialize(free + 8 * stage, readers);
    }
}

// Until all threads of the block know the barriers that were made, and so does what copies.
__device__ __forceinline__ void show_barriers() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
}

// A matrix as the copies of boxes know it: columns of 64 numbers by some rows, swizzled, zero beyond its ends.
struct __align__(64) tensor_map {
    u64 words[16];
};

// Starts the copy of a box, which one thread does for all.
__device__ __forceinline__ void bring_box(unsigned to, const tensor_map &matrix, int column, int row, int plane, unsigned barrier) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to), "l"(&matrix), "r"(barrier), "r"(column), "r"(row), "r"(plane)
                 : "memory");
}
// The same to that place of both blocks of a cluster, each of which is told at its own barrier.
__device__ __forceinline__ void bring_box_to_both(unsigned to, const tensor_map &matrix, int column, int row, unsigned barrier) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to), "l"(&matrix), "r"(barrier), "r"(column), "r"(row), "r"(0),
                 "h"((unsigned short)3)
                 : "memory");
}
// Starts the copy of so many bytes as they lie, a multiple of 16.
__device__ __forceinline__ void bring_bytes(unsigned to, const void *from, unsigned bytes, unsigned barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
                 "r"(bytes), "r"(barrier)
                 : "memory");
}

// Where an operand lies, in columns of 64 numbers. Groups of eight rows are 1024 bytes apart.
__device__ __forceinline__ u64 operand(unsigned address, unsigned column_bytes) {
    return (1ull << 62) | (1024ull >> 4) << 32 | (u64)(column_bytes >> 4) << 16 | (address & 0x3ffff) >> 4;
}
// One whose rows are summed over, and one whose columns are, which may be several columns wide.
__device__ __forceinline__ u64 along_rows(unsigned address) { return operand(address, 16); }
__device__ __forceinline__ u64 across_rows(unsigned address, unsigned column_bytes) { return operand(address, column_bytes); }

__device__ __forceinline__ void fence_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until no more than so many groups of products are left.
template <int LEFT> __device__ __forceinline__ void leave_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}
// The same, after which the sums of the others may be read.
__device__ __forceinline__ void settle(float &sum) { asm volatile("" : "+f"(sum)::"memory"); }
__device__ __forceinline__ void settle(int &sum) { asm volatile("" : "+r"(sum)::"memory"); }
template <int LEFT, typename SUM, int COUNT> __device__ __forceinline__ void finish_products(SUM (&sums)[COUNT]) {
    leave_products<LEFT>();
#pragma unroll
    for (int at = 0; at < COUNT; at++) settle(sums[at]);
}

// Four words in each of four lanes: afterwards a lane has those of its number, in the order of the lanes.
__device__ __forceinline__ void turn(unsigned (&words)[4], int lane) {
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

// A place in the ring, and how often it was passed.
template <int LENGTH> struct place {
    int stage;
    unsigned round;
    __device__ __forceinline__ void next() {
        if (++stage == LENGTH) stage = 0, round++;
    }
};

// The registers of 32, 64 or 128 sums, as operands of an instruction from 0 on, and what they are bound to.
#define REGISTERS_32 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define REGISTERS_64 \
    REGISTERS_32 ", " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define REGISTERS_128 \
    REGISTERS_64 ", " \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define BOUND_8(how, d, at) \
    how(d[at]), how(d[at + 1]), how(d[at + 2]), how(d[at + 3]), how(d[at + 4]), how(d[at + 5]), how(d[at + 6]), how(d[at + 7])
#define BOUND_32(how, d, at) BOUND_8(how, d, at), BOUND_8(how, d, at + 8), BOUND_8(how, d, at + 16), BOUND_8(how, d, at + 24)
#define BOUND_64(how, d) BOUND_32(how, d, 0), BOUND_32(how, d, 32)
#define BOUND_128(how, d) BOUND_64(how, d), BOUND_32(how, d, 64), BOUND_32(how, d, 96)

// 64 rows of sums of 16 products each, from two operands in shared memory; on top of what is there if `more`.
__device__ __forceinline__ void multiply_shared(float (&d)[64], u64 a, u64 b, int more) {
    asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32." NUMBERS "." NUMBERS " {" REGISTERS_64
                 "}, %64, %65, more, 1, 1, 0, 0;\n}"
                 : BOUND_64("+f", d)
                 : "l"(a), "l"(b), "r"(more));
}

// The same of rows in registers, and of an operand of 128, 64, 32 or 16 columns; ACROSS if its columns are summed over.
template <bool ACROSS> __device__ __forceinline__ void multiply_registers(float (&d)[64], const unsigned *a, u64 b, int more) {
    asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32." NUMBERS "." NUMBERS " {" REGISTERS_64
                 "}, {%64, %65, %66, %67}, %68, more, 1, 1, %70;\n}"
                 : BOUND_64("+f", d)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more), "n"(ACROSS));
}
template <bool ACROSS> __device__ __forceinline__ void multiply_registers(float (&d)[32], const unsigned *a, u64 b, int more) {
    asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32." NUMBERS "." NUMBERS " {" REGISTERS_32
                 "}, {%32, %33, %34, %35}, %36, more, 1, 1, %38;\n}"
                 : BOUND_32("+f", d, 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more), "n"(ACROSS));
}
template <bool ACROSS> __device__ __forceinline__ void multiply_registers(float (&d)[16], const unsigned *a, u64 b, int more) {
    asm volatile(
        "{\n.reg .pred more;\nsetp.ne.b32 more, %21, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k16.f32." NUMBERS "." NUMBERS " {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
        "}, {%16, %17, %18, %19}, %20, more, 1, 1, %22;\n}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more), "n"(ACROSS));
}
template <bool ACROSS> __device__ __forceinline__ void multiply_registers(float (&d)[8], const unsigned *a, u64 b, int more) {
    asm volatile(
        "{\n.reg .pred more;\nsetp.ne.b32 more, %13, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n16k16.f32." NUMBERS "." NUMBERS " {"
        "%0, %1, %2, %3, %4, %5, %6, %7"
        "}, {%8, %9, %10, %11}, %12, more, 1, 1, %14;\n}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more), "n"(ACROSS));
}
