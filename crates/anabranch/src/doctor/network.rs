//! The listeners of the settings, and the addresses that clients are told: whether they can be had, and reached from here.

use std::io;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

use anabranch_server::settings::{HostPort, NamedAddress, Settings};

use super::finding::Finding;
use crate::client::{Admin, Connection, is_loopback};
use crate::failure::{Exit, reason};

/// Longest wait for a connection.
const PATIENCE: Duration = Duration::from_secs(3);

const ADVERTISE: &str = "--advertise HOST:PORT tells clients the address at which they reach the broker";

pub(super) fn examine(settings: &Settings, connection: &Connection) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for listener in &settings.listen {
        findings.push(judge_listener(
            "listen",
            &listener.address,
            &try_bind(&listener.address),
        ));
        findings.extend(judge_told(listener, settings.advertised(listener)));
    }
    findings.extend(as_client(connection, connection.is_named()));
    findings
}

/// What became of an attempt to listen.
#[derive(Debug)]
pub(super) enum Bound {
    Free,
    /// Somebody listens there, and takes connections.
    Taken,
    /// Somebody has it, and takes none.
    TakenSilently,
    Failed(io::Error),
}

pub(super) fn try_bind(address: &HostPort) -> Bound {
    match TcpListener::bind((address.host.as_str(), address.port)) {
        Ok(_) => Bound::Free,
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => match reach(&local(address)) {
            Ok(()) => Bound::Taken,
            Err(_) => Bound::TakenSilently,
        },
        Err(error) => Bound::Failed(error),
    }
}

/// The address by which this machine reaches a listener.
pub(super) fn local(address: &HostPort) -> HostPort {
    let host = match address.host.as_str() {
        "0.0.0.0" => "127.0.0.1",
        "::" => "::1",
        host => host,
    };
    HostPort {
        host: host.to_owned(),
        port: address.port,
    }
}

fn reach(address: &HostPort) -> io::Result<()> {
    let mut last = io::Error::other("the name has no address");
    for resolved in (address.host.as_str(), address.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&resolved, PATIENCE) {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

pub(super) fn judge_listener(check: &'static str, address: &HostPort, bound: &Bound) -> Finding {
    let who = format!("`ss -ltnp | grep :{}` says who it is", address.port);
    match bound {
        Bound::Free => Finding::good(check, format!("{address} is free")),
        Bound::Taken => Finding::note(
            check,
            format!("{address} is in use and answers: the broker, if it runs"),
        )
        .remedy(who),
        Bound::TakenSilently => {
            let text = format!("{address} is in use by something that takes no connections");
            Finding::error(
                check,
                text,
                format!("{who}; end it, or listen elsewhere (`anabranch serve --help`)"),
            )
        }
        Bound::Failed(error) => {
            let remedy = match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "ports below 1024 need a capability: AmbientCapabilities=CAP_NET_BIND_SERVICE of the unit, or a port above"
                }
                io::ErrorKind::AddrNotAvailable => {
                    "listen on an address of this machine (`ip address` shows them) or on 0.0.0.0, and name the public one by --advertise"
                }
                _ => "name an address of this machine, or 0.0.0.0 for all of them",
            };
            Finding::error(
                check,
                format!("cannot listen on {address}: {}", reason(error)),
                remedy,
            )
        }
    }
}

fn is_every(host: &str) -> bool {
    host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_unspecified())
}

/// What clients of a listener are told, as far as the settings alone can be wrong.
fn judge_told(listener: &NamedAddress, told: Option<&HostPort>) -> Option<Finding> {
    const CHECK: &str = "advertise";
    let host = &listener.address.host;
    let Some(told) = told else {
        return (!is_loopback(host)).then(|| {
            let text = format!(
                "clients of {} are told the address that they dialled",
                listener.address
            );
            Finding::note(CHECK, text).remedy(format!(
                "behind a proxy or a port mapping that is not enough: {ADVERTISE}"
            ))
        });
    };
    if is_every(&told.host) {
        let text = format!("clients are told {told}, which is no address to connect to");
        return Some(Finding::error(CHECK, text, ADVERTISE));
    }
    (is_loopback(&told.host) && !is_loopback(host)).then(|| {
        let text = format!("clients on other machines are told {told}, and would connect to themselves");
        Finding::warning(CHECK, text, ADVERTISE)
    })
}

/// What a client sees that asks the broker for its address.
fn as_client(connection: &Connection, is_named: bool) -> Vec<Finding> {
    const CHECK: &str = "client";
    let asked = Admin::connect(connection).and_then(|admin| admin.told_nodes());
    match asked {
        Ok(nodes) => {
            let told = nodes.into_iter().map(|node| HostPort {
                host: node.host,
                port: node.port,
            });
            told.map(|address| judge_reached(connection.broker(), &address, reach(&address)))
                .collect()
        }
        Err(failure) if failure.exit == Exit::Unreachable && !is_named => {
            vec![
                Finding::note(CHECK, format!("no broker answers at {}", connection.broker()))
                    .remedy("-b HOST:PORT names one that should"),
            ]
        }
        Err(failure) => {
            let remedy = failure
                .hint
                .unwrap_or_else(|| "is it started? -b HOST:PORT names another".to_owned());
            vec![Finding::error(CHECK, failure.message, remedy)]
        }
    }
}

fn judge_reached(dialled: &str, told: &HostPort, reached: io::Result<()>) -> Finding {
    const CHECK: &str = "client";
    match reached {
        Ok(()) => Finding::good(CHECK, format!("{dialled} tells clients {told}, which answers")),
        Err(error) => {
            let text = format!(
                "{dialled} tells clients to go to {told}, and from here that fails: {}",
                reason(&error)
            );
            Finding::error(CHECK, text, ADVERTISE)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn address(text: &str) -> HostPort {
        text.parse().unwrap()
    }

    fn named(text: &str) -> NamedAddress {
        text.parse().unwrap()
    }

    #[test]
    fn a_port_is_free_or_taken_or_not_of_this_machine() {
        let holder = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = holder.local_addr().unwrap().port();
        let taken = address(&format!("127.0.0.1:{port}"));
        assert!(matches!(try_bind(&taken), Bound::Taken));
        assert_eq!(judge_listener("listen", &taken, &Bound::Taken).level, Level::Note);
        drop(holder);
        assert!(matches!(try_bind(&address("127.0.0.1:0")), Bound::Free));
        // A documentation address (RFC 5737) is nobody's.
        let strange = address("192.0.2.1:9092");
        let bound = try_bind(&strange);
        assert!(matches!(bound, Bound::Failed(_)), "{bound:?}");
        let finding = judge_listener("listen", &strange, &bound);
        assert_eq!(finding.level, Level::Error);
        assert!(finding.remedy.unwrap().contains("--advertise"));
    }

    #[test]
    fn what_clients_are_told_must_lead_somewhere() {
        let level = |listen: &str, told: Option<&str>| {
            let told = told.map(address);
            judge_told(&named(listen), told.as_ref()).map(|finding| finding.level)
        };
        assert_eq!(level("127.0.0.1:9092", None), None);
        assert_eq!(level("0.0.0.0:9092", None), Some(Level::Note));
        assert_eq!(level("0.0.0.0:9092", Some("0.0.0.0:9092")), Some(Level::Error));
        assert_eq!(
            level("0.0.0.0:9092", Some("localhost:9092")),
            Some(Level::Warning)
        );
        assert_eq!(level("127.0.0.1:9092", Some("localhost:9092")), None);
        assert_eq!(level("0.0.0.0:9092", Some("broker.example:9092")), None);
    }

    #[test]
    fn an_address_that_is_told_and_does_not_answer_is_an_error_with_both_addresses() {
        let told = address("10.0.0.9:9092");
        let refused = io::Error::from_raw_os_error(111);
        let finding = judge_reached("broker.example:9092", &told, Err(refused));
        assert_eq!(finding.level, Level::Error);
        assert_eq!(
            finding.message,
            "broker.example:9092 tells clients to go to 10.0.0.9:9092, and from here that fails: connection refused"
        );
    }
}
