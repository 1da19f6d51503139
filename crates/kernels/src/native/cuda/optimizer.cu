// A weight after a step of its optimizer, in f32 and rounded once to its type. With ADAMW: w loses a share of itself, and a step
// along the mean of its gradients over the root of the mean of their squares, both moments in f32 and written anew. Without: w
// loses a share of its gradient.
//
// A thread takes WIDTH numbers. Traffic: every operand once, 22 bytes for each weight in bf16 under AdamW, 6 without.
// Roofline: memory.
#include "element.cuh"

struct __align__(WIDTH * sizeof(float)) floats {
    float parts[WIDTH];
};

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const piece *__restrict__ weight, const piece *__restrict__ gradient,
#ifdef ADAMW
           const floats *__restrict__ mean, const floats *__restrict__ square,
#endif
           piece *__restrict__ new_weight,
#ifdef ADAMW
           floats *__restrict__ new_mean, floats *__restrict__ new_square,
#endif
           u64 pieces, u64) {
    const u64 at = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (at >= pieces) return;
    const piece of_weight = weight[at], of_gradient = gradient[at];
    float results[WIDTH];
#ifdef ADAMW
    const floats of_mean = mean[at], of_square = square[at];
    floats means, squares;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        const float w = widen(of_weight.parts[i]), g = widen(of_gradient.parts[i]);
        means.parts[i] = FIRST_BETA * of_mean.parts[i] + FIRST_REST * g;
        squares.parts[i] = SECOND_BETA * of_square.parts[i] + SECOND_REST * g * g;
        const float direction =
            means.parts[i] * FIRST_CORRECTION / (sqrtf(squares.parts[i] * SECOND_CORRECTION) + EPSILON);
        results[i] = w - LEARNING_RATE * (direction + DECAY * w);
    }
    new_mean[at] = means;
    new_square[at] = squares;
#else
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        results[i] = widen(of_weight.parts[i]) - LEARNING_RATE * widen(of_gradient.parts[i]);
    }
#endif
    new_weight[at] = narrow_all(results);
}
