//! A quantized layer never holds its whole weight dequantized; every allocation is counted, in a separate process.

use burn::tensor::{Distribution, Tensor};
use burn_flex::Flex;
use calorimeter_recipes::{Dtype, Recipe, Weight};
use std::alloc::{GlobalAlloc, Layout, System};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Allocator that tracks current and peak memory.
struct AllocationCounter;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: delegates to the system allocator.
unsafe impl GlobalAlloc for AllocationCounter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(ALLOCATED.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: upheld by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: upheld by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: AllocationCounter = AllocationCounter;

/// Recipes to test, each in a separate process.
const RECIPES: [&str; 8] =
    ["int8wo", "int8dq", "int4wo-128", "int4wo-128-hqq", "float8wo", "float8dq-row", "mxfp8", "nvfp4"];
const RECIPE_VARIABLE: &str = "CALORIMETER_TEST_RECIPE";

#[test]
fn weight_is_never_fully_dequantized() {
    if let Ok(recipe) = std::env::var(RECIPE_VARIABLE) {
        return check_layer_memory(&recipe.parse().unwrap());
    }
    for recipe in RECIPES {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let this = "memory::weight_is_never_fully_dequantized";
        child.env(RECIPE_VARIABLE, recipe).args(["--exact", this, "--nocapture"]);
        let output = child.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("MB peak"), "{recipe}: {text}");
        println!("{}", text.lines().find(|line| line.contains("MB peak")).unwrap_or_default());
    }
}

fn check_layer_memory(recipe: &Recipe) {
    let (n, k) = (2048, 2048);
    let device = Default::default();
    let input = Tensor::<Flex, 2>::random([4, k], Distribution::Default, &device);
    let layer = {
        let values = (0..n * k).map(|i| ((i * 7919 % 10_007) as f32 - 5003.0) / 5003.0).collect();
        let weight = Weight::new(n, k, values, Dtype::F32);
        recipe.quant_config(Dtype::F32, None).unwrap().linear::<Flex>(&weight, &device).unwrap()
    };
    // The source weight has been dropped; from here on only the layer and its forward passes allocate.
    let before = ALLOCATED.load(Relaxed);
    PEAK.store(before, Relaxed);
    for _ in 0..3 {
        drop(layer.forward(input.clone()));
    }
    let (stored, most) = (layer.weight_bytes() as usize, PEAK.load(Relaxed));
    let unquantized = n * k * 4;
    println!("{recipe}: {} MB stored, {} MB peak, {} MB unquantized", stored >> 20, most >> 20, unquantized >> 20);
    assert!(before >= stored && before < stored + (1 << 20), "{before} bytes allocated for {stored} packed bytes");
    assert!(most < unquantized * 3 / 4, "peak of {most} bytes; the unquantized weight takes {unquantized}");
}
