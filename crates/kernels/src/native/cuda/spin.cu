// Latency probe: one thread evaluates a dependent chain of xor-shift and multiply-add steps,
//   value = (value ^ (value >> SHIFT)) * MULTIPLIER + INCREMENT,
// which the compiler can neither reorder nor merge.
//
// Contract: x[1] -> y[1], u32; `steps` steps. Traffic: none. Roofline: latency of one step times `steps`.
//
// Parameters:
//   MULTIPLIER  factor of a step, u32
//   INCREMENT   addend of a step, u32
//   SHIFT       shift of a step in bits

#ifndef MULTIPLIER
#error "MULTIPLIER: factor of a step, u32"
#endif
#ifndef INCREMENT
#error "INCREMENT: addend of a step, u32"
#endif
#ifndef SHIFT
#error "SHIFT: shift of a step in bits"
#endif

typedef unsigned long long u64;

extern "C" __global__ void __launch_bounds__(1) probe_spin(const unsigned *x, unsigned *y, u64 steps, u64) {
    unsigned value = *x;
    for (u64 step = 0; step < steps; step++) value = (value ^ (value >> SHIFT)) * MULTIPLIER + INCREMENT;
    *y = value;
}
