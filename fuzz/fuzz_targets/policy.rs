#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| vidimus_fuzz::policy(data));
