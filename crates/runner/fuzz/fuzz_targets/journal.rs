#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| calorimeter_fuzz::check_reader(
    "j.jsonl",
    calorimeter_fuzz::readers::journal,
    data
));
