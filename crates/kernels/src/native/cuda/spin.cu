// A chain on one thread. Each step needs the one before, and what is folded onto itself cannot be merged with the next.
// Traffic: none. Roofline: the time from one step to the next that needs it.

typedef unsigned long long u64;

extern "C" __global__ void __launch_bounds__(1) probe_spin(const unsigned *x, unsigned *y, u64 steps, u64) {
    unsigned value = *x;
    for (u64 step = 0; step < steps; step++) value = (value ^ (value >> SHIFT)) * MULTIPLIER + INCREMENT;
    *y = value;
}
