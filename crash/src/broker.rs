//! The broker as a process: start it, wait until it answers, kill it.

use anyhow::{Context, Result, bail};
use std::fs::{File, OpenOptions};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A broker that does not answer after this long counts as failed.
const START_SECONDS_MAX: u64 = 20;

pub(crate) struct Broker {
    binary: PathBuf,
    work: PathBuf,
    address: String,
    child: Option<Child>,
}

impl Broker {
    pub(crate) fn new(binary: &Path, work: &Path) -> Result<Self> {
        // The port must stay the same over all restarts, so it is chosen here and not by the broker.
        let free = TcpListener::bind("127.0.0.1:0")
            .context("no free port")?
            .local_addr()?;
        Ok(Self {
            binary: binary.into(),
            work: work.into(),
            address: free.to_string(),
            child: None,
        })
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.work.join("data")
    }

    fn log(&self) -> Result<File> {
        let path = self.work.join("broker.log");
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("cannot open {}", path.display()))
    }

    /// Starts the process and waits until it accepts connections; returns the milliseconds that took.
    pub(crate) fn start(&mut self) -> Result<u128> {
        let begin = Instant::now();
        let child = Command::new(&self.binary)
            .args([
                "serve",
                "--listen",
                &self.address,
                "--http",
                "127.0.0.1:0",
                "--data",
            ])
            .arg(self.data())
            // Small segments: many changes of segment and snapshots to die in.
            .args(["--set", "wal.segment.bytes=2097152"])
            // Members that could not say goodbye are missed soon, and shares are looked at often.
            .args(["--set", "group.consumer.min.session.timeout.ms=6000"])
            .args(["--set", "group.consumer.session.timeout.ms=6000"])
            .args(["--set", "elastic.interval.ms=200"])
            .stdin(Stdio::null())
            .stdout(self.log()?)
            .stderr(self.log()?)
            .spawn()
            .with_context(|| format!("cannot start {}", self.binary.display()))?;
        let child = self.child.insert(child);
        while TcpStream::connect(&self.address).is_err() {
            if let Some(status) = child.try_wait()? {
                bail!(
                    "the broker ended with {status}; see {}",
                    self.work.join("broker.log").display()
                );
            }
            if begin.elapsed() > Duration::from_secs(START_SECONDS_MAX) {
                bail!(
                    "the broker does not answer after {START_SECONDS_MAX} s; see {}",
                    self.work.join("broker.log").display()
                );
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(begin.elapsed().as_millis())
    }

    /// SIGKILL, and wait for the end.
    pub(crate) fn kill(&mut self) -> Result<()> {
        let mut child = self.child.take().context("the broker is not running")?;
        if let Some(status) = child.try_wait()? {
            bail!(
                "the broker ended by itself with {status}; see {}",
                self.work.join("broker.log").display()
            );
        }
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// Ends the process at the end of a run.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.kill()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // An error path is under way already; nothing more can be done about a process that will not die.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
