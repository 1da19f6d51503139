// The slopes of activations, times what came back of what they made: dx = slope(x) dy.
#pragma once
#include "activations.cuh"

__device__ __forceinline__ float relu_slope(float x, float dy) { return x > 0.0f ? dy : 0.0f; }

__device__ __forceinline__ float leakyrelu_slope(float x, float dy) { return x < 0.0f ? 0.01f * dy : dy; }

__device__ __forceinline__ float relu6_slope(float x, float dy) { return x > 0.0f && x < 6.0f ? dy : 0.0f; }

__device__ __forceinline__ float hardswish_slope(float x, float dy) {
    const float slope = x >= 3.0f ? 1.0f : x <= -3.0f ? 0.0f : fmaf(x, 1.0f / 3.0f, 0.5f);
    return slope * dy;
}

__device__ __forceinline__ float sigmoid_slope(float x, float dy) {
    const float y = sigmoid(x);
    return y * (1.0f - y) * dy;
}

__device__ __forceinline__ float silu_slope(float x, float dy) {
    const float y = sigmoid(x);
    return y * fmaf(x, 1.0f - y, 1.0f) * dy;
}

// What comes back of silu(a) b to a and to b.
__device__ __forceinline__ void gated_gradient(float a, float b, float dy, float &da, float &db) {
    da = silu_slope(a, dy * b);
    db = dy * silu(a);
}

// The share of a normal distribution below x, and x times its density there.
__device__ __forceinline__ float gelu_slope(float x, float dy) {
    const float density = 0.3989423f * exponential(-0.5f * x * x);
    return fmaf(x, density, normal_share(x)) * dy;
}
