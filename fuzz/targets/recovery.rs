#![no_main]
//! See `anabranch_fuzz::recovery`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| anabranch_fuzz::recovery::run(data));
