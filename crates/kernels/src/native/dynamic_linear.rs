//! Layers whose input is turned into codes as it comes, and multiplied as such.

use std::sync::Arc;

use super::{
    Activation, Buffer, Epilogue, LinearShape, Machine, NativeError, PackedWeight,
    byte_product::ByteProduct,
    cublaslt::{Operands, Product},
    driver::Memory,
    finish_product::FinishProduct,
    form::{Factors, Form, Scales},
    gpu::ComputeCapability,
    half_byte_product::HalfByteProduct,
    quantize_input::QuantizeInput,
    sizes::{checked_shape, checked_size},
};
use crate::{Activation as Function, Dtype, DynamicCodes, DynamicForm, Prologue, SharedScale};

/// A plan of y[m, n] = f(p(x[m, k]) · w[n, k]ᵀ) + added[m, n] with p(x) and w as codes: x is turned into codes, cuBLASLt
/// multiplies them, and scales, activation and what is added are applied to the sums.
///
/// The weight's rows of codes are filled up with 0 to [`DynamicLinear::filled_k`], and there are
/// [`DynamicLinear::filled_n`] of them: tensor cores multiply in sixteens. So is everything in between. Sums of integers are
/// exact. On Hopper, if there are tiles enough, a product of our own applies scales and all that follows before it writes y; so it
/// does for fast sums of e4m3 where cuBLASLt would not. Elsewhere cuBLASLt writes sums of integers out, for a kernel that makes y
/// of them. Of e4m3 it applies the scales itself, if it can and n is a multiple of 16, and a ReLU, and adds what is added; another
/// activation is then applied in place, for its GELU is the one by tanh, which is another function.
/// Sums of e4m3 are promoted unless the form says otherwise: fast ones of long rows are off by more than f16 is. Codes of half a
/// byte stay as they are for up to 64 rows, and become bytes for more; rows of zeros that fill up such a weight are not looked at.
#[derive(Debug)]
pub struct DynamicLinear {
    quantize: QuantizeInput,
    way: Way,
    machine: Arc<Machine>,
    shape: LinearShape,
    kind: Dtype,
    prologue: Prologue,
    added: bool,
}

/// What multiplies.
#[derive(Debug)]
enum Way {
    /// cuBLASLt, a weight as it is stored.
    Library(Box<Product>, After),
    /// Our own, which applies all that follows.
    Bytes(ByteProduct),
    /// For weights of half bytes.
    HalfBytes(HalfByteProduct),
}

/// What is left to do with the product.
#[derive(Debug)]
enum After {
    /// cuBLASLt has applied this; only an activation may be left.
    Applied(&'static str, Option<Activation>),
    /// It is sums without scales.
    Finish(Box<FinishProduct>),
}

/// Fewer rows are filled up: cuBLASLt has no product of integers for up to 16.
const LEAST_ROWS_OF_INT8: usize = 32;

impl DynamicLinear {
    /// Chooses and compiles.
    pub fn new(machine: &Arc<Machine>, form: DynamicForm, shape: LinearShape) -> Result<Self, NativeError> {
        let needed = match form.codes {
            DynamicCodes::E4m3 => ("a product of e4m3", ComputeCapability::E4M3),
            _ => ("a product of int8", ComputeCapability::WARP_MAXIMA),
        };
        machine.require(needed.0, needed.1)?;
        let shape = checked_shape(shape)?;
        let filled = filled(form.codes, shape)?;
        let quantize = QuantizeInput::new(machine, form, (shape.m, shape.k), (filled.m, filled.k))?;
        let way = if form.codes.are_halves() {
            Way::HalfBytes(HalfByteProduct::new(machine, form, shape, filled)?)
        } else if ByteProduct::is_for(form, shape, machine.compute_capability()) {
            Way::Bytes(ByteProduct::new(machine, form, shape, filled.k)?)
        } else if let Some((product, after)) = scaled(machine, form, shape, filled)? {
            Way::Library(Box::new(product), after)
        } else {
            let plain = match form.codes {
                DynamicCodes::E4m3 => Form::plain(Factors::E4m3(form.sums), Dtype::F32),
                _ => Form::int8(),
            };
            let finish = FinishProduct::new(machine, form, shape, (filled.m, filled.n))?;
            Way::Library(Box::new(Product::plan(machine, plain, filled)?), After::Finish(Box::new(finish)))
        };
        let DynamicForm { kind, prologue, added, .. } = form;
        Ok(Self { quantize, way, machine: machine.clone(), shape, kind, prologue, added })
    }

    /// Codes that a row of the weight has.
    pub const fn filled_k(k: usize) -> usize {
        k.next_multiple_of(32)
    }

    /// Rows of codes that the weight has. Its scales are those of n.
    pub const fn filled_n(n: usize) -> usize {
        n.next_multiple_of(16)
    }

    /// Bytes of the input.
    pub fn x_bytes(&self) -> usize {
        let of_row = if let Prologue::ShortAttention { .. } = self.prologue { 3 } else { 1 };
        of_row * self.shape.x_bytes(self.kind)
    }

    /// Bytes of the output.
    pub fn y_bytes(&self) -> usize {
        self.shape.y_bytes(self.kind)
    }

    /// Enqueues one run; `added` is there if the plan was made for it.
    pub fn enqueue(
        &mut self,
        x: &Buffer,
        w: &PackedWeight,
        added: Option<&Buffer>,
        y: &mut Buffer,
    ) -> Result<(), NativeError> {
        self.quantize(x)?;
        self.multiply(w, added, y)
    }

    /// Enqueues the first part of it: codes of the input, which stay until the next ones.
    pub fn quantize(&mut self, x: &Buffer) -> Result<(), NativeError> {
        self.quantize.enqueue(&x.memory)
    }

    /// Enqueues the second part: the product of these codes, and what follows it.
    pub fn multiply(&mut self, w: &PackedWeight, added: Option<&Buffer>, y: &mut Buffer) -> Result<(), NativeError> {
        NativeError::unless_inputs(2 + usize::from(self.added), 2 + usize::from(added.is_some()))?;
        if let Way::HalfBytes(product) = &mut self.way {
            let QuantizeInput { codes, scales, .. } = &self.quantize;
            let added = added.map(|added| &added.memory);
            return product.enqueue(&self.machine, [codes, scales], w, added, &mut y.memory);
        }
        self.multiply_codes([&w.codes.memory, &w.scales.memory], added, y)
    }

    /// The same with codes of a weight and their scales, which are not those of half bytes.
    pub(super) fn multiply_codes(
        &mut self,
        [w, of_columns]: [&Memory; 2],
        added: Option<&Buffer>,
        y: &mut Buffer,
    ) -> Result<(), NativeError> {
        let added = added.map(|added| &added.memory);
        let QuantizeInput { codes, scales, .. } = &self.quantize;
        let operands = Operands { x: codes, w, y: &y.memory, scales: None, added: None, bias: None };
        match &self.way {
            Way::Library(product, After::Applied(_, activation)) => {
                let operands = Operands { scales: Some([scales, of_columns]), added, ..operands };
                product.enqueue(&self.machine, operands)?;
                activation.as_ref().map_or(Ok(()), |activation| activation.enqueue_in_place(y))
            }
            Way::Library(product, After::Finish(finish)) => {
                product.enqueue(&self.machine, Operands { y: &finish.sums, ..operands })?;
                finish.enqueue([scales, of_columns], added, &mut y.memory)
            }
            Way::Bytes(product) => product.enqueue([codes, w], [scales, of_columns], added, &mut y.memory),
            Way::HalfBytes(_) => Err(NativeError::OtherPlan),
        }
    }

    /// Which kernels, how they were cut up, and what cuBLASLt chose.
    pub fn algorithm(&self) -> String {
        let product = match &self.way {
            Way::Library(product, after) => {
                let after = match after {
                    After::Applied(what, None) => format!(" with {what}"),
                    After::Applied(what, Some(activation)) => format!(" with {what}; then {}", activation.algorithm()),
                    After::Finish(finish) => format!("; then {}", finish.algorithm),
                };
                format!("{}{after}", product.describe())
            }
            Way::Bytes(product) => product.algorithm.clone(),
            Way::HalfBytes(product) => product.algorithm(),
        };
        format!("{}; then {product}", self.quantize.algorithm)
    }
}

/// The sizes that tensor cores multiply.
fn filled(codes: DynamicCodes, LinearShape { m, k, n }: LinearShape) -> Result<LinearShape, NativeError> {
    let m = match codes.longest_row() {
        Some(limit) if k > limit => {
            return Err(NativeError::InvalidSize { what: "k of a product of int8", limit, value: k });
        }
        Some(_) => m.max(LEAST_ROWS_OF_INT8),
        None => m,
    };
    let (k, n) = (DynamicLinear::filled_k(k), DynamicLinear::filled_n(n));
    Ok(LinearShape { m, k: checked_size("k", k)?, n: checked_size("n", n)? })
}

/// The product whose scales cuBLASLt applies, where there is one.
fn scaled(
    machine: &Arc<Machine>,
    form: DynamicForm,
    shape: LinearShape,
    filled: LinearShape,
) -> Result<Option<(Product, After)>, NativeError> {
    // What cuBLASLt adds, it adds before an activation.
    let activated_first = form.added && form.activation.is_some();
    if form.codes != DynamicCodes::E4m3 || (shape.m, shape.n) != (filled.m, filled.n) || activated_first {
        return Ok(None);
    }
    let scales = match form.shared {
        SharedScale::Row => Scales::Lines,
        SharedScale::Tensor => Scales::Tensors,
    };
    let scaled = Form { scales, ..Form::plain(Factors::E4m3(form.sums), form.kind) };
    if form.activation == Some(Function::Relu) {
        let activated = Form { epilogue: Epilogue::Relu, ..scaled };
        if let Some(product) = if_known(Product::plan(machine, activated, filled))? {
            return Ok(Some((product, After::Applied("scales and ReLU", None))));
        }
    }
    let Some(product) = if_known(Product::plan(machine, scaled, filled))? else { return Ok(None) };
    let LinearShape { m, n, .. } = shape;
    let activation =
        form.activation.map(|function| Activation::new(machine, form.kind, function, m * n)).transpose()?;
    Ok(Some((product, After::Applied("scales", activation))))
}

/// A product, unless cuBLASLt does not have it.
fn if_known(product: Result<Product, NativeError>) -> Result<Option<Product>, NativeError> {
    match product {
        Ok(product) => Ok(Some(product)),
        Err(NativeError::NoAlgorithm { .. } | NativeError::CublasLt { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_fill_whole_sixteens_and_sums_of_integers_fit() {
        let size = |codes, m, k, n| filled(codes, LinearShape { m, k, n }).map(|it| (it.m, it.k, it.n));
        assert_eq!(size(DynamicCodes::Int8, 1, 129, 3), Ok((32, 160, 16)));
        assert_eq!(size(DynamicCodes::Int8, 127, 1000, 1000), Ok((127, 1024, 1008)));
        assert_eq!(size(DynamicCodes::E4m3, 3, 1, 17), Ok((3, 32, 32)));
        let longest = DynamicCodes::MOST_INT8;
        assert!(longest as i64 * 127 * 128 <= i64::from(i32::MAX) && size(DynamicCodes::Int8, 1, longest, 1).is_ok());
        let error = size(DynamicCodes::Int8, 1, longest + 1, 1).unwrap_err();
        assert_eq!(error.to_string(), "k of a product of int8 must be between 1 and 132104, not 132105");
    }
}
