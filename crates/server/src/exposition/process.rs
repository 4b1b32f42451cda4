//! The process, under the names that every exporter uses.

use super::row::{Family, Value, rows};

rows! {
    BUILD: Gauge "anabranch_build_info" ["version"] "1, with the version of the program";
    CPU: Counter "process_cpu_seconds_total" [] "Time that the processors worked for the process";
    MEMORY: Gauge "process_resident_memory_bytes" [] "Memory in use";
    FILES: Gauge "process_open_fds" [] "Open files and sockets";
    FILES_MAX: Gauge "process_max_fds" [] "How many files and sockets may be open";
    START: Gauge "process_start_time_seconds" [] "When the process began, seconds since 1970";
}

pub(super) fn families() -> Vec<Family> {
    let version = vec![env!("CARGO_PKG_VERSION").to_owned()];
    let mut families = vec![BUILD.with([(version, Value::Level(1))])];
    // Where the system does not tell, the metric is absent: a zero would be a lie.
    families.extend(of_system().unwrap_or_default());
    families
}

#[cfg(target_os = "linux")]
fn of_system() -> procfs::ProcResult<Vec<Family>> {
    use procfs::{CurrentSI, WithCurrentSystemInfo};

    let process = procfs::process::Process::myself()?;
    let stat = process.stat()?;
    let ticks = procfs::ticks_per_second() as f64;
    let boot_s = procfs::KernelStats::current()?.btime as f64;
    let limit = match process.limits()?.max_open_files.soft_limit {
        procfs::process::LimitValue::Unlimited => f64::INFINITY,
        procfs::process::LimitValue::Value(limit) => limit as f64,
    };
    Ok(vec![
        CPU.alone((stat.utime + stat.stime) as f64 / ticks),
        MEMORY.alone(stat.rss_bytes().get()),
        FILES.with([(Vec::new(), super::row::level(process.fd_count()?))]),
        FILES_MAX.alone(limit),
        START.alone(boot_s + stat.starttime as f64 / ticks),
    ])
}

#[cfg(not(target_os = "linux"))]
fn of_system() -> Option<Vec<Family>> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_system_tells_of_this_process() {
        let families = of_system().unwrap();
        let value = |name: &str| {
            let family = families.iter().find(|family| family.row.name == name).unwrap();
            match &family.series[0].value {
                Value::Count(count) => *count as f64,
                Value::Level(level) => *level as f64,
                Value::Real(real) => *real,
                Value::Spread(_) => f64::NAN,
            }
        };
        assert!(value("process_resident_memory_bytes") > 1e6);
        assert!(value("process_open_fds") >= 1.0);
        assert!(value("process_max_fds") >= value("process_open_fds"));
        // Later than 2020, and not later than now.
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let start = value("process_start_time_seconds");
        assert!(start > 1.577e9 && start < now.as_secs_f64() + 2.0, "{start}");
    }
}
