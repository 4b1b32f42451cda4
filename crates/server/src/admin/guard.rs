//! Who may ask, and who may order.
//!
//! The API has no users. It is kept from web pages of others, which a browser on a trusted machine may be made to load:
//!
//! - *DNS rebinding*: a page of `evil.example` whose name has come to mean 127.0.0.1. Its requests carry that name as their
//!   `Host`, so only names that nobody else can own are answered: addresses, `localhost`, names without a dot, and
//!   those that the setting `admin.hosts` lists.
//! - *Forged orders*: a page that has the browser send a POST. The browser says where it came from (`Origin`), and that must be this
//!   server.
//!
//! Orders come from this machine, or with the token of `admin.token.file`. Who comes through a proxy (`Forwarded`,
//! `X-Forwarded-For`) is not on this machine, wherever the proxy is.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{AUTHORIZATION, FORWARDED, HOST, HeaderName, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

use super::routes::refused;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Fewest bytes of a token: less can be guessed.
const TOKEN_BYTES_MIN: usize = 16;
/// Most bytes of a token: what fits into a header with room to spare.
const TOKEN_BYTES_MAX: usize = 1_024;

/// What is let through.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    /// Names besides those that are always good, in lower case; `*` is every name.
    pub(crate) hosts: Vec<String>,
    /// Lets orders in from elsewhere.
    pub(crate) token: Option<String>,
}

/// Checks a token from a file: one line of visible ASCII.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn parse_token(text: &str) -> Result<String, String> {
    let token = text.trim();
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("a token is one line of letters, digits and signs, without spaces".to_owned());
    }
    if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&token.len()) {
        return Err(format!(
            "a token has {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} characters, not {}; `openssl rand -hex 32` makes a good one",
            token.len()
        ));
    }
    Ok(token.to_owned())
}

/// Lets through what was meant for this server.
pub(crate) async fn known_host(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let host = host_of(&request);
    match host {
        Some(host) if guard.is_known(host) => next.run(request).await,
        _ => refused(
            StatusCode::MISDIRECTED_REQUEST,
            "unknown-host",
            &format!(
                "this broker does not go by the name {:?}; use its address, or list the name in the setting admin.hosts",
                host.unwrap_or_default()
            ),
        ),
    }
}

/// Lets orders through that may be given.
pub(crate) async fn may_order(
    State(guard): State<Arc<Guard>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let verdict = guard.judge(
        peer.ip(),
        host_of(&request).unwrap_or_default(),
        request.headers(),
    );
    match verdict {
        Verdict::Welcome => next.run(request).await,
        Verdict::OtherOrigin => refused(
            StatusCode::FORBIDDEN,
            "forbidden",
            "orders are not taken from pages of another origin",
        ),
        Verdict::NotHere => refused(
            StatusCode::FORBIDDEN,
            "forbidden",
            "orders are taken from this machine only; run the command where the broker runs, or set admin.token.file",
        ),
        Verdict::NoToken => {
            let text = "orders from another machine need the token of admin.token.file (Authorization: Bearer TOKEN)";
            let mut response = refused(StatusCode::UNAUTHORIZED, "unauthorized", text);
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
            response
        }
    }
}

fn host_of(request: &Request) -> Option<&str> {
    let header = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    header.or_else(|| request.uri().authority().map(axum::http::uri::Authority::as_str))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Welcome,
    OtherOrigin,
    NotHere,
    NoToken,
}

impl Guard {
    fn is_known(&self, host: &str) -> bool {
        let Some(name) = name_of(host) else {
            return false;
        };
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let is_plain = !name.is_empty() && !name.contains('.');
        is_plain
            || name.parse::<IpAddr>().is_ok()
            || name.ends_with(".localhost")
            || self.hosts.iter().any(|known| known == "*" || *known == name)
    }

    fn judge(&self, peer: IpAddr, host: &str, headers: &HeaderMap) -> Verdict {
        if !is_own_page(host, headers) {
            return Verdict::OtherOrigin;
        }
        let is_forwarded = headers.contains_key(FORWARDED) || headers.contains_key(FORWARDED_FOR);
        if peer.to_canonical().is_loopback() && !is_forwarded {
            return Verdict::Welcome;
        }
        let Some(token) = &self.token else {
            return Verdict::NotHere;
        };
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| value.split_once(' '));
        match given {
            Some((scheme, given))
                if scheme.eq_ignore_ascii_case("bearer") && is_same(given.trim(), token) =>
            {
                Verdict::Welcome
            }
            _ => Verdict::NoToken,
        }
    }
}

/// The name or address without its port and brackets; `None` for what is no host.
fn name_of(host: &str) -> Option<&str> {
    if let Some(rest) = host.strip_prefix('[') {
        let (address, after) = rest.split_once(']')?;
        let has_port = after.is_empty() || after.starts_with(':');
        return has_port.then_some(address);
    }
    let name = host.split_once(':').map_or(host, |(name, _)| name);
    // More colons: an address without brackets is no host.
    (host.matches(':').count() <= 1).then_some(name)
}

/// Whether no page has sent it, or one of this server.
fn is_own_page(host: &str, headers: &HeaderMap) -> bool {
    let site = headers.get(FETCH_SITE).map(HeaderValue::as_bytes);
    if site.is_some_and(|site| site != b"same-origin" && site != b"none") {
        return false;
    }
    let Some(origin) = headers.get(ORIGIN) else {
        return true;
    };
    let origin = origin.to_str().unwrap_or_default();
    // Behind a proxy the page may have come over TLS: the scheme is not ours to know.
    let place = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    !host.is_empty() && place.is_some_and(|place| place.eq_ignore_ascii_case(host))
}

/// Compares in a time that does not tell how far they agree.
fn is_same(given: &str, token: &str) -> bool {
    let pairs = given.bytes().zip(token.bytes());
    given.len() == token.len() && pairs.fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "127.0.0.1";
    const THERE: &str = "192.0.2.7";
    const TOKEN: &str = "0123456789abcdef";

    fn guard(token: Option<&str>) -> Guard {
        Guard {
            hosts: vec!["broker.example".to_owned()],
            token: token.map(str::to_owned),
        }
    }

    fn judged(token: Option<&str>, peer: &str, headers: &[(&'static str, &'static str)]) -> Verdict {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        guard(token).judge(peer.parse().unwrap(), "localhost:9099", &headers.collect())
    }

    #[test]
    fn names_that_nobody_else_can_own_are_known() {
        let guard = guard(None);
        for host in [
            "127.0.0.1:9099",
            "192.0.2.1",
            "[::1]:9099",
            "[::1]",
            "localhost:9099",
            "LOCALHOST",
            "a.localhost:1",
            "anabranch:9099",
            "broker.example",
            "Broker.Example.:9099",
        ] {
            assert!(guard.is_known(host), "{host}");
        }
        for host in [
            "evil.example:9099",
            "",
            ":9099",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "[::1",
            "::1",
            "sub.broker.example",
            "127.0.0.1:9099:1",
            "[::1]evil.example",
            ".",
        ] {
            assert!(!guard.is_known(host), "{host}");
        }
        let open = Guard {
            hosts: vec!["*".to_owned()],
            token: None,
        };
        assert!(open.is_known("evil.example"));
    }

    #[test]
    fn orders_come_from_here_or_with_the_token() {
        let bearer = ("authorization", "Bearer 0123456789abcdef");
        assert_eq!(judged(None, HERE, &[]), Verdict::Welcome);
        assert_eq!(judged(Some(TOKEN), HERE, &[]), Verdict::Welcome);
        assert_eq!(judged(None, "::ffff:127.0.0.1", &[]), Verdict::Welcome);
        assert_eq!(judged(None, THERE, &[]), Verdict::NotHere);
        assert_eq!(judged(None, THERE, &[bearer]), Verdict::NotHere);
        assert_eq!(judged(Some(TOKEN), THERE, &[]), Verdict::NoToken);
        assert_eq!(judged(Some(TOKEN), THERE, &[bearer]), Verdict::Welcome);
        for wrong in [
            "Bearer 0123456789abcdeF",
            "Bearer 0123456789abcde",
            "Basic 0123456789abcdef",
            "Bearer",
        ] {
            assert_eq!(
                judged(Some(TOKEN), THERE, &[("authorization", wrong)]),
                Verdict::NoToken,
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_proxy_on_this_machine_makes_nobody_local() {
        assert_eq!(
            judged(None, HERE, &[("x-forwarded-for", "192.0.2.7")]),
            Verdict::NotHere
        );
        assert_eq!(
            judged(Some(TOKEN), HERE, &[("forwarded", "for=192.0.2.7")]),
            Verdict::NoToken
        );
    }

    #[test]
    fn pages_of_others_order_nothing() {
        for origin in ["http://localhost:9099", "https://localhost:9099"] {
            assert_eq!(
                judged(None, HERE, &[("origin", origin)]),
                Verdict::Welcome,
                "{origin}"
            );
        }
        for origin in [
            "http://evil.example",
            "null",
            "http://localhost",
            "http://localhost:9099.evil.example",
            "",
        ] {
            assert_eq!(
                judged(None, HERE, &[("origin", origin)]),
                Verdict::OtherOrigin,
                "{origin}"
            );
        }
        for site in ["cross-site", "same-site"] {
            assert_eq!(
                judged(None, HERE, &[("sec-fetch-site", site)]),
                Verdict::OtherOrigin,
                "{site}"
            );
        }
        // Not even with the token: a page that has it was given it by somebody.
        let both = [
            ("origin", "http://evil.example"),
            ("authorization", "Bearer 0123456789abcdef"),
        ];
        assert_eq!(judged(Some(TOKEN), THERE, &both), Verdict::OtherOrigin);
    }

    #[test]
    fn a_token_is_worth_its_name() {
        assert_eq!(parse_token(" 0123456789abcdef\n").unwrap(), TOKEN);
        assert!(parse_token("short").unwrap_err().contains("16 to 1024"));
        assert!(
            parse_token("0123456789 abcdef")
                .unwrap_err()
                .contains("without spaces")
        );
    }
}
