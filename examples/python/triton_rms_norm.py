"""RMS normalization in Triton, as an implementation that Calorimeter measures."""

import calorimeter
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x, gain, y, width, epsilon, BLOCK: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, BLOCK)
    inside = columns < width
    values = tl.load(x + row * width + columns, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(values * values) / width + epsilon)
    gains = tl.load(gain + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * width + columns, values * scale * gains, mask=inside)


# On the CPU, Triton runs kernels only in its interpreter: TRITON_INTERPRET=1.
@calorimeter.implementation("rms_norm", name="my-triton", devices=["cpu", "cuda"], libraries=["triton"])
def open_rms_norm(case, inputs, outputs):
    """RMS normalization with one program per row."""
    (x, gain), (y,) = inputs, outputs
    rows, width = x.shape
    block = triton.next_power_of_2(width)

    def run():
        rms_norm_kernel[(rows,)](x, gain, y, width, 1e-5, BLOCK=block)

    return run
