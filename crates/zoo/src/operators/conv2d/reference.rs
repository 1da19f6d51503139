//! Double-precision reference and tolerance of the convolutions.

use super::{Conv2d, EPSILON, tensor_sizes};
use crate::gate::Tolerance;
use crate::{ExactReference, Matrix, OutputSample, Spec};

impl ExactReference for Conv2d {
    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        tensor_sizes(spec).taps
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], _: usize, sample: &OutputSample) -> Vec<f64> {
        let [channels, features, size, kernel] =
            ["in_channels", "out_channels", "size", "kernel"].map(|axis| spec.axis(axis) as usize);
        let padding = (kernel - 1) / 2;
        let parameter = |input: usize, feature: usize| f64::from(inputs[input].row(0)[feature]);
        sample.map_elements(|row, col| {
            let (image, feature) = (row / features, row % features);
            let (top, left) = (col / size, col % size);
            let weights = inputs[1].row(feature);
            // Image row or column under a tap; `None` in the padding.
            let source_index = |edge: usize, tap: usize| (edge + tap).checked_sub(padding).filter(|&at| at < size);
            let mut sum = 0.0;
            for channel in 0..channels {
                let pixels = inputs[0].row(image * channels + channel);
                let weights = &weights[channel * kernel * kernel..][..kernel * kernel];
                for (i, y) in (0..kernel).filter_map(|i| source_index(top, i).map(|y| (i, y))) {
                    for (j, x) in (0..kernel).filter_map(|j| source_index(left, j).map(|x| (j, x))) {
                        sum += f64::from(pixels[y * size + x]) * f64::from(weights[i * kernel + j]);
                    }
                }
            }
            let y = if self.has_batch_norm() {
                let normal = (sum - parameter(2, feature)) / (parameter(3, feature) + EPSILON).sqrt();
                normal * parameter(4, feature) + parameter(5, feature)
            } else {
                sum + parameter(2, feature)
            };
            if self.has_relu() { y.max(0.0) } else { y }
        })
    }

    // Accumulator and bias; or accumulator, standard deviation (two), difference, quotient, gain and bias.
    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        let roundings = if self.has_batch_norm() { 7 } else { 2 };
        Tolerance::new(spec.dtype(), roundings, tensor_sizes(spec).taps)
    }
}
