#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| vidimus_fuzz::certificate(data));
