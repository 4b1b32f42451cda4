#![no_main]
//! See `anabranch_fuzz::frame`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| anabranch_fuzz::frame::run(data));
