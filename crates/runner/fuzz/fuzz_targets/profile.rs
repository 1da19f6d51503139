#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| calorimeter_fuzz::check_reader(
    "p.json",
    calorimeter_fuzz::readers::profile,
    data
));
