//! What the fuzz targets do with their input, as plain functions, so that tests can replay the corpus without a fuzzer.
//!
//! Each module is one target: `run` takes any bytes and must return. A panic, an overflow, a failed assertion, a hang or
//! memory without bound is a finding. [`seeds`] makes the inputs to start from.

pub mod apis;
pub mod batch;
pub mod frame;
pub mod recovery;
pub mod request;
pub mod seeds;
pub mod sift;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use crate::seeds;

    fn corpus(target: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
    }

    #[test]
    fn the_corpus_holds_the_seeds_and_every_file_of_it_passes() {
        for target in seeds::TARGETS {
            let made = (target.seeds)();
            assert!(made.len() >= 10, "{} has only {} seeds", target.name, made.len());
            for (name, bytes) in made {
                let path = corpus(target.name).join(&name);
                let stored = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                assert!(stored == bytes, "{}: run the example `seeds`", path.display());
            }
            for entry in fs::read_dir(corpus(target.name)).unwrap() {
                (target.run)(&fs::read(entry.unwrap().path()).unwrap());
            }
        }
    }

    #[test]
    fn every_cut_of_a_seed_passes() {
        for target in seeds::TARGETS {
            for (_, bytes) in (target.seeds)() {
                for end in (0..bytes.len()).step_by(bytes.len() / 64 + 1) {
                    (target.run)(&bytes[..end]);
                }
            }
        }
    }
}
