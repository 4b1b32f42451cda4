#![no_main]
//! See `anabranch_fuzz::sift`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| anabranch_fuzz::sift::run(data));
