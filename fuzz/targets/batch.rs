#![no_main]
//! See `anabranch_fuzz::batch`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| anabranch_fuzz::batch::run(data));
