// One optimizer step, in f32, with the weight rounded once to its dtype.
//   ADAMW     AdamW (Loshchilov and Hutter 2019), moments in f32:
//               m = BETA1 m + (1 - BETA1) g;  v = BETA2 v + (1 - BETA2) g^2
//               w = w - LEARNING_RATE (m c1 / (sqrt(v c2) + EPSILON) + WEIGHT_DECAY w),  c = 1 / (1 - beta^t)
//   otherwise SGD: w = w - LEARNING_RATE g
//
// Contract: weight, gradient, new_weight[vecs * WIDTH], element dtype; moments f32; outputs do not alias inputs.
//
// One vector of WIDTH elements per thread.
//
// Traffic: every operand once; 22 bytes per bf16 weight with AdamW, 6 with SGD. Roofline: memory.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH          elements per vector access (element.cuh)
//   KERNEL         kernel name
//   THREADS        threads per block
//   LEARNING_RATE  float
// Optional:
//   ADAMW          AdamW instead of SGD; requires the following macros, all floats
//   BETA1, BETA2   decay rates of the moments
//   ONE_MINUS_BETA1, ONE_MINUS_BETA2  1 - BETA, computed in f64 and rounded
//   INV_BIAS_CORRECTION1, INV_BIAS_CORRECTION2  1 / (1 - beta^t)
//   EPSILON        addend of the denominator
//   WEIGHT_DECAY   decoupled weight decay

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif
#ifndef THREADS
#error "THREADS: threads per block"
#endif
#ifndef LEARNING_RATE
#error "LEARNING_RATE: float"
#endif

#include "element.cuh"

struct __align__(WIDTH * sizeof(float)) float_vec {
    float val[WIDTH];
};

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const vec *__restrict__ weight, const vec *__restrict__ gradient,
#ifdef ADAMW
           const float_vec *__restrict__ mean, const float_vec *__restrict__ square,
#endif
           vec *__restrict__ new_weight,
#ifdef ADAMW
           float_vec *__restrict__ new_mean, float_vec *__restrict__ new_square,
#endif
           u64 vecs, u64) {
    const u64 v = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (v >= vecs) return;
    const vec weight_vec = weight[v], gradient_vec = gradient[v];
    float results[WIDTH];
#ifdef ADAMW
    const float_vec mean_vec = mean[v], square_vec = square[v];
    float_vec means, squares;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        const float w = widen(weight_vec.val[i]), g = widen(gradient_vec.val[i]);
        means.val[i] = BETA1 * mean_vec.val[i] + ONE_MINUS_BETA1 * g;
        squares.val[i] = BETA2 * square_vec.val[i] + ONE_MINUS_BETA2 * g * g;
        const float direction =
            means.val[i] * INV_BIAS_CORRECTION1 / (sqrtf(squares.val[i] * INV_BIAS_CORRECTION2) + EPSILON);
        results[i] = w - LEARNING_RATE * (direction + WEIGHT_DECAY * w);
    }
    new_mean[v] = means;
    new_square[v] = squares;
#else
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        results[i] = widen(weight_vec.val[i]) - LEARNING_RATE * widen(gradient_vec.val[i]);
    }
#endif
    new_weight[v] = narrow_all(results);
}
