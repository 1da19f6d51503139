//! Convolutions of images with bias and ReLU.

use std::sync::Arc;

use super::{
    Buffer, ConvolutionForm, Machine, NativeError,
    cublaslt_trial::{Trial, WORTH, drawn},
    cudnn_convolution::CudnnConvolution,
    cudnn_functions,
    driver::Memory,
    form::Factors,
    image_product::ImageProduct,
};
use crate::Dtype;

/// A plan of y = ReLU(x * w + bias), or without the ReLU, in f16 or bf16 with sums in f32: by cuDNN where it is there, and by
/// a kernel of ours on Hopper, whichever is the faster.
#[derive(Debug)]
pub struct Convolution {
    machine: Arc<Machine>,
    by: By,
    algorithm: String,
}

#[derive(Debug)]
enum By {
    Ours(ImageProduct),
    /// By this one of its plans.
    Cudnn(CudnnConvolution, usize),
}

impl Convolution {
    /// Compiles, and tries what there is.
    pub fn new(machine: &Arc<Machine>, kind: Dtype, form: ConvolutionForm) -> Result<Self, NativeError> {
        check(kind, form)?;
        let ours = ImageProduct::new(machine, kind, form);
        if !cudnn_functions::is_present() {
            return ours.map(|ours| Self::ours(machine, ours));
        }
        // What cuDNN has no plan for may have a kernel of ours, and the other way round.
        match (CudnnConvolution::new(machine, kind, form), ours) {
            (Ok(theirs), ours) => Self::fastest(machine, kind, form, theirs, ours.ok()),
            (Err(_), Ok(ours)) => Ok(Self::ours(machine, ours)),
            (Err(error), Err(_)) => Err(error),
        }
    }

    /// By our own kernel, whatever else is there.
    pub fn by_ours(machine: &Arc<Machine>, kind: Dtype, form: ConvolutionForm) -> Result<Self, NativeError> {
        check(kind, form)?;
        ImageProduct::new(machine, kind, form).map(|ours| Self::ours(machine, ours))
    }

    /// By the fastest plan of cuDNN.
    pub fn by_cudnn(machine: &Arc<Machine>, kind: Dtype, form: ConvolutionForm) -> Result<Self, NativeError> {
        check(kind, form)?;
        Self::fastest(machine, kind, form, CudnnConvolution::new(machine, kind, form)?, None)
    }

    fn ours(machine: &Arc<Machine>, ours: ImageProduct) -> Self {
        let algorithm = ours.algorithm().to_string();
        Self { machine: machine.clone(), by: By::Ours(ours), algorithm }
    }

    /// The fastest of cuDNN's plans and ours, each on memory of its own, where there is enough of that.
    fn fastest(
        machine: &Arc<Machine>,
        kind: Dtype,
        form: ConvolutionForm,
        theirs: CudnnConvolution,
        ours: Option<ImageProduct>,
    ) -> Result<Self, NativeError> {
        let plans = theirs.plans();
        let count = plans + usize::from(ours.is_some());
        let (taken, how) = match Operands::new(machine, kind, form) {
            Ok(mut operands) => {
                let nanos = Trial::nanos(machine, count, |way| match &ours {
                    Some(ours) if way == plans => operands.enqueue_ours(ours),
                    _ => operands.enqueue_theirs(&theirs, way, machine),
                });
                let fastest = (0..count).min_by(|a, b| nanos[*a].total_cmp(&nanos[*b])).unwrap_or(0);
                // Another run should choose alike: what is hardly faster is left.
                let taken = if nanos[fastest] < WORTH * nanos[0] { fastest } else { 0 };
                (taken, format!("number {} of {count}, all of them tried", taken + 1))
            }
            Err(NativeError::OutOfMemory { .. }) => (0, format!("first of {count}")),
            Err(error) => return Err(error),
        };
        let machine = machine.clone();
        Ok(match ours {
            Some(ours) if taken == plans => {
                let algorithm = format!("{} ({how}, the others by cuDNN)", ours.algorithm());
                Self { machine, by: By::Ours(ours), algorithm }
            }
            _ => {
                let algorithm = format!("{} ({how})", theirs.describe(taken));
                Self { machine, by: By::Cudnn(theirs, taken), algorithm }
            }
        })
    }

    /// Enqueues one run on images, filters, a bias and what comes out, stored as the form says.
    pub fn enqueue(&mut self, x: &Buffer, w: &Buffer, bias: &Buffer, y: &mut Buffer) -> Result<(), NativeError> {
        let operands = [&x.memory, &w.memory, &bias.memory];
        match &mut self.by {
            By::Ours(ours) => ours.enqueue(operands, &mut y.memory),
            By::Cudnn(theirs, plan) => theirs.enqueue(*plan, &self.machine, operands, &mut y.memory),
        }
    }

    /// What computes it, and how that was chosen.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

fn check(kind: Dtype, form: ConvolutionForm) -> Result<(), NativeError> {
    if kind == Dtype::F32 {
        return Err(NativeError::NumberType { what: "convolution by tensor cores", kind });
    }
    form.check()
}

/// Memory on which ways are tried.
struct Operands {
    x: Memory,
    w: Memory,
    bias: Memory,
    y: Memory,
}

impl Operands {
    fn new(machine: &Machine, kind: Dtype, form: ConvolutionForm) -> Result<Self, NativeError> {
        // Equal numbers would take less power than others do.
        let drawn = drawn(Factors::Whole(kind));
        let filled = |bytes: usize| -> Result<Memory, NativeError> {
            let mut memory = Memory::allocate(machine.stream(), bytes)?;
            memory.repeat(&drawn).map(|()| memory)
        };
        Ok(Self {
            x: filled(form.x_bytes(kind))?,
            w: filled(form.w_bytes(kind))?,
            bias: filled(form.bias_bytes(kind))?,
            y: Memory::allocate(machine.stream(), form.y_bytes(kind))?,
        })
    }

    fn enqueue_ours(&mut self, ours: &ImageProduct) -> Result<(), NativeError> {
        ours.enqueue([&self.x, &self.w, &self.bias], &mut self.y)
    }

    fn enqueue_theirs(&mut self, theirs: &CudnnConvolution, plan: usize, machine: &Machine) -> Result<(), NativeError> {
        theirs.enqueue(plan, machine, [&self.x, &self.w, &self.bias], &mut self.y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_out_is_as_large_as_strides_and_padding_leave_it() {
        let form = ConvolutionForm {
            images: 2,
            height: 9,
            width: 8,
            channels: 3,
            filters: 17,
            side: 3,
            stride: 2,
            padding: 1,
            relu: false,
        };
        assert_eq!((form.out_size(), form.pixels(), form.stored_channels()), ([5, 4], 40, 8));
        assert_eq!((form.y_bytes(Dtype::F16), form.w_bytes(Dtype::F16)), (40 * 24 * 2, 24 * 9 * 8 * 2));
        assert!(form.check().is_ok());
        let error = ConvolutionForm { side: 12, ..form }.check().unwrap_err().to_string();
        assert!(error.ends_with("the filters are larger"), "{error}");
    }
}
