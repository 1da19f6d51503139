//! CPU kernel of a quantized layer from outside the crate: it computes weight-only float8 layers.

// Lets `float8_weight.rs` move into the crate without changes.
mod host {
    pub(crate) use calorimeter_kernels::host::{Cpu, HostLayer, HostLayerContext, HostWeight, QuantizedRows};
}

mod float8_weight;

use calorimeter_kernels::format::Grouping;
use calorimeter_kernels::layer::{KernelTable, prepare};
use calorimeter_kernels::{Dtype, Element, Format, LayerSpec, LinearShape};
use host::{Cpu, HostLayerContext, HostWeight, QuantizedRows};

fn main() {
    let table: &KernelTable<Cpu> = &[&float8_weight::Float8Weight];
    let spec = LayerSpec::weight_only(Dtype::F32, Format::float8(Element::E4m3, Grouping::Row, Dtype::F32));
    // Four rows of 32 values: 1.0 is 0x38 in e4m3.
    let weight = HostWeight::Quantized { codes: vec![0x3838_3838; 4 * 8], scales: vec![0.5; 4], zeros: Vec::new() };
    let quantize = |_: &[f32], _: usize, _: Format| QuantizedRows { codes: Vec::new(), scales: Vec::new() };
    let context = HostLayerContext { weight, quantize };
    let layer =
        prepare(table, &context, &(), &spec, LinearShape { m: 1, k: 32, n: 4 }).expect("the kernel accepts float8");
    let mut y = [0.0; 4];
    layer.run(&[1.0; 32], 32, &mut y);
    println!("{}: {y:?}", layer.kernel(1));
    assert_eq!(y, [16.0; 4]);
}
