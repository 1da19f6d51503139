//! FLOP and traffic counts of fusion patterns in branes-ai/graphs.

use calorimeter_zoo::{Operator, Spec};

/// Counts of a pattern in branes-ai/graphs, which measures in f32 only. Bytes scale with the dtype.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PeerFusion {
    /// Floating-point operations, fused or not.
    pub flops: u64,
    /// Traffic of separate kernels in bytes.
    pub unfused_bytes: u64,
    /// Traffic of one fused kernel in bytes.
    pub fused_bytes: u64,
}

#[cfg(test)]
impl PeerFusion {
    /// Fraction of the traffic that fusion saves.
    fn memory_reduction(&self) -> f64 {
        1.0 - self.fused_bytes as f64 / self.unfused_bytes as f64
    }
}

/// Returns the counts of an operator in branes-ai/graphs, if it exists there.
pub(super) fn counts(operator: Operator, spec: &Spec) -> Option<PeerFusion> {
    let (flops, unfused, fused) = match operator.name() {
        "linear_bias" => linear(spec, 0, 3),
        "linear_bias_relu" => linear(spec, 0, 5),
        "linear_bias_gelu" => linear(spec, 8, 5),
        "conv2d_relu" => conv2d(spec, 0, |ConvSizes { x, w, y, features }| x + w + features + 3 * y),
        "conv2d_bn" => conv2d(spec, 2, |ConvSizes { x, w, y, .. }| x + w + 3 * y),
        "conv2d_bn_relu" => conv2d(spec, 2, |ConvSizes { x, w, y, .. }| x + w + 5 * y),
        "qk_scores" => attention(spec, |AttentionSizes { q, s, width }| (2 * s * width + s, 2 * q + 3 * s, 2 * q + s)),
        "qk_softmax" => {
            attention(spec, |AttentionSizes { q, s, width }| (2 * s * width + 6 * s, 2 * q + 4 * s, 2 * q + s))
        }
        "full_attention" => {
            attention(spec, |AttentionSizes { q, s, width }| (4 * s * width + 6 * s, 4 * q + 3 * s, 4 * q))
        }
        _ => return None,
    };
    let bytes = spec.dtype().bytes();
    Some(PeerFusion { flops, unfused_bytes: unfused * bytes, fused_bytes: fused * bytes })
}

/// Operations, elements moved by separate kernels, elements moved by one kernel.
type TrafficCounts = (u64, u64, u64);

// A GELU counts eight operations and a ReLU none. The traffic equals our model.
fn linear(spec: &Spec, each: u64, passes: u64) -> TrafficCounts {
    let (m, k, n) = (spec.axis("m"), spec.axis("k"), spec.axis("n"));
    let (x, w, y) = (m * k, n * k, m * n);
    (2 * m * k * n + y + each * y, x + w + passes * y + n, x + w + n + y)
}

/// Element counts of the tensors of a convolution.
struct ConvSizes {
    x: u64,
    w: u64,
    y: u64,
    features: u64,
}

// Normalization counts two operations per element; bias and ReLU count none. Unlike our model, the traffic excludes the
// parameters of the normalization.
fn conv2d(spec: &Spec, each: u64, unfused: fn(&ConvSizes) -> u64) -> TrafficCounts {
    let size = spec.axis("size").pow(2);
    let (channels, features) = (spec.axis("in_channels"), spec.axis("out_channels"));
    let taps = channels * spec.axis("kernel").pow(2);
    let (x, w, y) = (spec.axis("batch") * channels * size, features * taps, spec.axis("batch") * features * size);
    (2 * taps * y + each * y, unfused(&ConvSizes { x, w, y, features }), x + w + features + y)
}

/// Element counts of queries and scores.
struct AttentionSizes {
    q: u64,
    s: u64,
    width: u64,
}

// The traffic has fewer passes over the scores than our model: one less for softmax, three less for full attention,
// whose kernels count as writing the scores but not as reading them.
fn attention(spec: &Spec, counts: fn(AttentionSizes) -> TrafficCounts) -> TrafficCounts {
    let (rows, sequence, width) =
        (spec.axis("batch") * spec.axis("sequence"), spec.axis("sequence"), spec.axis("dimension"));
    counts(AttentionSizes { q: rows * width, s: rows * sequence, width })
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_recipes::{Dtype, Element};
    use calorimeter_shapes::Axes;

    const LINEAR: &[&str] = &["m", "k", "n"];
    const CONV: &[&str] = &["batch", "in_channels", "out_channels", "size", "kernel"];
    const ATTENTION: &[&str] = &["batch", "sequence", "dimension"];

    /// Name, axes, sizes, operations, unfused and fused bytes, and fraction saved, as published for f32.
    type Row = (&'static str, &'static [&'static str], &'static [u64], u64, u64, u64, f64);

    #[rustfmt::skip]
    const GOLDEN: [Row; 27] = [
        ("linear_bias", LINEAR, &[128, 512, 512], 67174400, 2099200, 1574912, 0.249756),
        ("linear_bias_relu", LINEAR, &[128, 512, 512], 67174400, 2623488, 1574912, 0.399688),
        ("linear_bias_gelu", LINEAR, &[128, 512, 512], 67698688, 2623488, 1574912, 0.399688),
        ("linear_bias", LINEAR, &[512, 1024, 1024], 1074266112, 12587008, 8392704, 0.333225),
        ("linear_bias_relu", LINEAR, &[512, 1024, 1024], 1074266112, 16781312, 8392704, 0.499878),
        ("linear_bias_gelu", LINEAR, &[512, 1024, 1024], 1078460416, 16781312, 8392704, 0.499878),
        ("linear_bias", LINEAR, &[1024, 2048, 2048], 8592031744, 50339840, 33562624, 0.333279),
        ("linear_bias_relu", LINEAR, &[1024, 2048, 2048], 8592031744, 67117056, 33562624, 0.499939),
        ("linear_bias_gelu", LINEAR, &[1024, 2048, 2048], 8608808960, 67117056, 33562624, 0.499939),
        ("conv2d_relu", CONV, &[1, 64, 64, 56, 3], 231211008, 3358976, 1753344, 0.478012),
        ("conv2d_bn", CONV, &[1, 64, 64, 56, 3], 231612416, 3358720, 1753344, 0.477973),
        ("conv2d_bn_relu", CONV, &[1, 64, 64, 56, 3], 231612416, 4964352, 1753344, 0.646813),
        ("conv2d_relu", CONV, &[4, 128, 128, 28, 3], 924844032, 7012864, 3801600, 0.457910),
        ("conv2d_bn", CONV, &[4, 128, 128, 28, 3], 925646848, 7012352, 3801600, 0.457871),
        ("conv2d_bn_relu", CONV, &[4, 128, 128, 28, 3], 925646848, 10223616, 3801600, 0.628155),
        ("conv2d_relu", CONV, &[8, 256, 256, 14, 3], 1849688064, 8782848, 5571584, 0.365629),
        ("conv2d_bn", CONV, &[8, 256, 256, 14, 3], 1850490880, 8781824, 5571584, 0.365555),
        ("conv2d_bn_relu", CONV, &[8, 256, 256, 14, 3], 1850490880, 11993088, 5571584, 0.535434),
        ("qk_scores", ATTENTION, &[1, 128, 64], 2113536, 262144, 131072, 0.500000),
        ("qk_softmax", ATTENTION, &[1, 128, 64], 2195456, 327680, 131072, 0.600000),
        ("full_attention", ATTENTION, &[1, 128, 64], 4292608, 327680, 131072, 0.600000),
        ("qk_scores", ATTENTION, &[4, 256, 64], 33816576, 3670016, 1572864, 0.571429),
        ("qk_softmax", ATTENTION, &[4, 256, 64], 35127296, 4718592, 1572864, 0.666667),
        ("full_attention", ATTENTION, &[4, 256, 64], 68681728, 4194304, 1048576, 0.750000),
        ("qk_scores", ATTENTION, &[8, 512, 64], 270532608, 27262976, 10485760, 0.615385),
        ("qk_softmax", ATTENTION, &[8, 512, 64], 281018368, 35651584, 10485760, 0.705882),
        ("full_attention", ATTENTION, &[8, 512, 64], 549453824, 29360128, 4194304, 0.857143),
    ];

    fn spec(names: &[&'static str], sizes: &[u64], dtype: Dtype) -> Spec {
        let axes = Axes::new(names.iter().copied().zip(sizes.iter().copied())).unwrap();
        Spec { axes, element: Element::Float(dtype), output: None, training: None }
    }

    #[test]
    fn counts_match_published_values() {
        for (name, names, sizes, flops, unfused_bytes, fused_bytes, reduction) in GOLDEN {
            let got = counts(name.parse().unwrap(), &spec(names, sizes, Dtype::F32)).unwrap();
            assert_eq!(got, PeerFusion { flops, unfused_bytes, fused_bytes }, "{name} {sizes:?}");
            assert!((got.memory_reduction() - reduction).abs() < 5.1e-7, "{name} {sizes:?}");
        }
    }

    #[test]
    fn our_traffic_adds_only_omitted_transfers() {
        for (name, names, sizes, _, unfused, fused, _) in GOLDEN {
            let (spec, size) = (spec(names, sizes, Dtype::F32), |axis: usize| sizes[axis]);
            let model = name.parse::<Operator>().unwrap().fusion(&spec).unwrap();
            let left_out = match name {
                "conv2d_bn" | "conv2d_bn_relu" => 4 * size(2),
                "qk_softmax" => size(0) * size(1) * size(1),
                "full_attention" => 3 * size(0) * size(1) * size(1),
                _ => 0,
            };
            assert_eq!((model.unfused_bytes, model.fused_bytes), (unfused + 4 * left_out, fused), "{name} {sizes:?}");
        }
    }

    #[test]
    fn bytes_scale_with_dtype_and_flops_do_not() {
        let at = |dtype| counts("conv2d_bn_relu".parse().unwrap(), &spec(CONV, &[1, 64, 64, 56, 3], dtype)).unwrap();
        let (full, half) = (at(Dtype::F32), at(Dtype::Bf16));
        assert_eq!(
            (half.flops, 2 * half.unfused_bytes, 2 * half.fused_bytes),
            (full.flops, full.unfused_bytes, full.fused_bytes)
        );
    }
}
