//! Who may ask what.
//!
//! On a loopback address nobody is asked for anything, as a socket file would not; only the `Host` of a request must be this
//! machine, for a page from elsewhere may have a name that is made to lead here. An address that other hosts can reach must have a
//! token or ask for certificates: without, the daemon does not start. What is set is required: a token, a certificate, or both.
//!
//! `/livez`, `/readyz` and `/metrics` ask for neither (who probes has none), and say nothing that needs to be kept secret: names and
//! numbers, nothing that was proclaimed. The page at `/` is the same for everybody; what it shows it must ask for.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::watch;

use crate::api::Code;
use crate::client::read_token;
use crate::failure::Failure;
use crate::settings::Settings;

use super::answer::Refused;

/// Paths that ask for nothing.
pub(super) const OPEN: [&str; 4] = ["/livez", "/readyz", "/metrics", "/"];

/// Whether a path is for probes: places are kept for those, so that nobody can lock them out.
pub(super) fn is_probe(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz" | "/metrics") || path.starts_with("/leader/")
}

/// What is required of those who ask, as it is now: a daemon may read its settings again.
#[derive(Clone, Debug)]
pub(super) struct Entry(watch::Receiver<Rules>);

/// What the settings require.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    token: Option<String>,
    certificate: bool,
}

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    /// Whether it has shown a certificate that one of our authorities has signed.
    pub(super) certified: bool,
}

impl Rules {
    /// By the settings; refused if others could reach `address` and nothing would be required of them.
    pub(super) fn new(settings: &Settings, address: SocketAddr) -> Result<Self, Failure> {
        let daemon = &settings.daemon;
        let certificate = daemon.tls_client_ca.is_some();
        let token = daemon
            .token_file
            .as_ref()
            .map(|path| read_token(settings, "daemon.token_file", path))
            .transpose()?;
        if !address.ip().is_loopback() && token.is_none() && !certificate {
            return Err(Failure::config(format!(
                "daemon.http: other hosts can reach {address} and anybody could depose leaders: set daemon.token_file, or daemon.tls_client_ca with tls_cert and tls_key, or use 127.0.0.1"
            )));
        }
        Ok(Self { token, certificate })
    }

    fn admit(&self, request: &Request) -> Result<(), Refused> {
        if OPEN.contains(&request.uri().path()) {
            return Ok(());
        }
        if self.certificate && !request.extensions().get::<Caller>().is_some_and(|caller| caller.certified) {
            return Err(Refused::new(
                Code::BadToken,
                "a client's certificate is needed: set client.cert and client.key",
            ));
        }
        if let Some(token) = &self.token {
            let shown =
                request.headers().get(AUTHORIZATION).map(|value| value.as_bytes()).unwrap_or_default();
            let shown = match shown.split_at_checked(7) {
                Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"Bearer ") => token,
                _ => &[],
            };
            if !equal(shown, token.as_bytes()) {
                return Err(Refused::new(
                    Code::BadToken,
                    "the bearer token is missing or wrong: set client.token_file to a file with this daemon's token",
                ));
            }
        }
        if self.token.is_none() && !self.certificate && !names_this_host(request) {
            return Err(Refused::new(
                Code::Forbidden,
                "a daemon without a token answers only as localhost or by its IP address",
            ));
        }
        Ok(())
    }
}

impl Entry {
    /// By the rules that were told last.
    pub(super) fn new(rules: watch::Receiver<Rules>) -> Self {
        Self(rules)
    }
}

/// Lets a request pass, or refuses it.
pub(super) async fn admit(State(entry): State<Entry>, request: Request, next: Next) -> Response {
    let admitted = entry.0.borrow().admit(&request);
    match admitted {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}

/// Whether a request names this machine as its `Host`, or none. A page of another site whose name was made to lead
/// here (DNS rebinding) names that site.
pub(super) fn names_this_host(request: &Request) -> bool {
    let host = request.headers().get(HOST);
    host.is_none_or(|host| host.to_str().is_ok_and(is_here))
}

/// Whether a `Host` is this machine: a number, or `localhost`.
fn is_here(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost")
}

/// Whether two texts are the same, in a time that tells nothing of where they differ.
fn equal(one: &[u8], other: &[u8]) -> bool {
    let longest = one.len().max(other.len());
    let mut differ = one.len() ^ other.len();
    for at in 0..longest {
        let byte = |text: &[u8]| text.get(at).copied().unwrap_or(0);
        differ |= usize::from(std::hint::black_box(byte(one) ^ byte(other)));
    }
    std::hint::black_box(differ) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_equal_only_if_they_are() {
        assert!(equal(b"secret", b"secret") && equal(b"", b""));
        for wrong in ["", "secre", "secret1", "Secret", "secret\0"] {
            assert!(!equal(wrong.as_bytes(), b"secret"), "{wrong:?}");
        }
    }

    #[test]
    fn only_numbers_and_localhost_are_this_machine() {
        for host in ["127.0.0.1:7401", "127.0.0.1", "[::1]:7401", "[::1]", "localhost", "LocalHost:80"] {
            assert!(is_here(host), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:7401", "", "127.0.0.1.evil.example"] {
            assert!(!is_here(host), "{host}");
        }
    }
}
