#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| calorimeter_fuzz::hand("p.json", calorimeter_fuzz::readers::profile, data));
