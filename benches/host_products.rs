//! GEMMs on the CPU for one row and for a batch: f32 inputs with f32, int8 and int4 weights, and int8 inputs with int8
//! weights.

mod device;

use calorimeter_kernels::host::{FloatGemm, FloatVec, HostGemmWeight, Int4Weight, Int8Gemm, Int8Weight};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Rows and columns of the weight.
const SIDE: usize = 2048;
/// Values that share a scale in int4 weights.
const GROUP: usize = 128;

fn products(criterion: &mut Criterion) {
    let ones = |count| FloatVec::F32(vec![1.0; count]);
    let codes = |bits| vec![0x1234_5678; SIDE * SIDE * bits / 32];
    let groups = SIDE * SIDE / GROUP;
    let int8 = Int8Weight { codes: codes(8), scales: ones(SIDE) };
    let int4 = Int4Weight { codes: codes(4), scales: ones(groups), zeros: ones(groups), group: GROUP };
    let weights = [
        ("f32", HostGemmWeight::Floats(ones(SIDE * SIDE))),
        ("int8", HostGemmWeight::Int8(int8)),
        ("int4", HostGemmWeight::Int4(int4)),
    ];
    let by_floats = weights.map(|(name, weights)| (name, FloatGemm::new(weights, SIDE, SIDE)));
    let by_codes = Int8Gemm::new(&codes(8), ones(SIDE));

    let mut group = criterion.benchmark_group(format!("GEMM with a weight of {SIDE} x {SIDE}"));
    for rows in [1, 64] {
        group.throughput(Throughput::Elements((2 * rows * SIDE * SIDE) as u64));
        let mut y = vec![0.0; rows * SIDE];
        let x = vec![1.0; rows * SIDE];
        for (name, product) in &by_floats {
            let id = BenchmarkId::new(format!("f32 by {name}"), rows);
            group.bench_function(id, |bencher| bencher.iter(|| product.run(&x, &mut y)));
        }
        let (x, scales) = (vec![0x0102_0304; rows * SIDE / 4], vec![1.0; rows]);
        let id = BenchmarkId::new("int8 by int8", rows);
        group.bench_function(id, |bencher| bencher.iter(|| by_codes.run(&x, &scales, &mut y)));
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = device::host_criterion();
    targets = products
}
criterion_main!(benches);
