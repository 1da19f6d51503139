// The largest of some numbers, and the sum of the exponentials of the distances to it.
#pragma once
#include "activations.cuh"
#include "total.cuh"

struct tally {
    float largest;
    float sum;
};

__device__ __forceinline__ float minus_infinity() { return __uint_as_float(0xff800000u); }

// What distances are taken to: minus infinity has none to itself.
__device__ __forceinline__ float base_of(float largest) { return largest == minus_infinity() ? 0.0f : largest; }

template <int COUNT> __device__ __forceinline__ void add(tally &all, const float (&values)[COUNT]) {
    float largest = all.largest;
#pragma unroll
    for (int i = 0; i < COUNT; i++) largest = fmaxf(largest, values[i]);
    const float base = base_of(largest);
    float sum = all.sum * exponential(all.largest - base);
#pragma unroll
    for (int i = 0; i < COUNT; i++) sum += exponential(values[i] - base);
    all = {largest, sum};
}

// What all threads of a warp have found, given to each of them.
__device__ __forceinline__ tally warp_tally(tally own) {
    float largest = own.largest;
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
    }
    return {largest, warp_total(own.sum * exponential(own.largest - base_of(largest)))};
}
