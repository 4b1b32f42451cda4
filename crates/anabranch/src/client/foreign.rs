//! What is at an address where librdkafka found no Kafka broker, from what it says about the connection, or from how the other
//! side greets.

use crate::failure::Failure;

/// Something else than a Kafka broker, in words, and what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Foreign {
    pub(super) what: &'static str,
    pub(super) remedy: &'static str,
}

const HTTP: Foreign = Foreign {
    what: "an HTTP server answers there, no Kafka broker",
    remedy: "name the port for Kafka clients, 9092 as a rule; 9099 is Anabranch's HTTP listener, the console",
};

const TLS: Foreign = Foreign {
    what: "the listener there speaks TLS",
    remedy: "this program speaks no TLS: name a listener without it",
};

const OTHER: Foreign = Foreign {
    what: "something answers there that is no Kafka broker",
    remedy: "is the port right? --bootstrap HOST:PORT names another",
};

const NO_SASL: Foreign = Foreign {
    what: "the broker takes no logins by SASL, or not this one",
    remedy: "leave out -X security.protocol and -X sasl.*, or correct them",
};

impl Foreign {
    /// Reads the first four bytes of an answer, which librdkafka takes for its length. A listener that speaks TLS is not found
    /// so: its alert is shorter than what librdkafka waits for, and then the connection is at its end.
    pub(super) fn of(reason: &str) -> Option<Foreign> {
        if reason.contains("SASL") {
            return Some(NO_SASL);
        }
        let (_, rest) = reason.split_once("Invalid response size ")?;
        let size: i32 = rest.split(' ').next()?.parse().ok()?;
        Some(match size.to_be_bytes() {
            [b'H', b'T', b'T', b'P'] => HTTP,
            _ => OTHER,
        })
    }

    /// Reads the first four bytes of the answer to the beginning of a TLS handshake: a record with a handshake or an alert, the
    /// version behind it.
    pub(super) fn greeting(bytes: [u8; 4]) -> Option<Foreign> {
        match bytes {
            [21 | 22, 3, 0..=4, _] => Some(TLS),
            [b'H', b'T', b'T', b'P'] => Some(HTTP),
            _ => None,
        }
    }

    /// The failure of a command that was to talk to `broker`.
    pub(super) fn failure(self, broker: &str) -> Failure {
        Failure::unreachable(format!("cannot use {broker}: {}", self.what)).hint(self.remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_who_answers() {
        let reason = |size: &str| {
            format!("h:1/bootstrap: Receive failed: Invalid response size {size} (0..100000000): increase")
        };
        assert_eq!(Foreign::of(&reason("1213486160")), Some(HTTP));
        assert_eq!(Foreign::of(&reason("-7")), Some(OTHER));
        assert_eq!(Foreign::of("SASL Handshake not supported"), Some(NO_SASL));
        assert_eq!(Foreign::of("Connect failed"), None);
    }
}
