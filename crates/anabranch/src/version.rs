//! `anabranch version`: this program, and the Kafka client inside it.

use serde::Serialize;

use crate::failure::Outcome;
use crate::output::{self, Format};

#[derive(Debug, Serialize)]
struct Version {
    anabranch: &'static str,
    librdkafka: String,
    target: String,
}

pub(crate) fn run(format: Format) -> Outcome {
    let version = Version {
        anabranch: env!("CARGO_PKG_VERSION"),
        librdkafka: rdkafka::util::get_rdkafka_version().1,
        target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
    };
    match format {
        Format::Json => output::print_json(&version),
        Format::Text => output::print(&format!(
            "anabranch {} ({}), librdkafka {}\n",
            version.anabranch, version.target, version.librdkafka
        )),
    }
}
