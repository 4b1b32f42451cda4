//! What the broker says while the demo runs: its slices and its decisions, asked for in the background.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anabranch_server::admin::model::{Decision, Group};

use crate::client::{AdminApi, Wanted};
use crate::failure::{Exit, Outcome};

/// How often it is asked.
const INTERVAL: Duration = Duration::from_millis(200);

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many decisions one answer may have.
const LIMIT: u32 = 1_000;

/// What is known so far.
#[derive(Debug, Default)]
struct Known {
    group: Option<Group>,
    decisions: Vec<Decision>,
}

/// A thread that asks.
pub(crate) struct BrokerView {
    known: Arc<Mutex<Known>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl BrokerView {
    /// Starts to ask; without an API nothing is ever known.
    pub(crate) fn start(api: Option<AdminApi>, group: &str) -> BrokerView {
        let (known, stop) = (Arc::new(Mutex::default()), Arc::new(AtomicBool::new(false)));
        let thread = api.map(|api| {
            let (known, stop, group) = (Arc::clone(&known), Arc::clone(&stop), group.to_owned());
            std::thread::spawn(move || ask(&api.with_patience(PATIENCE), &group, &known, &stop))
        });
        BrokerView { known, stop, thread }
    }

    /// The group as it was a moment ago.
    pub(crate) fn group(&self) -> Option<Group> {
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .group
            .clone()
    }

    /// The decisions behind the first `skip`.
    pub(crate) fn decisions(&self, skip: usize) -> Vec<Decision> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.decisions.get(skip..).unwrap_or_default().to_vec()
    }
}

impl Drop for BrokerView {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn ask(api: &AdminApi, group: &str, known: &Mutex<Known>, stop: &AtomicBool) {
    let mut after = Some(0);
    let mut has_answered = false;
    while !stop.load(Ordering::Relaxed) {
        let described = api.group(group);
        has_answered |= is_answer(&described);
        if !has_answered {
            return;
        }
        let wanted = Wanted {
            group: Some(group),
            after,
            limit: LIMIT,
            wait: Duration::ZERO,
        };
        let decided = api.decisions(wanted);
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        // A group is not there before its first member, and away for as long as an answer takes too long.
        if let Ok(described) = described {
            known.group = Some(described);
        }
        if let Ok(decided) = decided {
            after = decided.next.or(after);
            known.decisions.extend(decided.decisions);
        }
        drop(known);
        std::thread::sleep(INTERVAL);
    }
}

/// Whether the API answered, if only to say that it does not know the group.
fn is_answer<T>(answer: &Outcome<T>) -> bool {
    answer.is_ok()
        || answer
            .as_ref()
            .is_err_and(|failure| failure.exit == Exit::NotFound)
}
