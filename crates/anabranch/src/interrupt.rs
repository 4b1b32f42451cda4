//! Ctrl-C and SIGTERM for commands that end in good order.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::failure::{Failure, Outcome};

/// A flag that the first Ctrl-C or SIGTERM raises; the second one ends the process.
pub(crate) fn flag() -> Outcome<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let registered =
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&flag))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)));
        registered.map_err(|error| Failure::failed(format!("cannot handle signals: {error}")))?;
    }
    Ok(flag)
}
