//! Introductions: what clients said about their software, for those of their connections on which they say nothing.
//!
//! franz-go, among others, sends ApiVersions on its first connection to a broker only. A connection without introduction
//! is taken for the client that introduced itself with the same client id from the same address, unless two different
//! ones did: then it stays unknown.

use std::collections::BTreeMap;

use super::software::ClientSoftware;
use crate::group::api::Caller;
use crate::limits::{CLIENT_ID_BYTES_REMEMBERED_MAX, INTRODUCTIONS_MAX};

/// Client id and address.
pub(super) type Fingerprint = (String, String);

/// Different softwares that are told apart under one fingerprint; more of them make it useless anyway.
const SOFTWARES_MAX: usize = 4;

/// Who introduced itself how.
#[derive(Debug, Default)]
pub(super) struct Introductions {
    known: BTreeMap<Fingerprint, Said>,
    /// Fingerprints without open connections, by the time they lost their last one.
    parted: BTreeMap<u64, Fingerprint>,
    clock: u64,
}

#[derive(Debug, Default)]
struct Said {
    /// What is said on open connections, and on how many; `None` for a client that came without a name.
    open: Vec<(Option<ClientSoftware>, usize)>,
    /// What was said on the last connection that closed.
    last: Option<ClientSoftware>,
    parted_at: Option<u64>,
}

impl Introductions {
    /// Notes what a client said on a new connection; returns under what, or nothing if it is not remembered.
    pub(super) fn note(&mut self, caller: &Caller) -> Option<Fingerprint> {
        if caller.client_id.len() > CLIENT_ID_BYTES_REMEMBERED_MAX {
            return None;
        }
        let key = (caller.client_id.clone(), caller.host.clone());
        if !self.known.contains_key(&key) && !self.make_room() {
            return None;
        }
        let said = self.known.entry(key.clone()).or_default();
        let known = said.open.iter().position(|(open, _)| *open == caller.software);
        match known {
            Some(at) => said.open[at].1 += 1,
            None if said.open.len() >= SOFTWARES_MAX => return None,
            None => said.open.push((caller.software.clone(), 1)),
        }
        if let Some(at) = said.parted_at.take() {
            self.parted.remove(&at);
        }
        Some(key)
    }

    /// A connection that introduced itself under `key` has closed.
    pub(super) fn parted(&mut self, key: Fingerprint, software: Option<&ClientSoftware>) {
        let Some(said) = self.known.get_mut(&key) else {
            return;
        };
        let Some(at) = said.open.iter().position(|(open, _)| open.as_ref() == software) else {
            return;
        };
        said.open[at].1 -= 1;
        if said.open[at].1 == 0 {
            said.last = said.open.swap_remove(at).0;
        }
        if said.open.is_empty() {
            self.clock += 1;
            said.parted_at = Some(self.clock);
            self.parted.insert(self.clock, key);
        }
    }

    /// The software of a client that said nothing on this connection.
    pub(super) fn guess(&self, caller: &Caller) -> Option<&ClientSoftware> {
        // A lookup by two borrowed strings would need a key of its own; this is asked rarely.
        let said = self.known.get(&(caller.client_id.clone(), caller.host.clone()))?;
        match said.open.as_slice() {
            [] => said.last.as_ref(),
            [(software, _)] => software.as_ref(),
            _ => None,
        }
    }

    /// Forgets the fingerprint that is without connections longest, if there is no room; whether there is room now.
    fn make_room(&mut self) -> bool {
        if self.known.len() < INTRODUCTIONS_MAX {
            return true;
        }
        match self.parted.pop_first() {
            Some((_, key)) => self.known.remove(&key).is_some(),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(client_id: &str, software: Option<&str>) -> Caller {
        Caller {
            client_id: client_id.to_owned(),
            host: "/10.0.0.1".to_owned(),
            software: software.map(|name| ClientSoftware::new(name, "1.0").unwrap()),
            ..Caller::default()
        }
    }

    fn guess(known: &Introductions, client_id: &str) -> Option<String> {
        let caller = caller(client_id, None);
        known.guess(&caller).map(|software| software.name().to_owned())
    }

    #[test]
    fn a_silent_connection_is_taken_for_the_only_client_of_its_name_and_address() {
        let mut known = Introductions::default();
        assert_eq!(guess(&known, "app"), None);
        let first = known.note(&caller("app", Some("kgo"))).unwrap();
        let second = known.note(&caller("app", Some("kgo"))).unwrap();
        assert_eq!(guess(&known, "app").as_deref(), Some("kgo"));
        assert_eq!(guess(&known, "other"), None);
        let elsewhere = Caller {
            host: "/10.0.0.2".to_owned(),
            ..caller("app", None)
        };
        assert_eq!(known.guess(&elsewhere), None);
        // Its connection has been idle for so long that it was closed.
        let kgo = ClientSoftware::new("kgo", "1.0");
        known.parted(first, kgo.as_ref());
        known.parted(second, kgo.as_ref());
        assert_eq!(guess(&known, "app").as_deref(), Some("kgo"));
    }

    #[test]
    fn two_clients_of_one_name_cannot_be_told_apart_not_even_if_one_has_no_name() {
        for other in [Some("sarama"), None] {
            let mut known = Introductions::default();
            known.note(&caller("app", Some("kgo"))).unwrap();
            let key = known.note(&caller("app", other)).unwrap();
            assert_eq!(guess(&known, "app"), None);
            known.parted(key, caller("app", other).software.as_ref());
            assert_eq!(guess(&known, "app").as_deref(), Some("kgo"));
        }
    }

    #[test]
    fn an_update_of_the_program_replaces_what_the_old_one_said() {
        let mut known = Introductions::default();
        let old = known.note(&caller("app", Some("old"))).unwrap();
        known.parted(old, ClientSoftware::new("old", "1.0").as_ref());
        known.note(&caller("app", Some("new"))).unwrap();
        assert_eq!(guess(&known, "app").as_deref(), Some("new"));
    }

    #[test]
    fn memory_is_bounded_and_open_connections_are_not_forgotten() {
        let mut known = Introductions::default();
        let open = known.note(&caller("open", Some("kgo"))).unwrap();
        for number in 0..2 * INTRODUCTIONS_MAX {
            let key = known.note(&caller(&format!("id-{number}"), None)).unwrap();
            known.parted(key, None);
        }
        assert_eq!(known.known.len(), INTRODUCTIONS_MAX);
        assert_eq!(known.parted.len(), INTRODUCTIONS_MAX - 1);
        assert_eq!(guess(&known, "open").as_deref(), Some("kgo"));
        assert!(known.known.contains_key(&open));
        assert_eq!(known.note(&caller(&"x".repeat(1_000), None)), None);
    }

    #[test]
    fn with_nothing_but_open_connections_newcomers_are_not_remembered() {
        let mut known = Introductions::default();
        for number in 0..INTRODUCTIONS_MAX {
            known.note(&caller(&format!("id-{number}"), None)).unwrap();
        }
        assert_eq!(known.note(&caller("more", None)), None);
    }
}
