//! Convolution on CUDA in NHWC layout, by cuDNN or a custom kernel.

use super::{Conv2d, EPSILON};
use crate::element_bytes::encode;
use crate::native::{BufferSet, NativePass};
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::{
    BatchedTransposeSpec, ConvolutionPlan, ConvolutionSpec, CudaDevice, CudaKernel, DeviceBuffer,
};
use std::sync::Arc;

impl NativeOpen for Conv2d {
    // Converts images from NCHW to NHWC once, when a buffer set is filled, because frameworks store them this way for
    // tensor cores. Outputs are converted back when read. The batch normalization is folded into the filters
    // beforehand.
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let (kind, form) = (spec.dtype(), self.form(spec));
        let mut convolution = ConvolutionPlan::new(&machine, kind, form)?;
        let algorithm = format!("{}; images are stored channels last", convolution.algorithm());

        let (images, [out_height, out_width]) = (form.images, form.out_size());
        let (pixels, out_pixels) = (form.height * form.width, out_height * out_width);
        let (channels, filters) = (form.stored_channels(), form.stored_filters());
        let to_nhwc_form = BatchedTransposeSpec {
            matrices: images,
            rows: form.channels,
            columns: pixels,
            input_stride: pixels,
            output_stride: channels,
        };
        let to_nchw_form = BatchedTransposeSpec {
            matrices: images,
            rows: out_pixels,
            columns: form.filters,
            input_stride: filters,
            output_stride: out_pixels,
        };
        let to_nhwc = CudaKernel::transpose_matrices(&machine, kind, to_nhwc_form)?;
        let to_nchw = CudaKernel::transpose_matrices(&machine, kind, to_nchw_form)?;
        let (w, bias) = self.fold_batch_norm(&form, inputs);
        let [w, bias] = [w, bias].map(|values| encode(&values, spec.element));
        let device = machine.clone();
        let fill_set = move |set: &mut BufferSet| {
            let mut x = device.allocate(form.x_bytes(kind))?;
            to_nhwc.enqueue([&set.inputs[0]], [&mut x])?;
            set.inputs = vec![x, device.upload(&w)?, device.upload(&bias)?];
            set.outputs = vec![device.allocate(form.y_bytes(kind))?];
            Ok(())
        };
        let device = machine.clone();
        let read_output = move |y: &DeviceBuffer| {
            let mut nchw = device.allocate(to_nchw_form.output_len() * kind.width())?;
            to_nchw.enqueue([y], [&mut nchw]).map(|()| nchw)
        };
        NativePass::single(algorithm, move |BufferSet { inputs, outputs, .. }| {
            convolution.enqueue(&inputs[0], &inputs[1], &inputs[2], &mut outputs[0])
        })
        .with_filled_scratch(Some(Box::new(fill_set)))
        .with_output_conversion(Box::new(read_output))
        .open(self, spec, inputs, machine, sets)
    }
}

impl Conv2d {
    fn form(self, spec: &Spec) -> ConvolutionSpec {
        let [images, channels, filters, size, side] =
            ["batch", "in_channels", "out_channels", "size", "kernel"].map(|axis| spec.axis(axis) as usize);
        let padding = (side - 1) / 2;
        let (height, width) = (size, size);
        ConvolutionSpec {
            images,
            height,
            width,
            channels,
            filters,
            filter_size: side,
            stride: 1,
            padding,
            relu: self.has_relu(),
        }
    }

    /// Filters and bias with the batch normalization folded in, in the padded NHWC layout of `form`.
    fn fold_batch_norm(self, form: &ConvolutionSpec, inputs: &[Matrix]) -> (Vec<f32>, Vec<f32>) {
        let parameter = |input: usize, filter: usize| f64::from(inputs[input].row(0)[filter]);
        // Factor and addend of the accumulator.
        let factor_and_addend = |filter: usize| match self.has_batch_norm() {
            false => (1.0, parameter(2, filter)),
            true => {
                let scale = parameter(4, filter) / (parameter(3, filter) + EPSILON).sqrt();
                (scale, parameter(5, filter) - parameter(2, filter) * scale)
            }
        };
        let (channels, filters, taps) =
            (form.stored_channels(), form.stored_filters(), form.filter_size * form.filter_size);
        let (mut w, mut bias) = (vec![0.0; filters * taps * channels], vec![0.0; filters]);
        for filter in 0..form.filters {
            let ((scale, addend), row) = (factor_and_addend(filter), inputs[1].row(filter));
            bias[filter] = addend as f32;
            for tap in 0..taps {
                for channel in 0..form.channels {
                    let value = f64::from(row[channel * taps + tap]) * scale;
                    w[(filter * taps + tap) * channels + channel] = value as f32;
                }
            }
        }
        (w, bias)
    }
}
