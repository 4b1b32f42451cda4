//! Writes the seeds of all targets into `corpus/`, over those that are there.

use std::fs;
use std::path::Path;

#[expect(clippy::print_stdout, reason = "a program that tells what it wrote")]
fn main() -> std::io::Result<()> {
    for target in anabranch_fuzz::seeds::TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("corpus")
            .join(target.name);
        fs::create_dir_all(&folder)?;
        let seeds = (target.seeds)();
        for (name, bytes) in &seeds {
            fs::write(folder.join(name), bytes)?;
        }
        println!("{}: {} seeds", target.name, seeds.len());
    }
    Ok(())
}
