//! FLOP and byte counts as other programs publish them: accelerator-microbenchmarks, and branes-ai/graphs for fusion
//! patterns and BLAS.

use super::fusion_counts;
use calorimeter_recipes::{Dtype, Element};
use calorimeter_zoo::{Operator, PublishedCounts, Spec, Task};

const BF16: Element = Element::Float(Dtype::Bf16);

/// Dtype of the inputs if a file specifies none.
pub fn default_element(operator: Operator) -> Element {
    match operator.name() {
        "gemm" | "gemm_accum" | "gemm_simple" | "gemm_multiple_run" | "gemm_throttling" => Element::E4m3,
        "host_device" | "tokamax_splash_attention" => Element::Float(Dtype::F32),
        _ => BF16,
    }
}

/// Returns the counts that another program publishes for a task, if they differ from ours.
pub fn published_counts(task: &Task) -> Option<PublishedCounts> {
    match task {
        Task::Model(_) | Task::Foreign(_) => None,
        Task::Operator(problem) => counts(problem.operator, &problem.spec),
    }
}

fn counts(operator: Operator, spec: &Spec) -> Option<PublishedCounts> {
    let flops = |flops| Some(PublishedCounts { flops: Some(flops), bytes: None });
    let bytes = |bytes| Some(PublishedCounts { flops: None, bytes: Some(bytes) });
    let (m, k, n) = (spec.axis("m"), spec.axis("k"), spec.axis("n"));
    let numbers = m * n;
    // Counted as two bytes per bf16 element, and one byte for any other dtype.
    let width = if spec.element == BF16 { 2 } else { 1 };
    match operator.name() {
        "gemm_multiple_run" | "gemm_simple" | "gemm_throttling" | "gemm" => flops(2 * m * k * n),
        "gemm_fp8_rowwise" | "gemm_fp8_rowwise_static_scaling" | "gemm_fp8_rowwise_w_dequantize" => {
            flops(2 * m * k * n)
        }
        "gemm_simple_with_dtype" => flops((2 * k - 1) * m * n),
        "gemm_accum" => flops(2 * m * k * n + m * n),
        // The input counts twice.
        "quantization" => {
            let bits = u64::from(spec.output.unwrap_or(Element::E4m3).bits());
            bytes(4 * numbers + (numbers * bits).div_ceil(8) + 4 * m)
        }
        "quantization_static_scaling" | "transpose_quantization" | "transpose_quantization_static_scaling" => {
            let of_e4m3 = spec.output.is_none_or(|output| output == Element::E4m3);
            bytes(5 * numbers + 4 * m).filter(|_| of_e4m3)
        }
        "inference_add" | "inference_silu_mul" => bytes(3 * numbers * width),
        "inference_sigmoid" => bytes(2 * numbers * width),
        "inference_rmsnorm" => bytes(3 * numbers * width),
        // For normalizations, the input counts twice.
        "add" | "rmsnorm_fwd" | "rmsnorm_bwd" => bytes(6 * numbers).filter(|_| spec.element == BF16),
        "swiglu_fwd" => bytes(3 * numbers).filter(|_| spec.element == BF16),
        "swiglu_bwd" => bytes(5 * numbers).filter(|_| spec.element == BF16),
        "single_device_hbm_copy" => bytes(2 * spec.dtype().bytes() * spec.axis("num_elements")),
        // branes-ai/graphs omits the result of `dot`. Its counts of other BLAS routines equal ours.
        "dot" => Some(PublishedCounts { flops: Some(2 * n), bytes: Some(2 * n * spec.dtype().bytes()) }),
        // The peer never ran block-scaled GEMMs, and its counts of collectives depend on the cores of TPU chips.
        _ => fusion_counts::counts(operator, spec).map(|peer| PublishedCounts {
            flops: Some(peer.flops),
            // Bytes of the fused kernel, as in our own counts.
            bytes: Some(peer.fused_bytes),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_shapes::Axes;

    fn published_at(
        name: &str,
        axes: &[(&'static str, u64)],
        element: Element,
        output: Option<Element>,
    ) -> Option<PublishedCounts> {
        let spec = Spec { axes: Axes::new(axes.iter().copied()).unwrap(), element, output, training: None };
        let operator: Operator = name.parse().unwrap();
        operator.check(&spec).unwrap();
        counts(operator, &spec)
    }

    #[test]
    fn counts_match_accelerator_microbenchmarks() {
        let flops = |flops| PublishedCounts { flops: Some(flops), bytes: None };
        let bytes = |bytes| PublishedCounts { flops: None, bytes: Some(bytes) };
        let (square, product) = ([("m", 4), ("n", 6)], [("m", 2), ("k", 3), ("n", 5)]);
        let e4m3 = Element::E4m3;
        let cases = [
            ("gemm_multiple_run", &product[..], Element::Float(Dtype::F32), flops(60)),
            ("gemm_simple", &product, e4m3, flops(60)),
            ("gemm_simple_with_dtype", &product, e4m3, flops(50)),
            ("gemm_throttling", &product, BF16, flops(60)),
            ("gemm", &product, e4m3, flops(60)),
            ("gemm_accum", &product, e4m3, flops(70)),
            ("gemm_fp8_rowwise", &product, BF16, flops(60)),
            ("gemm_fp8_rowwise_w_dequantize", &product, BF16, flops(60)),
            ("gemm_fp8_rowwise_static_scaling", &product, BF16, flops(60)),
            ("quantization", &square, BF16, bytes(4 * 24 + 24 + 16)),
            ("quantization_static_scaling", &square, BF16, bytes(5 * 24 + 16)),
            ("transpose_quantization", &square, BF16, bytes(5 * 24 + 16)),
            ("transpose_quantization_static_scaling", &square, BF16, bytes(5 * 24 + 16)),
            ("add", &square, BF16, bytes(144)),
            ("swiglu_fwd", &square, BF16, bytes(72)),
            ("swiglu_bwd", &square, BF16, bytes(120)),
            ("rmsnorm_fwd", &square, BF16, bytes(144)),
            ("rmsnorm_bwd", &square, BF16, bytes(144)),
            ("inference_add", &square, BF16, bytes(144)),
            ("inference_add", &square, Element::Float(Dtype::F32), bytes(72)),
            ("inference_silu_mul", &square, BF16, bytes(144)),
            ("inference_rmsnorm", &square, BF16, bytes(144)),
            ("inference_sigmoid", &square, BF16, bytes(96)),
            ("single_device_hbm_copy", &[("num_elements", 7)], BF16, bytes(28)),
        ];
        for (name, axes, element, expected) in cases {
            assert_eq!(published_at(name, axes, element, None), Some(expected), "{name}");
        }
        assert_eq!(published_at("quantization", &square, BF16, Some(Element::E2m1)), Some(bytes(4 * 24 + 12 + 16)));
        assert_eq!(published_at("gemm_mxfp8_b32", &[("m", 1), ("k", 32), ("n", 1)], BF16, None), None);
    }

    #[test]
    fn collectives_have_no_published_counts() {
        for name in ["all_reduce", "psum", "all_gather", "reduce_scatter", "psum_scatter", "all_to_all"] {
            assert_eq!(published_at(name, &[("matrix_dim", 1), ("devices", 2)], BF16, None), None, "{name}");
        }
        assert_eq!(published_at("send_recv", &[("num_elements", 1024), ("devices", 2)], BF16, None), None);
    }
}
