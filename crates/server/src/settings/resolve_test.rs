use super::*;
use crate::config::Durability;
use crate::settings::{explain, reference_page};

fn sources(file: &str, env: &[(&str, &str)], flags: &[(&str, &str)]) -> Sources {
    Sources {
        default_data: "/home/someone/.local/share/anabranch".to_owned(),
        file: (!file.is_empty()).then(|| ("broker.toml".to_owned(), file.to_owned())),
        env: env
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect(),
        flags: flags
            .iter()
            .map(|(name, text)| ((*name).to_owned(), vec![(*text).to_owned()], format!("--{name}")))
            .collect(),
    }
}

fn ok(file: &str, env: &[(&str, &str)], flags: &[(&str, &str)]) -> Resolved {
    resolve(&sources(file, env, flags)).unwrap_or_else(|errors| panic!("{errors}"))
}

fn errors(file: &str, env: &[(&str, &str)], flags: &[(&str, &str)]) -> String {
    match resolve(&sources(file, env, flags)) {
        Ok(resolved) => panic!("accepted: {:?}", resolved.settings),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn defaults_are_what_the_table_says() {
    let resolved = ok("", &[], &[]);
    for item in ITEMS.iter().filter(|item| item.name != "data") {
        let value = item.value(&resolved.settings).replace(' ', "");
        assert_eq!(value, item.default, "{}", item.name);
    }
    assert_eq!(
        resolved.settings.server.data_dir.to_str(),
        Some("/home/someone/.local/share/anabranch")
    );
    assert_eq!(resolved.origin("listen"), &Origin::Default);
}

/// The server's own defaults, for those who build a `Config` without settings, are the documented ones.
#[test]
fn defaults_are_those_of_the_server() {
    let resolved = ok("", &[], &[]);
    let plain = Config {
        data_dir: resolved.settings.server.data_dir.clone(),
        ..Config::default()
    };
    let plain = Config {
        http: Some(crate::DEFAULT_HTTP.to_owned()),
        ..plain
    }
    .listen(crate::DEFAULT_LISTEN);
    let mut config = resolved.settings.config();
    config.broker.clear();
    assert_eq!(format!("{config:?}"), format!("{plain:?}"));
}

#[test]
fn choices_are_what_the_table_says() {
    for item in ITEMS {
        if let crate::settings::Kind::OneOf(words) = item.kind {
            for word in words {
                let resolved = ok("", &[], &[(item.name, word)]);
                assert_eq!(item.value(&resolved.settings), *word, "{}", item.name);
            }
        }
    }
}

#[test]
fn flags_win_over_environment_over_file_over_defaults() {
    let file =
        "http = \"127.0.0.1:1\"\nlisten = [\"127.0.0.1:2\", \"127.0.0.1:3\"]\n[log]\nlevel = \"warn\"\n";
    let env = [
        ("ANABRANCH_HTTP", "127.0.0.1:4"),
        ("ANABRANCH_LOG_LEVEL", "debug"),
        ("PATH", "/bin"),
    ];
    let resolved = ok(file, &env, &[("log.level", "trace")]);
    assert_eq!(resolved.settings.log_level, LogLevel::Trace);
    assert_eq!(resolved.settings.server.http.as_deref(), Some("127.0.0.1:4"));
    assert_eq!(resolved.settings.listen.len(), 2);
    assert_eq!(resolved.settings.server.durability, Durability::Durable);
    assert_eq!(resolved.origin("log.level").to_string(), "flag --log.level");
    assert_eq!(
        resolved.origin("http").to_string(),
        "environment variable ANABRANCH_HTTP"
    );
    assert_eq!(resolved.origin("listen").to_string(), "broker.toml:2:1");
}

#[test]
fn dotted_and_nested_names_are_one() {
    let nested = ok(
        "[log]\nlevel = \"debug\"\n[shutdown.timeout]\nms = \"3s\"",
        &[],
        &[],
    );
    let dotted = ok("log.level = \"debug\"\n\"shutdown.timeout.ms\" = 3000", &[], &[]);
    assert_eq!(nested.settings.log_level, LogLevel::Debug);
    assert_eq!(dotted.settings.log_level, LogLevel::Debug);
    assert_eq!(nested.settings.server.limits.shutdown_timeout.as_millis(), 3000);
    assert_eq!(dotted.settings.server.limits.shutdown_timeout.as_millis(), 3000);
}

#[test]
fn unknown_names_get_a_place_and_a_suggestion() {
    let text = errors(
        "listen = \"127.0.0.1:1\"\n\n  durabilty = \"relaxed\"\n",
        &[],
        &[],
    );
    assert_eq!(
        text,
        "broker.toml:3:3: there is no setting \"durabilty\"; did you mean \"durability\"?"
    );
    let text = errors("", &[("ANABRANCH_COLOUR", "red")], &[]);
    assert!(
        text.starts_with("environment variable ANABRANCH_COLOUR: there is no setting \"colour\""),
        "{text}"
    );
    assert!(text.contains("anabranch config list"), "{text}");
}

#[test]
fn all_errors_are_reported_at_once() {
    let text = errors(
        "durability = \"safe\"\n",
        &[("ANABRANCH_HTTP", "x")],
        &[("shutdown.timeout.ms", "1h")],
    );
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        lines[0].contains("\"safe\" is not one of durable, relaxed"),
        "{text}"
    );
    assert!(lines[1].contains("the port is missing"), "{text}");
    assert!(lines[2].contains("1 h is out of range"), "{text}");
}

#[test]
fn broken_toml_says_where() {
    let text = errors("listen = \n", &[], &[]);
    assert!(text.starts_with("broker.toml:1:"), "{text}");
    assert!(text.contains("not valid TOML"), "{text}");
    let text = errors("listen = [[\"127.0.0.1:1\"]]\n", &[], &[]);
    assert!(text.contains("the elements of a list are plain values"), "{text}");
}

#[test]
fn a_setting_given_twice_in_one_source_is_an_error() {
    let text = errors("listen = \"127.0.0.1:1\"\nlisteners = \"127.0.0.1:2\"", &[], &[]);
    assert!(text.contains("was already given (broker.toml:1:1)"), "{text}");
    let env = [
        ("ANABRANCH_LISTEN", "127.0.0.1:1"),
        ("KAFKA_LISTENERS", "PLAINTEXT://:2"),
    ];
    assert_eq!(ok("", &env, &[]).settings.listen[0].address.port, 1);
}

#[test]
fn a_kafka_container_environment_works() {
    let env = [
        ("KAFKA_PROCESS_ROLES", "broker,controller"),
        (
            "KAFKA_LISTENERS",
            "PLAINTEXT://:9092,PLAINTEXT_HOST://:29092,CONTROLLER://:9093",
        ),
        (
            "KAFKA_ADVERTISED_LISTENERS",
            "PLAINTEXT://broker:9092,PLAINTEXT_HOST://localhost:29092",
        ),
        ("KAFKA_HEAP_OPTS", "-Xmx1g"),
        ("KAFKA_SOMETHING_ELSE", "1"),
        ("ANABRANCH_SERVICE_HOST", "10.0.0.1"),
        ("ANABRANCH_PORT_9092_TCP", "tcp://10.0.0.1:9092"),
    ];
    let Resolved {
        settings, warnings, ..
    } = ok("", &env, &[]);
    let told: Vec<String> = settings
        .listen
        .iter()
        .map(|listener| {
            format!(
                "{listener} {}",
                settings
                    .advertised(listener)
                    .map_or("-".to_owned(), ToString::to_string)
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "PLAINTEXT://0.0.0.0:9092 broker:9092",
            "PLAINTEXT_HOST://0.0.0.0:29092 localhost:29092"
        ]
    );
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].contains("process.roles has no effect here"),
        "{warnings:?}"
    );
    assert!(
        warnings[1].contains("KAFKA_SOMETHING_ELSE is ignored"),
        "{warnings:?}"
    );
}

#[test]
fn broker_wide_kafka_settings_are_checked_and_passed_on() {
    let file = "num.partitions = 3\n[log.retention]\nms = 60000\n";
    let env = [
        ("KAFKA_AUTO_CREATE_TOPICS_ENABLE", "false"),
        ("KAFKA_LOG_SEGMENT_BYTES", "1048576"),
    ];
    let resolved = ok(file, &env, &[("message.max.bytes", "2000000")]);
    let broker = &resolved.settings.server.broker;
    for (name, value) in [
        ("num.partitions", "3"),
        ("log.retention.ms", "60000"),
        ("auto.create.topics.enable", "false"),
        ("message.max.bytes", "2000000"),
    ] {
        assert_eq!(broker.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert_eq!(resolved.origin("num.partitions").to_string(), "broker.toml:1:1");
    assert_eq!(resolved.warnings.len(), 1, "{:?}", resolved.warnings);
    assert!(
        resolved.warnings[0].contains("log.segment.bytes has no effect here: all partitions share"),
        "{:?}",
        resolved.warnings
    );

    let text = errors("num.partitions = 0\nnum.partition = 3\n", &[], &[]);
    assert!(text.contains("`0` is not a value of `num.partitions`"), "{text}");
    assert!(
        text.contains("there is no setting \"num.partition\"; did you mean \"num.partitions\"?"),
        "{text}"
    );
}

/// What the server does under names of its own is shown to administration tools under Kafka's.
#[test]
fn clients_see_what_is_in_force() {
    let flags = [
        ("socket.request.max.bytes", "1MiB"),
        ("connections.max.idle.ms", "1min"),
        ("listen", "127.0.0.1:7"),
        ("data", "/d"),
    ];
    let broker = ok("", &[], &flags).settings.config().broker;
    for (name, value) in [
        ("socket.request.max.bytes", "1048576"),
        ("connections.max.idle.ms", "60000"),
        ("listeners", "PLAINTEXT://127.0.0.1:7"),
        ("log.dirs", "/d"),
    ] {
        assert_eq!(broker.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(!broker.contains_key("queued.max.request.bytes"));
}

#[test]
fn addresses_that_cannot_work_are_refused() {
    let text = errors("", &[], &[("advertise", "0.0.0.0:9092")]);
    assert!(text.contains("no client can connect to 0.0.0.0:9092"), "{text}");
    let text = errors("", &[], &[("advertise", "OUTSIDE://example.org:9092")]);
    assert!(
        text.contains("no listener is named OUTSIDE; write HOST:PORT alone"),
        "{text}"
    );
    let text = errors("", &[], &[("http", "127.0.0.1:9092")]);
    assert!(text.contains("http: 127.0.0.1:9092 is already used"), "{text}");
    assert_eq!(ok("", &[], &[("http", "none")]).settings.server.http, None);
    let off = errors("", &[], &[("http", "off")]);
    assert!(off.contains("none turns it off"), "{off}");
    let config = ok(
        "",
        &[],
        &[("listen", "A://127.0.0.1:1"), ("advertise", "[::1]:2")],
    )
    .settings
    .config();
    assert_eq!(config.listeners[0].bind, "127.0.0.1:1");
    assert_eq!(config.listeners[0].advertise.as_ref().unwrap().host, "::1");
    let two = ok("", &[], &[("listen", "127.0.0.1:0,127.0.0.1:0")]);
    assert_eq!(two.settings.listen.len(), 2);
}

#[test]
fn every_setting_is_explained() {
    let resolved = ok("", &[("ANABRANCH_LOG_LEVEL", "warn")], &[]);
    for item in ITEMS {
        let text = explain(item.name, &resolved).unwrap();
        assert!(text.contains(&item.env()), "{text}");
        assert!(reference_page().contains(&format!("\n### {}\n", item.name)));
        assert!(text.lines().all(|line| line.len() <= 110), "{text}");
    }
    let level = explain("log.level", &resolved).unwrap();
    assert!(
        level.contains("value        warn  (environment variable ANABRANCH_LOG_LEVEL)"),
        "{level}"
    );
    assert!(explain("log.dirs", &resolved).unwrap().starts_with("data\n"));
    assert!(
        explain("process.roles", &resolved)
            .unwrap()
            .contains("no effect here")
    );
    let partitions = explain("num.partitions", &resolved).unwrap();
    assert!(partitions.contains("value        1  (default)"), "{partitions}");
    assert!(partitions.contains("KAFKA_NUM_PARTITIONS"), "{partitions}");
    assert!(reference_page().contains("| `num.partitions` | `1` |"));
    assert_eq!(explain("colour", &resolved), None);
}

#[test]
fn hosts_and_token_stand_beside_the_address_that_they_are_for() {
    let file =
        "http = \"127.0.0.1:1\"\nadmin.hosts = [\"Console.example.com\", \"b\"]\nadmin.token.file = \"/t\"";
    let server = ok(file, &[], &[]).settings.server;
    assert_eq!(server.admin_hosts, ["console.example.com", "b"]);
    assert_eq!(server.admin_token_file.unwrap().to_str(), Some("/t"));
    let server = ok(
        "",
        &[
            ("ANABRANCH_ADMIN_HOSTS", "a.example,b.example"),
            ("ANABRANCH_ADMIN_TOKEN_FILE", "none"),
        ],
        &[],
    )
    .settings
    .server;
    assert_eq!((server.admin_hosts.len(), server.admin_token_file), (2, None));
    let problem = errors("admin.hosts = [\"http://a.example\"]", &[], &[]);
    assert!(problem.contains("leave out scheme and port"), "{problem}");
}
