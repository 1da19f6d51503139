#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| calorimeter_fuzz::hand("s.csv", calorimeter_fuzz::readers::shapes, data));
