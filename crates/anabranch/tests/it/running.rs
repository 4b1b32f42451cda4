//! How the broker is run: by a service manager, in a container, from a package.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::support::{Process, Run, finish, program, run, serve};

/// A file of the repository.
fn of_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The folder of the built program, in front of where commands are looked for.
fn search_path() -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_anabranch"));
    let rest = std::env::var("PATH").unwrap_or_default();
    format!("{}:{rest}", program.parent().unwrap().display())
}

#[test]
fn a_service_manager_is_told_when_clients_are_served_and_when_that_ends() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let heard = || {
        let mut bytes = [0; 4096];
        let size = manager.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..size].to_vec()).unwrap()
    };
    let mut command = program();
    command.args(["serve", "--listen", "127.0.0.1:0", "--http", "none", "--data"]);
    command
        .arg(folder.path().join("data"))
        .env("NOTIFY_SOCKET", &path);
    let broker = Process::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let ready = heard();
    assert!(ready.lines().any(|line| line == "READY=1"), "{ready}");
    assert!(
        ready.contains("STATUS=serving Kafka clients at 127.0.0.1:"),
        "{ready}"
    );
    broker.signal("-TERM");
    assert_eq!(heard().trim(), "STOPPING=1");
    assert!(broker.end().0.success());
}

#[test]
fn health_is_an_exit_code() {
    let data = TempDir::new().unwrap();
    let (broker, started) = serve(data.path(), &[]);
    let http = started["http"].as_str().unwrap().to_owned();
    let healthy = run(&["health", "--admin", &http]).expect(0);
    assert_eq!(healthy.text(), "ready\n");
    let healthy = run(&["health", "--admin", &http, "--format", "json"]).expect(0);
    assert_eq!(healthy.json()["ready"], true);
    broker.signal("-TERM");
    broker.end();
    let gone = run(&["health", "--admin", &http]).expect(4);
    assert!(gone.err.contains("connection refused"), "{}", gone.err);
}

/// What Testcontainers' module for `apache/kafka-native` does: it starts the container with these variables and a shell that
/// waits for a script, copies that script in once it knows the port on the host, and waits for a line of the log.
#[test]
fn a_container_is_driven_as_those_of_kafka_are() {
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("start.sh");
    let waits = format!("while [ ! -f {0} ]; do sleep 0.1; done; {0}", script.display());
    let mut container = Command::new("sh");
    container
        .args(["-c", &waits])
        .env_clear()
        .env("PATH", search_path());
    for (name, value) in [
        ("CLUSTER_ID", "4L6g3nShT-eMCtK--X86sw"),
        (
            "KAFKA_LISTENERS",
            "PLAINTEXT://127.0.0.1:0,BROKER://127.0.0.1:0,CONTROLLER://:9094",
        ),
        (
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
            "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        ),
        ("KAFKA_INTER_BROKER_LISTENER_NAME", "BROKER"),
        ("KAFKA_PROCESS_ROLES", "broker,controller"),
        ("KAFKA_CONTROLLER_LISTENER_NAMES", "CONTROLLER"),
        ("KAFKA_NODE_ID", "1"),
        ("KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR", "1"),
        ("KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS", "1"),
        ("KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR", "1"),
        ("KAFKA_TRANSACTION_STATE_LOG_MIN_ISR", "1"),
        ("KAFKA_LOG_FLUSH_INTERVAL_MESSAGES", "9223372036854775807"),
        ("KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS", "0"),
    ] {
        container.env(name, value);
    }
    // As the image sets it; the port is this test's own, which others must not take.
    let http = free_address();
    let url = format!("http://{http}");
    container.env("ANABRANCH_DATA", folder.path().join("data"));
    container
        .env("ANABRANCH_HTTP", &http)
        .env("ANABRANCH_ADMIN", &url);
    let mut container = Process::start(container.stdout(Stdio::piped()).stderr(Stdio::piped()));

    let run_script = of_repository("deploy/docker/run");
    let advertised = "PLAINTEXT://localhost:49153,BROKER://c0ffee:9093";
    let text = format!(
        "#!/bin/bash\nexport KAFKA_ADVERTISED_LISTENERS={advertised}\nexec {}\n",
        run_script.display()
    );
    let copied = folder.path().join("copied");
    executable(&copied, &text);
    fs::rename(&copied, &script).unwrap();

    let lines = BufReader::new(container.stdout.take().unwrap()).lines();
    let (mut seen, mut broker) = (String::new(), None);
    for line in lines.map(Result::unwrap) {
        seen.push_str(&line);
        seen.push('\n');
        if let Some((_, pid)) = line.split_once("is ready (pid ") {
            broker = Some(Inside(pid.trim_end_matches(')').to_owned()));
        }
        if line.contains("Transitioning from RECOVERY to RUNNING") {
            break;
        }
    }
    assert!(seen.contains("Transitioning from RECOVERY to RUNNING"), "{seen}");
    for told in ["clients are told localhost:49153", "clients are told c0ffee:9093"] {
        assert!(seen.contains(told), "{told}: {seen}");
    }
    run(&["health", "--admin", &url]).expect(0);
    let broker = broker.expect("it says its id");
    broker.signal("-TERM");
    let (status, err) = container.end();
    assert!(
        status.success() && err.contains("shut down in good order"),
        "{err}"
    );
    assert!(!err.contains("unknown"), "every variable is understood: {err}");
}

/// Without an HTTP listener there is nobody to ask, again and again and for ever, whether clients are served.
#[test]
fn a_container_without_an_http_listener_asks_nobody_for_its_health() {
    let folder = TempDir::new().unwrap();
    let calls = folder.path().join("calls");
    // In the place of the program: it notes what it is asked to do, and serves for a moment.
    let text = format!("#!/bin/sh\necho \"$1\" >> {}\nsleep 0.5\n", calls.display());
    executable(&folder.path().join("anabranch"), &text);
    let path = std::env::var("PATH").unwrap_or_default();
    let started = |http: &str| {
        let mut container = Command::new(of_repository("deploy/docker/run"));
        container
            .env("PATH", format!("{}:{path}", folder.path().display()))
            .env("ANABRANCH_HTTP", http);
        finish(&mut container, b"").expect(0);
        let asked = fs::read_to_string(&calls).unwrap();
        fs::remove_file(&calls).unwrap();
        asked
    };
    assert_eq!(started("none"), "serve\n");
    assert!(started("127.0.0.1:9099").contains("health\n"));
}

/// Writes a script.
fn executable(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The broker in the container, a child of the shell: it would outlive a shell that a failing test ends.
struct Inside(String);

impl Inside {
    fn signal(&self, name: &str) {
        let _ = Command::new("kill")
            .args([name, &self.0])
            .stderr(Stdio::null())
            .status();
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.signal("-KILL");
    }
}

/// An address of this machine that nobody listens at.
fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

fn tool(name: &str, args: &[&str]) -> Run {
    finish(Command::new(name).args(args), b"")
}

#[test]
fn a_debian_package_holds_the_program_its_service_and_its_settings() {
    let folder = TempDir::new().unwrap();
    let (out, tree) = (folder.path().join("out"), folder.path().join("tree"));
    let (out, tree) = (out.to_str().unwrap(), tree.to_str().unwrap());
    let build = of_repository("deploy/deb/build");
    // In the place of the program, which is large.
    let program = folder.path().join("anabranch");
    let text = format!("#!/bin/sh\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_anabranch"));
    executable(&program, &text);
    tool(build.to_str().unwrap(), &[program.to_str().unwrap(), out]).expect(0);
    let package = fs::read_dir(out).unwrap().next().unwrap().unwrap().path();
    let package = package.to_str().unwrap();
    let name = format!("anabranch_{}_", env!("CARGO_PKG_VERSION"));
    assert!(package.contains(&name) && package.ends_with(".deb"), "{package}");

    let listed = tool("dpkg-deb", &["-c", package]).expect(0).text();
    assert!(
        listed.starts_with("drwxr-xr-x root/root "),
        "the root folder: {listed}"
    );
    assert!(
        !listed.contains("-rw-------") && !listed.contains("rwxrwx"),
        "{listed}"
    );

    tool("dpkg-deb", &["-R", package, tree]).expect(0);
    let file = |path: &str| fs::read_to_string(format!("{tree}/{path}")).unwrap();
    assert_eq!(file("DEBIAN/conffiles"), "/etc/anabranch/anabranch.toml\n");
    let unit = file("usr/lib/systemd/system/anabranch.service");
    assert!(unit.contains(
        "Type=notify\nExecStart=/usr/bin/anabranch serve --config /etc/anabranch/anabranch.toml\n"
    ));

    assert!(file("usr/share/doc/anabranch/copyright").contains("/usr/share/common-licenses/Apache-2.0"));
    for document in ["changelog.gz", "CHANGELOG.md.gz"] {
        assert!(
            Path::new(&format!("{tree}/usr/share/doc/anabranch/{document}")).exists(),
            "{document}"
        );
    }
    assert!(file("usr/share/bash-completion/completions/anabranch").contains("complete "));
    assert!(Path::new(&format!("{tree}/usr/share/man/man1/anabranch.1.gz")).exists());

    let config = format!("{tree}/etc/anabranch/anabranch.toml");
    let installed = format!("{tree}/usr/bin/anabranch");
    let checked = tool(&installed, &["config", "explain", "data", "--config", &config]).expect(0);
    assert!(
        checked.text().contains("/var/lib/anabranch"),
        "{}",
        checked.text()
    );
}

/// The package's scripts, with what they call noted instead of done.
#[test]
fn a_package_starts_the_service_leaves_a_stopped_one_and_keeps_the_messages() {
    let folder = TempDir::new().unwrap();
    let (calls, booted, data) = (
        folder.path().join("calls"),
        folder.path().join("systemd"),
        folder.path().join("data"),
    );
    for name in ["systemctl", "systemd-sysusers"] {
        let text = format!("#!/bin/sh\necho \"$(basename $0) $*\" >> {}\n", calls.display());
        executable(&folder.path().join(name), &text);
    }
    let path = format!(
        "{}:{}",
        folder.path().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let called = |script: &str, args: &[&str]| {
        let text = fs::read_to_string(of_repository("deploy/deb").join(script)).unwrap();
        let text = text
            .replace("/run/systemd/system", booted.to_str().unwrap())
            .replace("/var/lib/anabranch", data.to_str().unwrap());
        let copy = folder.path().join(script);
        executable(&copy, &text);
        finish(Command::new(&copy).args(args).env("PATH", &path), b"").expect(0);
        let made = fs::read_to_string(&calls).unwrap_or_default();
        let _ = fs::remove_file(&calls);
        made.replace("systemctl ", "").replace('\n', "; ")
    };
    // In a container, say: the user is made, and nothing is started.
    assert_eq!(
        called("postinst", &["configure", ""]),
        "systemd-sysusers anabranch.conf; "
    );
    fs::create_dir(&booted).unwrap();
    fs::create_dir(&data).unwrap();
    assert_eq!(
        called("postinst", &["configure", ""]),
        "systemd-sysusers anabranch.conf; daemon-reload; enable --now anabranch.service; "
    );
    assert_eq!(called("prerm", &["upgrade", "0.2.0"]), "");
    assert_eq!(
        called("postinst", &["configure", "0.1.0"]),
        "systemd-sysusers anabranch.conf; daemon-reload; try-restart anabranch.service; "
    );
    assert_eq!(called("prerm", &["remove"]), "disable --now anabranch.service; ");
    assert_eq!(called("postrm", &["purge"]), "daemon-reload; ");
    assert!(data.exists());
}
