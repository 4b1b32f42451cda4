//! Runs the built program, and brokers for it to talk to.

use std::io::{BufRead, BufReader, Read, Write};
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A run of the program that has ended.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Run {
    /// Standard output as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.out.clone()).expect("the output is UTF-8")
    }

    /// Standard output as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The run itself, if it ended with this exit code.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Run {
        assert_eq!(
            self.code,
            code,
            "stdout:\n{}\nstderr:\n{}",
            String::from_utf8_lossy(&self.out),
            self.err
        );
        self
    }
}

/// The program, without the environment of whoever runs the tests.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    let names = std::env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| {
        name.to_string_lossy().starts_with("ANABRANCH_") || name.to_string_lossy().starts_with("KAFKA_")
    }) {
        command.env_remove(name);
    }
    command
}

/// A process that a test works with; it ends with the test, however that ends.
pub(crate) struct Process(Child);

impl Process {
    #[track_caller]
    pub(crate) fn start(command: &mut Command) -> Process {
        Process(command.spawn().expect("the program starts"))
    }

    /// Sends a signal, named as for `kill`.
    #[track_caller]
    pub(crate) fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        let sent = Command::new("kill").args([name, &id]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Waits until it has ended by itself; with what it still had to say on standard error, if that is piped.
    #[track_caller]
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let mut err = String::new();
        if let Some(mut stderr) = self.0.stderr.take() {
            stderr.read_to_string(&mut err).expect("stderr is UTF-8");
        }
        (self.0.wait().expect("the program ends"), err)
    }
}

impl Deref for Process {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the program with these arguments and this standard input.
pub(crate) fn run_with(args: &[&str], input: &[u8]) -> Run {
    finish(program().args(args), input)
}

/// Runs the program without input.
pub(crate) fn run(args: &[&str]) -> Run {
    run_with(args, b"")
}

/// Runs a prepared command to its end.
pub(crate) fn finish(command: &mut Command, input: &[u8]) -> Run {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let input = input.to_vec();
    // A program that does not read its input closes the pipe; that is its right.
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("the program ends");
    writer.join().expect("the writer ends");
    Run {
        code: output.status.code().expect("the program exits by itself"),
        out: output.stdout,
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A broker: the program's own, or the one that `ANABRANCH_TEST_BROKER` names, to see whether an expectation holds for
/// Kafka as well.
pub(crate) struct Broker {
    pub(crate) address: String,
    _child: Option<Process>,
    _data: Option<TempDir>,
}

impl Broker {
    /// Starts a broker in a fresh folder.
    pub(crate) fn start() -> Broker {
        if let Ok(address) = std::env::var("ANABRANCH_TEST_BROKER") {
            return Broker {
                address,
                _child: None,
                _data: None,
            };
        }
        let data = TempDir::new().expect("a temporary folder");
        let (child, started) = serve(data.path(), &[]);
        let address = started["kafka"][0]["address"]
            .as_str()
            .expect("an address")
            .to_owned();
        Broker {
            address,
            _child: Some(child),
            _data: Some(data),
        }
    }

    /// Runs a client command against this broker.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        self.run_with(args, b"")
    }

    /// Runs a client command against this broker with this standard input.
    pub(crate) fn run_with(&self, args: &[&str], input: &[u8]) -> Run {
        finish(program().args(args).args(["--bootstrap", &self.address]), input)
    }

    /// A name that no other test, and no earlier run against the same broker, has used.
    pub(crate) fn name(&self, stem: &str) -> String {
        let since_1970 = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .expect("a time after 1970");
        format!("{stem}-{}-{}", std::process::id(), since_1970.as_nanos())
    }
}

/// Starts `anabranch serve` on ports of the system's choice; returns it with what it says once it is ready.
pub(crate) fn serve(data: &Path, more: &[&str]) -> (Process, Value) {
    let mut command = program();
    command.args(["serve", "--format", "json", "--data"]).arg(data);
    command
        .args(["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"])
        .args(more);
    let mut child = Process::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut line = String::new();
    let out = child.stdout.take().expect("stdout is piped");
    BufReader::new(out)
        .read_line(&mut line)
        .expect("stdout can be read");
    if line.is_empty() {
        panic!("the broker did not start: {}", child.end().1);
    }
    (
        child,
        serde_json::from_str(&line).expect("the line at the start is JSON"),
    )
}
