#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| calorimeter_fuzz::check_reader(
    "c.json",
    calorimeter_fuzz::readers::clock_note,
    data
));
