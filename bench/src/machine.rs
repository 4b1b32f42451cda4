//! The machine under the numbers: what it is, whether it is quiet, how fast it syncs.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::alloc::{Layout, alloc, dealloc};
use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// What a reader of the results must know of the machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    pub(crate) cpu: String,
    pub(crate) memory_gb: f64,
    pub(crate) kernel: String,
}

impl Machine {
    pub(crate) fn read() -> Self {
        let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = cpu
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1))
            .unwrap_or("unknown");
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let memory = memory
            .split_whitespace()
            .nth(1)
            .and_then(|kib| kib.parse::<f64>().ok())
            .unwrap_or(f64::NAN);
        Self {
            cores: thread::available_parallelism().map_or(0, usize::from),
            cpu: cpu.into(),
            memory_gb: (memory * 1024.0 / 1e9).round(),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .unwrap_or_default()
                .trim()
                .into(),
        }
    }
}

/// Busy seconds of all cores since boot.
fn busy_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields: Vec<f64> = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .flat_map(str::parse)
        .collect();
    // All but idle and waiting for IO.
    let busy: f64 = fields
        .iter()
        .enumerate()
        .filter(|(index, _)| !matches!(index, 3 | 4))
        .map(|(_, ticks)| ticks)
        .sum();
    busy / rustix::param::clock_ticks_per_second() as f64
}

/// Waits until the machine is 95 % idle for two seconds; gives up after a minute and says how busy it was.
pub(crate) fn wait_until_quiet() -> f64 {
    let cores = thread::available_parallelism().map_or(1, usize::from) as f64;
    let mut share = 1.0;
    for _ in 0..30 {
        let (begin, before) = (Instant::now(), busy_seconds());
        thread::sleep(Duration::from_secs(2));
        share = (busy_seconds() - before) / begin.elapsed().as_secs_f64() / cores;
        if share < 0.05 {
            break;
        }
    }
    share
}

/// Watches how much CPU others than the contenders take.
pub(crate) struct Foreign {
    begin: Instant,
    busy: f64,
    own: f64,
}

impl Foreign {
    pub(crate) fn begin(own_cpu_seconds: f64) -> Self {
        Self {
            begin: Instant::now(),
            busy: busy_seconds(),
            own: own_cpu_seconds,
        }
    }

    /// Share of the machine that went elsewhere.
    pub(crate) fn share(&self, own_cpu_seconds: f64) -> f64 {
        let cores = thread::available_parallelism().map_or(1, usize::from) as f64;
        let others = (busy_seconds() - self.busy) - (own_cpu_seconds - self.own);
        (others / self.begin.elapsed().as_secs_f64() / cores).max(0.0)
    }
}

/// Median and 99th percentile of 100 writes of 16 KiB with fdatasync over blocks already written, in microseconds.
pub(crate) fn sync_probe(folder: &Path) -> Result<(f64, f64)> {
    let path = folder.join("probe");
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .open(&path)
        .context("cannot write a probe")?;
    file.write_all(&vec![1; 100 * 16384])?;
    file.sync_all()?;
    file.seek(SeekFrom::Start(0))?;
    let mut times: Vec<f64> = Vec::new();
    for _ in 0..100 {
        let begin = Instant::now();
        file.write_all(&[2; 16384])?;
        file.sync_data()?;
        times.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    fs::remove_file(&path)?;
    times.sort_by(f64::total_cmp);
    Ok((times[50], times[98]))
}

/// Drops the page cache, then touches and frees memory (at most a third of the machine's), so that every contender meets
/// memory that the host has backed. All of it at once: a part that is freed first would only be touched again.
pub(crate) fn level_the_field(gigabytes: usize) {
    // Only root may drop caches; elsewhere both sides meet the same full cache.
    let _ = fs::write("/proc/sys/vm/drop_caches", "3");
    let third = (Machine::read().memory_gb * 1e9 / 3.0) as usize;
    touch((gigabytes << 30).min(third));
}

#[expect(
    unsafe_code,
    reason = "memory must be touched and given back to the kernel, which a Vec need not do"
)]
fn touch(bytes: usize) {
    let Ok(layout) = Layout::from_size_align(bytes, 4096) else {
        return;
    };
    // SAFETY: the layout has a size above 0; the pointer is checked, written only within the layout, freed once.
    unsafe {
        let memory = alloc(layout);
        if memory.is_null() {
            return;
        }
        for page in (0..layout.size()).step_by(4096) {
            memory.add(page).write_volatile(1);
        }
        dealloc(memory, layout);
    }
}

/// CPU time of this process.
pub(crate) fn own_cpu_seconds() -> f64 {
    crate::broker::cpu_seconds(std::process::id()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_memory_returns_it() {
        touch(1 << 20);
        let machine = Machine::read();
        assert!(machine.cores > 0 && machine.memory_gb > 0.0);
    }
}
