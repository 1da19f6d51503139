#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| calorimeter_fuzz::hand(
    "d.json.log",
    calorimeter_fuzz::readers::decisions,
    data
));
