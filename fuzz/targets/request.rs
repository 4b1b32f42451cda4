#![no_main]
//! See `anabranch_fuzz::request`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| anabranch_fuzz::request::run(data));
