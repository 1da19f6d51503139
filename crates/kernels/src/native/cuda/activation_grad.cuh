// Backward passes of activations: dx = f'(x) dy, with the upstream gradient dy.
//
// Parameters: those of activations.cuh.
#pragma once
#include "activations.cuh"

__device__ __forceinline__ float relu_grad(float x, float dy) { return x > 0.0f ? dy : 0.0f; }

__device__ __forceinline__ float leakyrelu_grad(float x, float dy) { return x < 0.0f ? 0.01f * dy : dy; }

__device__ __forceinline__ float relu6_grad(float x, float dy) { return x > 0.0f && x < 6.0f ? dy : 0.0f; }

__device__ __forceinline__ float hardswish_grad(float x, float dy) {
    const float derivative = x >= 3.0f ? 1.0f : x <= -3.0f ? 0.0f : fmaf(x, 1.0f / 3.0f, 0.5f);
    return derivative * dy;
}

__device__ __forceinline__ float sigmoid_grad(float x, float dy) {
    const float y = sigmoid(x);
    return y * (1.0f - y) * dy;
}

__device__ __forceinline__ float silu_grad(float x, float dy) {
    const float y = sigmoid(x);
    return y * fmaf(x, 1.0f - y, 1.0f) * dy;
}

// Gradients of a and b for the output silu(a) b.
__device__ __forceinline__ void silu_mul_grad(float a, float b, float dy, float &da, float &db) {
    da = silu_grad(a, dy * b);
    db = dy * silu(a);
}

// GELU'(x) = cdf(x) + x pdf(x) of the standard normal distribution.
__device__ __forceinline__ float gelu_grad(float x, float dy) {
    const float density = 0.3989423f * exp_approx(-0.5f * x * x);
    return fmaf(x, density, normal_cdf(x)) * dy;
}
