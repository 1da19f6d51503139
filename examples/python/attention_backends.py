"""Attention of PyTorch, restricted to one library each, as implementations that Calorimeter measures."""

import calorimeter
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention


def opener(backend):
    """Function that opens cases of attention by one library."""

    def open_attention(case, inputs, outputs):
        """Attention of PyTorch by one library."""
        sizes = [case[axis] for axis in ("batch", "heads", "sequence", "head_dim")]
        query, key, value = (matrix.view(sizes) for matrix in inputs)
        is_causal = case.subject == "attention_causal"

        def run():
            with sdpa_kernel(backend):
                return scaled_dot_product_attention(query, key, value, is_causal=is_causal)

        return run

    return open_attention


for name, backend in [("torch-cudnn", SDPBackend.CUDNN_ATTENTION), ("torch-flash", SDPBackend.FLASH_ATTENTION)]:
    register = calorimeter.implementation("attention", "attention_causal", name=name, devices=["cuda"])
    register(opener(backend))
