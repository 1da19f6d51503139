#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| calorimeter_fuzz::check_reader(
    "s.csv",
    calorimeter_fuzz::readers::shapes,
    data
));
