//! The contenders as processes: fresh data, a known address, what they cost.

use anyhow::{Context, Result, bail, ensure};
use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Who is measured, and with which promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Contender {
    /// Anabranch, acknowledging after fdatasync: its default.
    Durable,
    /// Anabranch, acknowledging after the write.
    Relaxed,
    /// Apache Kafka as it comes: acknowledges without any sync.
    KafkaStock,
    /// Apache Kafka with a sync for each append (`log.flush.interval.messages=1`).
    KafkaSync,
}

impl Contender {
    pub(crate) const ALL: [Self; 4] = [Self::Durable, Self::KafkaStock, Self::Relaxed, Self::KafkaSync];

    /// Short name for tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Durable => "durable",
            Self::Relaxed => "relaxed",
            Self::KafkaStock => "K0",
            Self::KafkaSync => "K1",
        }
    }

    pub(crate) fn is_kafka(self) -> bool {
        matches!(self, Self::KafkaStock | Self::KafkaSync)
    }
}

/// Where things are.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// Anabranch's release binary.
    pub(crate) binary: PathBuf,
    /// Folder with Kafka's jars.
    pub(crate) jars: PathBuf,
    /// Folder for data and logs, on the disk that is measured.
    pub(crate) work: PathBuf,
    /// Extra Kafka properties, found by calibration.
    pub(crate) kafka_threads: Option<u32>,
    /// Kafka's heap, as `-Xmx` takes it.
    pub(crate) kafka_heap: String,
    /// More lines for Kafka's properties.
    pub(crate) kafka_set: Vec<String>,
}

/// A running broker.
pub(crate) struct Broker {
    pub(crate) contender: Contender,
    pub(crate) address: String,
    places: Places,
    child: Child,
}

impl Broker {
    /// Starts on an empty data folder, pinned to a core if wished, and waits until it accepts connections.
    pub(crate) fn fresh(contender: Contender, places: &Places, core: Option<u32>) -> Result<Self> {
        let data = places.work.join("data");
        if data.exists() {
            fs::remove_dir_all(&data).with_context(|| format!("cannot remove {}", data.display()))?;
        }
        fs::create_dir_all(&data)?;
        let address = free_address()?;
        if contender.is_kafka() {
            prepare_kafka(contender, places, &address)?;
        }
        Self::start(contender, places, &address, core)
    }

    /// Starts on the data that is there.
    pub(crate) fn start(
        contender: Contender,
        places: &Places,
        address: &str,
        core: Option<u32>,
    ) -> Result<Self> {
        let mut broker = Self::spawn(contender, places, address, core)?;
        broker.wait_until_it_listens()?;
        Ok(broker)
    }

    /// Starts without waiting.
    pub(crate) fn spawn(
        contender: Contender,
        places: &Places,
        address: &str,
        core: Option<u32>,
    ) -> Result<Self> {
        let log = File::create(places.work.join("broker.log"))?;
        // Whatever becomes of the benchmark, no broker is left behind.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if let Some(core) = core {
            command.args(["taskset", "-c", &core.to_string()]);
        }
        command.arg(program(contender, places));
        match contender {
            Contender::Durable | Contender::Relaxed => {
                let durability = if contender == Contender::Durable {
                    "durable"
                } else {
                    "relaxed"
                };
                command.args([
                    "serve",
                    "--listen",
                    address,
                    "--http",
                    &http_address(address)?,
                    "--durability",
                    durability,
                    "--data",
                ]);
                command.arg(places.work.join("data"));
            }
            Contender::KafkaStock | Contender::KafkaSync => {
                let heap = &places.kafka_heap;
                command.args([&format!("-Xms{heap}"), &format!("-Xmx{heap}"), "-XX:+UseG1GC"]);
                command.arg("-cp").arg(places.jars.join("*"));
                command.args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "kafka.Kafka"]);
                command.arg(places.work.join("server.properties"));
            }
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| {
                let program = command.get_program().display();
                format!("cannot start {} by {program} (of util-linux)", contender.name())
            })?;
        Ok(Self {
            contender,
            address: address.into(),
            places: places.clone(),
            child,
        })
    }

    fn wait_until_it_listens(&mut self) -> Result<()> {
        let begin = Instant::now();
        while TcpStream::connect(&self.address).is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!(
                    "{} ended with {status}; see {}",
                    self.contender.name(),
                    self.places.work.join("broker.log").display()
                );
            }
            ensure!(
                begin.elapsed() < Duration::from_secs(60),
                "{} does not answer after 60 s",
                self.contender.name()
            );
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Where Anabranch's administration API listens.
    pub(crate) fn http(&self) -> Result<String> {
        http_address(&self.address)
    }

    /// CPU time used so far, in seconds.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        cpu_seconds(self.child.id()).unwrap_or(f64::NAN)
    }

    /// Resident memory in MB.
    pub(crate) fn memory_mb(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap_or_default();
        line.split_whitespace()
            .next()
            .and_then(|kib| kib.parse::<f64>().ok())
            .map_or(f64::NAN, |kib| kib * 1024.0 / 1e6)
    }

    /// Open file descriptors.
    pub(crate) fn descriptors(&self) -> f64 {
        fs::read_dir(format!("/proc/{}/fd", self.child.id()))
            .map_or(f64::NAN, |entries| entries.count() as f64)
    }

    /// SIGKILL, keeping the data.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// SIGTERM; returns the seconds until the process had ended.
    pub(crate) fn terminate(mut self) -> Result<f64> {
        let begin = Instant::now();
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        while self.child.try_wait()?.is_none() {
            ensure!(
                begin.elapsed() < Duration::from_secs(60),
                "{} does not end within 60 s",
                self.contender.name()
            );
            thread::sleep(Duration::from_millis(1));
        }
        Ok(begin.elapsed().as_secs_f64())
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // After kill() and terminate() this finds no process; on an error path it is the clean-up.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program(contender: Contender, places: &Places) -> PathBuf {
    if contender.is_kafka() {
        "java".into()
    } else {
        places.binary.clone()
    }
}

/// A loopback address whose port, and the next, are free.
///
/// They lie below the range that the kernel gives to outgoing connections: one of those could take the port between
/// the death of a broker and its restart.
pub(crate) fn free_address() -> Result<String> {
    let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let port = (26_000..28_000)
        .step_by(2)
        .find(|port| free(*port) && free(port + 1));
    Ok(format!(
        "127.0.0.1:{}",
        port.context("no two free ports in a row")?
    ))
}

/// The port after the broker's own: Anabranch's administration API, Kafka's controller.
fn http_address(address: &str) -> Result<String> {
    let (host, port) = address.rsplit_once(':').context("no port")?;
    Ok(format!("{host}:{}", port.parse::<u16>()? + 1))
}

fn prepare_kafka(contender: Contender, places: &Places, address: &str) -> Result<()> {
    let port: u16 = address.rsplit(':').next().context("no port")?.parse()?;
    let mut text = format!(
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:{next}\n\
         listeners=PLAINTEXT://{address},CONTROLLER://127.0.0.1:{next}\nadvertised.listeners=PLAINTEXT://{address}\n\
         controller.listener.names=CONTROLLER\nlistener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n\
         log.dirs={data}\noffsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\n\
         transaction.state.log.min.isr=1\nshare.coordinator.state.topic.replication.factor=1\n\
         share.coordinator.state.topic.min.isr=1\ngroup.initial.rebalance.delay.ms=0\n\
         group.consumer.min.heartbeat.interval.ms=1000\ngroup.consumer.heartbeat.interval.ms=1000\n\
         group.share.min.heartbeat.interval.ms=1000\ngroup.share.heartbeat.interval.ms=1000\n\
         group.share.max.partition.max.record.locks=10000\ngroup.share.partition.max.record.locks=10000\n",
        next = port + 1,
        data = places.work.join("data").display(),
    );
    if contender == Contender::KafkaSync {
        text.push_str("log.flush.interval.messages=1\n");
    }
    if let Some(threads) = places.kafka_threads {
        text.push_str(&format!(
            "num.network.threads={threads}\nnum.io.threads={threads}\n"
        ));
    }
    for property in &places.kafka_set {
        text.push_str(&format!("{property}\n"));
    }
    let properties = places.work.join("server.properties");
    fs::write(&properties, text)?;
    let classes = places.jars.join("*");
    let tool = |args: &[&std::ffi::OsStr]| -> Result<String> {
        let output = Command::new("java")
            .arg("-cp")
            .arg(&classes)
            .arg("kafka.tools.StorageTool")
            .args(args)
            .output()?;
        ensure!(
            output.status.success(),
            "StorageTool: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout)
            .trim()
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned())
    };
    let id = tool(&["random-uuid".as_ref()])?;
    tool(&[
        "format".as_ref(),
        "-t".as_ref(),
        id.as_ref(),
        "-c".as_ref(),
        properties.as_os_str(),
    ])?;
    Ok(())
}

/// User and system time of a process, children excluded.
pub(crate) fn cpu_seconds(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some(ticks / rustix::param::clock_ticks_per_second() as f64)
}

/// Fetches Kafka's jars with Maven, once.
pub(crate) fn kafka_jars(bench: &Path) -> Result<PathBuf> {
    let jars = bench.join(".work/kafka-jars");
    if !jars.join(".complete").exists() {
        let status = Command::new("mvn")
            .args(["-q", "-B", "dependency:copy-dependencies"])
            .arg(format!("-DoutputDirectory={}", jars.display()))
            .current_dir(bench.join("kafka"))
            .status()
            .context("cannot start mvn; Java and Maven are needed to run Apache Kafka")?;
        ensure!(status.success(), "mvn ended with {status}");
        File::create(jars.join(".complete"))?;
    }
    Ok(jars)
}
