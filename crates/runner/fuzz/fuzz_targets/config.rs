#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| calorimeter_fuzz::check_reader(
    "f.yml",
    calorimeter_fuzz::readers::config,
    data
));
