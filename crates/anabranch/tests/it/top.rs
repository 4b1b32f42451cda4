//! `anabranch top`: as text, as JSON, and on a terminal of 80 by 24.

use std::io::{Read, Write};
use std::num::NonZero;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Process, program, run, run_with, serve};

/// Far above what anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A broker with a topic and a group: `billing` has read 30 of 40 records of `orders`, and has a member.
struct World {
    broker: Option<Process>,
    _member: Process,
    _data: TempDir,
    http: String,
}

impl World {
    fn new() -> World {
        let data = TempDir::new().unwrap();
        let (broker, started) = serve(data.path(), &[]);
        let address = started["kafka"][0]["address"].as_str().unwrap().to_owned();
        let http = started["http"].as_str().unwrap().to_owned();
        run(&["topic", "create", "orders", "-p", "1", "-b", &address]).expect(0);
        let lines = "line\n".repeat(40);
        run_with(&["produce", "orders", "-b", &address], lines.as_bytes()).expect(0);
        run(&["consume", "orders", "-g", "billing", "-n", "30", "-b", &address]).expect(0);
        // It joins, and stops reading where its output is full; what it has printed it commits.
        let mut member = program();
        member.args([
            "consume",
            "orders",
            "-g",
            "billing",
            "-b",
            &address,
            "-X",
            "client.id=app-1",
        ]);
        let member = Process::start(member.stdout(Stdio::null()).stderr(Stdio::null()));
        let world = World {
            broker: Some(broker),
            _member: member,
            _data: data,
            http,
        };
        let deadline = Instant::now() + PATIENCE;
        while !world.json()["detail"]["members"][0]["client_id"].is_string() {
            assert!(
                Instant::now() < deadline,
                "the member has joined: {}",
                world.json()
            );
        }
        world
    }

    fn json(&self) -> Value {
        run(&["top", "--json", "--admin", &self.http]).expect(0).json()
    }
}

/// The program on a terminal, and what that shows.
struct Terminal {
    screen: Arc<Mutex<vt100::Parser>>,
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
}

impl Terminal {
    fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Terminal {
        let pair = native_pty_system().openpty(size(24, 80)).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_anabranch"));
        command.args(arguments);
        for name in ["ANABRANCH_ADMIN", "ANABRANCH_BOOTSTRAP", "NO_COLOR"] {
            command.env_remove(name);
        }
        command.env("TERM", "xterm-256color");
        variables
            .iter()
            .for_each(|(name, value)| command.env(name, value));
        let child = pair.slave.spawn_command(command).unwrap();
        let mut output = pair.master.try_clone_reader().unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(cells(24), cells(80), 0)));
        let shown = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                shown.lock().unwrap().process(&bytes[..count]);
            }
        });
        Terminal {
            screen,
            keys: pair.master.take_writer().unwrap(),
            master: pair.master,
            child,
        }
    }

    fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    #[track_caller]
    fn until(&self, what: &str, holds: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(&self.text()) {
            assert!(Instant::now() < deadline, "{what}:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Whether anything has a colour.
    fn has_colours(&self) -> bool {
        let parser = self.screen.lock().unwrap();
        let cells = (0..24).flat_map(|row| (0..80).map(move |column| (row, column)));
        let mut cells = cells.filter_map(|(row, column)| parser.screen().cell(row, column));
        cells.any(|cell| cell.fgcolor() != vt100::Color::Default)
    }

    /// The exit code, once it has ended; the screen is as before then.
    fn end(mut self) -> u32 {
        let code = self.child.wait().unwrap().exit_code();
        let is_left = || !self.screen.lock().unwrap().screen().alternate_screen();
        let deadline = Instant::now() + PATIENCE;
        while !is_left() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(is_left(), "the terminal is put in order");
        code
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).unwrap()
}

fn size(rows: u16, cols: u16) -> PtySize {
    PtySize {
        rows,
        cols,
        pixel_width: 0,
        pixel_height: 0,
    }
}

#[test]
fn a_picture_of_the_broker_on_a_terminal_as_text_and_as_json() {
    let mut world = World::new();
    let json = world.json();
    assert_eq!(json["groups"][0]["group"], "billing");
    assert_eq!(json["shown"], "billing");
    assert_eq!(json["topics"], 1);
    let text = run(&["top", "--once", "--admin", &world.http]).expect(0).text();
    assert!(
        text.contains("> billing") && text.contains("billing: Stable, classic protocol"),
        "{text}"
    );
    assert!(
        text.contains("orders/0 AAAA") && text.contains("\nA app-1"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "no control sequences in a pipe");
    let piped = run(&["top", "--admin", &world.http]).expect(0).text();
    assert!(piped.contains("> billing"), "a pipe gets one picture: {piped}");

    let mut top = Terminal::start(&["top", "--admin", &world.http, "--interval", "1"], &[]);
    top.until("the picture", |text| {
        text.contains("> billing") && text.contains("A app-1")
    });
    assert!(
        top.text().lines().last().unwrap().contains("q quit"),
        "{}",
        top.text()
    );
    assert!(top.screen.lock().unwrap().screen().alternate_screen() && top.has_colours());
    top.press("?");
    top.until("the keys", |text| text.contains("hold the picture"));
    top.press("?");
    top.press("f");
    top.until("a held picture", |text| {
        text.contains("FROZEN") && text.contains("> billing")
    });
    top.press("f\r");
    top.until("one group", |text| {
        !text.contains("> billing") && text.contains("A app-1")
    });
    top.press("\r");
    top.until("all groups", |text| text.contains("> billing"));
    top.screen
        .lock()
        .unwrap()
        .screen_mut()
        .set_size(cells(12), cells(60));
    top.master.resize(size(12, 60)).unwrap();
    top.until("a smaller picture", |text| {
        text.lines().count() == 12 && text.lines().last().is_some_and(|line| line.contains("q quit"))
    });
    // The broker goes away: what was seen stays, and it is said.
    drop(world.broker.take());
    top.until("trouble", |text| {
        text.contains("NO ANSWER") && text.contains("> billing")
    });
    top.press("q");
    assert_eq!(top.end(), 0);
}

#[test]
fn colours_can_be_switched_off_and_a_signal_ends_it_in_order() {
    let world = World::new();
    let mut top = Terminal::start(&["top", "--admin", &world.http], &[("NO_COLOR", "1")]);
    top.until("the picture", |text| text.contains("A app-1"));
    assert!(!top.has_colours());
    top.press("\u{3}");
    assert_eq!(top.end(), 0);
}

#[test]
fn what_is_not_there_is_said() {
    let failed = run(&["top", "--once", "--admin", "127.0.0.1:1"]).expect(4);
    assert!(
        failed.err.contains("cannot reach the broker's HTTP listener"),
        "{}",
        failed.err
    );
    let data = TempDir::new().unwrap();
    let (_broker, started) = serve(data.path(), &[]);
    let http = started["http"].as_str().unwrap();
    let failed = run(&["top", "--once", "--group", "nobody", "--admin", http]).expect(3);
    assert!(
        failed.err.contains("there is no group \"nobody\""),
        "{}",
        failed.err
    );
    let text = run(&["top", "--once", "--admin", http]).expect(0).text();
    assert!(text.contains("no group has committed anything yet"), "{text}");
}
