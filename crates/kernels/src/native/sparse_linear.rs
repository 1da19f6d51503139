//! Layers with a weight of which two of every four numbers are kept.

use std::sync::Arc;

use super::{
    Buffer, DynamicLinear, Linear, LinearShape, Machine, NativeError,
    driver::Memory,
    kernel::{Extent, Geometry, Kernel, common_macros},
    nvrtc::Source,
    quantize_input::QuantizeInput,
    sizes::{checked_shape, checked_size},
    sparse_product::{SparseProduct, kept_macros, kept_name, stored_parts, weight_scales},
};
use crate::{DynamicCodes, KeptCodes, SparseForm};

/// Such a weight on the device, row by row: a row's kept numbers are filled up to 32, or to whole groups.
#[derive(Debug)]
pub struct SparseWeight {
    /// The kept numbers.
    pub codes: Buffer,
    /// Their scales, if they have any.
    pub scales: Option<Buffer>,
    /// Which two of every four numbers are kept: two bits each, in ascending order, in words of eight fours.
    pub places: Buffer,
}

/// A weight in the order in which a plan takes it.
#[derive(Debug)]
pub struct ReadySparse {
    codes: Buffer,
    scales: Option<Buffer>,
    /// Where the numbers are, unless that is beside them.
    places: Option<Buffer>,
}

/// A plan of y[m, n] = f(p(x[m, k]) · w[n, k]ᵀ) + added[m, n] for such a weight; k is a multiple of 4. Sums are in f32, or exact
/// where they are of integers.
///
/// Sparse tensor cores multiply the numbers that are kept with those of x that they meet, where there are such for their type and
/// while that is the fastest. Otherwise all numbers are written into a buffer of the plan, zeros among them, and multiplied by
/// [`Linear`] or [`DynamicLinear`].
#[derive(Debug)]
pub struct SparseLinear {
    machine: Arc<Machine>,
    way: Way,
    shape: LinearShape,
    form: SparseForm,
}

#[derive(Debug)]
enum Way {
    Sparse(Option<Box<QuantizeInput>>, Box<SparseProduct>),
    Dense(Box<Dense>),
}

/// Zeros are multiplied too.
#[derive(Debug)]
struct Dense {
    unpack: Kernel,
    weight: Buffer,
    product: DenseProduct,
    algorithm: String,
}

#[derive(Debug)]
enum DenseProduct {
    Floats(Box<Linear>),
    Codes(Box<DynamicLinear>),
}

/// The most rows of x for which our kernel on sparse tensor cores is the faster.
///
/// Measured for k = n = 4096 in bf16 on an H200, in µs without what turns x into codes: numbers take 8.5 for 1 row, 9.8 for 16, 12.6 for
/// 32, 15.5 for 64 and 25 for 128, bytes 5.9, 8.1, 10.6, 12.6 and 18.6. e4m3, which `mma.sp` multiplies slowly on Hopper, takes 12.7 for
/// 16 rows, 26 for 32 and 39 for 64.
fn most_sparse_rows(codes: KeptCodes) -> usize {
    match codes {
        KeptCodes::Dynamic(DynamicCodes::E4m3, _) => 16,
        _ => 64,
    }
}

const THREADS: usize = 256;

impl SparseLinear {
    /// Chooses and compiles.
    pub fn new(machine: &Arc<Machine>, form: SparseForm, shape: LinearShape) -> Result<Self, NativeError> {
        let shape = checked_shape(shape)?;
        if !shape.k.is_multiple_of(4) {
            return Err(NativeError::NotInFours { k: shape.k });
        }
        let known = SparseProduct::is_for(form, machine.compute_capability());
        let dense = if known && shape.m <= most_sparse_rows(form.codes) {
            None
        } else {
            Dense::new(machine, form, shape, known)?
        };
        let way = match dense {
            Some(dense) => Way::Dense(Box::new(dense)),
            None => {
                let (quantize, stride) = match form.dynamic() {
                    Some(dynamic) => {
                        let stride = DynamicLinear::filled_k(shape.k);
                        let filled = (shape.m, stride);
                        let quantize = QuantizeInput::new(machine, dynamic, (shape.m, shape.k), filled)?;
                        (Some(Box::new(quantize)), stride)
                    }
                    None => (None, shape.k),
                };
                Way::Sparse(quantize, Box::new(SparseProduct::new(machine, form, shape, stride)?))
            }
        };
        Ok(Self { machine: machine.clone(), way, shape, form })
    }

    /// What it was made for.
    pub fn form(&self) -> SparseForm {
        self.form
    }

    /// Bytes of the input.
    pub fn x_bytes(&self) -> usize {
        self.shape.x_bytes(self.form.kind)
    }

    /// Bytes of the output.
    pub fn y_bytes(&self) -> usize {
        self.shape.y_bytes(self.form.kind)
    }

    /// Whether zeros are left out of the product.
    pub fn skips_zeros(&self) -> bool {
        matches!(self.way, Way::Sparse(..))
    }

    /// Puts a weight into the order in which this plan takes it. Not part of a run: it is done once.
    pub fn ready(&self, weight: SparseWeight) -> Result<ReadySparse, NativeError> {
        let SparseWeight { codes, scales, places } = weight;
        let codes_and_places = match &self.way {
            Way::Sparse(_, product) => (product.ordered(&self.machine, [&codes.memory, &places.memory])?, None),
            Way::Dense(_) => (codes, Some(places)),
        };
        Ok(ReadySparse { codes: codes_and_places.0, scales, places: codes_and_places.1 })
    }

    /// Enqueues one run; `added` is there if the plan was made for it.
    pub fn enqueue(
        &mut self,
        x: &Buffer,
        w: &ReadySparse,
        added: Option<&Buffer>,
        y: &mut Buffer,
    ) -> Result<(), NativeError> {
        NativeError::unless_inputs(2 + usize::from(self.form.added), 2 + usize::from(added.is_some()))?;
        let scales = w.scales.as_ref().map(|scales| &scales.memory);
        match &mut self.way {
            Way::Sparse(quantize, product) => {
                if w.places.is_some() {
                    return Err(NativeError::OtherPlan);
                }
                let mut inputs: Vec<&Memory> = Vec::new();
                match quantize {
                    Some(quantize) => {
                        quantize.enqueue(&x.memory)?;
                        inputs.extend([&quantize.codes, &quantize.scales]);
                    }
                    None => inputs.push(&x.memory),
                }
                inputs.push(&w.codes.memory);
                inputs.extend(scales);
                inputs.extend(added.map(|added| &added.memory));
                product.enqueue(&inputs, &mut y.memory)
            }
            Way::Dense(dense) => {
                let Dense { unpack, weight, product, .. } = &mut **dense;
                let Some(places) = &w.places else { return Err(NativeError::OtherPlan) };
                let of_groups = scales.filter(|_| self.form.codes == KeptCodes::Int4);
                let inputs: Vec<&Memory> =
                    [&w.codes.memory].into_iter().chain(of_groups).chain([&places.memory]).collect();
                unpack.enqueue_all(&inputs, &mut [&mut weight.memory])?;
                match (product, added, scales) {
                    (DenseProduct::Floats(linear), Some(added), _) => linear.enqueue_with_added(x, weight, added, y),
                    (DenseProduct::Floats(linear), None, _) => linear.enqueue(x, weight, y),
                    (DenseProduct::Codes(linear), added, Some(scales)) => {
                        linear.quantize(x)?;
                        linear.multiply_codes([&weight.memory, scales], added, y)
                    }
                    (DenseProduct::Codes(_), _, None) => Err(NativeError::OtherPlan),
                }
            }
        }
    }

    /// Which kernels, how they were cut up, and what cuBLASLt chose.
    pub fn algorithm(&self) -> String {
        match &self.way {
            Way::Sparse(None, product) => product.algorithm.clone(),
            Way::Sparse(Some(quantize), product) => format!("{}; then {}", quantize.algorithm, product.algorithm),
            Way::Dense(dense) => {
                let product = match &dense.product {
                    DenseProduct::Floats(linear) => linear.algorithm(),
                    DenseProduct::Codes(linear) => linear.algorithm(),
                };
                format!("{}; then {product}", dense.algorithm)
            }
        }
    }
}

impl Dense {
    /// Chooses and compiles, unless cuBLASLt has no algorithm and something else has.
    fn new(
        machine: &Arc<Machine>,
        form: SparseForm,
        shape: LinearShape,
        optional: bool,
    ) -> Result<Option<Self>, NativeError> {
        let LinearShape { k, n, .. } = shape;
        let product = match form.dynamic() {
            Some(dynamic) => DynamicLinear::new(machine, dynamic, shape).map(|it| DenseProduct::Codes(Box::new(it))),
            None => Linear::new(machine, form.kind, shape).map(|it| DenseProduct::Floats(Box::new(it))),
        };
        let product = match product {
            Err(NativeError::NoAlgorithm { .. }) if optional => return Ok(None),
            other => other?,
        };
        let (rows, stride, width) = match form.dynamic() {
            Some(_) => (DynamicLinear::filled_n(n), DynamicLinear::filled_k(k), 1),
            None => (n, k, form.kind.width()),
        };
        let name = format!("unpack_{}", kept_name(form));
        let blocks = checked_size("the number of blocks", (rows * stride / 4).div_ceil(THREADS))?;
        let [numbers, places] = stored_parts(form, shape);
        let of_groups = weight_scales(form, shape).filter(|_| form.codes == KeptCodes::Int4);
        let mut reads = vec![numbers];
        reads.extend(of_groups.map(|bytes| ("group scales", bytes)));
        reads.push(places);
        let bytes = rows * stride * width;
        let extent = Extent { reads, writes: vec![("w", bytes)], sizes: (n as u64, rows as u64) };
        let geometry = Geometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        let macros = macros(&name, form, k, stride);
        Ok(Some(Self {
            unpack: Kernel::prepare(machine, Source::UnpackSparse, &name, macros, extent, geometry)?,
            weight: machine.allocate(bytes)?,
            product,
            algorithm: format!("{name}: {THREADS} threads per block, four numbers per thread"),
        }))
    }
}

fn macros(name: &str, form: SparseForm, k: usize, stride: usize) -> Vec<String> {
    let mut macros = common_macros(name, form.kind, 1);
    // Numbers of f32 are kept as such; half bytes become numbers of any type.
    macros.extend(kept_macros(form, k));
    macros.extend([format!("STRIDE={stride}u"), format!("THREADS={THREADS}")]);
    macros
}

#[cfg(test)]
mod tests {
    use super::super::{nvrtc::tests::assert_compiles, sparse_product::tests::every_form};
    use super::*;
    use crate::Dtype;

    #[test]
    fn the_source_that_unpacks_compiles_for_every_form() {
        for form in every_form() {
            assert_compiles(Source::UnpackSparse, &macros("unpack", form, 132, 160));
        }
        assert!(every_form().iter().any(|form| form.kind == Dtype::F32 && form.bits() == 32));
    }
}
