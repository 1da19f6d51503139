#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| calorimeter_fuzz::check_reader(
    "d.json.log",
    calorimeter_fuzz::readers::decisions,
    data
));
