//! Convolution on CUDA in NHWC layout, by cuDNN or a custom kernel.

use super::{Conv2d, EPSILON};
use crate::native::{NativePass, Set};
use crate::numbers::bytes;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::{Buffer, Convolution, ConvolutionForm, Machine, MatricesForm, TransposeMatrices};
use std::sync::Arc;

impl NativeOpen for Conv2d {
    // Converts images from NCHW to NHWC once, when a buffer set is filled, because frameworks store them this way for
    // tensor cores. Outputs are converted back when read. The batch normalization is folded into the filters
    // beforehand.
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let (kind, form) = (spec.dtype(), self.form(spec));
        let mut convolution = Convolution::new(&machine, kind, form)?;
        let algorithm = format!("{}; images are stored channels last", convolution.algorithm());

        let (images, [out_height, out_width]) = (form.images, form.out_size());
        let (pixels, out_pixels) = (form.height * form.width, out_height * out_width);
        let (channels, filters) = (form.stored_channels(), form.stored_filters());
        let to_nhwc_form =
            MatricesForm { matrices: images, rows: form.channels, columns: pixels, from: pixels, to: channels };
        let to_nchw_form =
            MatricesForm { matrices: images, rows: out_pixels, columns: form.filters, from: filters, to: out_pixels };
        let to_nhwc = TransposeMatrices::new(&machine, kind, to_nhwc_form)?;
        let to_nchw = TransposeMatrices::new(&machine, kind, to_nchw_form)?;
        let (w, bias) = self.folded(&form, inputs);
        let [w, bias] = [w, bias].map(|values| bytes(&values, spec.element));
        let device = machine.clone();
        let fill_set = move |set: &mut Set| {
            let mut x = device.allocate(form.x_bytes(kind))?;
            to_nhwc.enqueue(&set.inputs[0], &mut x)?;
            set.inputs = vec![x, device.upload(&w)?, device.upload(&bias)?];
            set.outputs = vec![device.allocate(form.y_bytes(kind))?];
            Ok(())
        };
        let device = machine.clone();
        let read_output = move |y: &Buffer| {
            let mut nchw = device.allocate(to_nchw_form.written() * kind.width())?;
            to_nchw.enqueue(y, &mut nchw).map(|()| nchw)
        };
        NativePass::single(algorithm, move |Set { inputs, outputs, .. }| {
            convolution.enqueue(&inputs[0], &inputs[1], &inputs[2], &mut outputs[0])
        })
        .filled_before(Some(Box::new(fill_set)))
        .read_through(Box::new(read_output))
        .open(self, spec, inputs, machine, sets)
    }
}

impl Conv2d {
    fn form(self, spec: &Spec) -> ConvolutionForm {
        let [images, channels, filters, size, side] =
            ["batch", "in_channels", "out_channels", "size", "kernel"].map(|axis| spec.axis(axis) as usize);
        let padding = (side - 1) / 2;
        let (height, width) = (size, size);
        ConvolutionForm { images, height, width, channels, filters, side, stride: 1, padding, relu: self.relu() }
    }

    /// Filters and bias with the batch normalization folded in, in the padded NHWC layout of `form`.
    fn folded(self, form: &ConvolutionForm, inputs: &[Matrix]) -> (Vec<f32>, Vec<f32>) {
        let parameter = |input: usize, filter: usize| f64::from(inputs[input].row(0)[filter]);
        // Factor and addend of the accumulator.
        let factor_and_addend = |filter: usize| match self.normalizes() {
            false => (1.0, parameter(2, filter)),
            true => {
                let scale = parameter(4, filter) / (parameter(3, filter) + EPSILON).sqrt();
                (scale, parameter(5, filter) - parameter(2, filter) * scale)
            }
        };
        let (channels, filters, taps) = (form.stored_channels(), form.stored_filters(), form.side * form.side);
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
