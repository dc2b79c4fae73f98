//! Access control.
//!
//! Every path needs a role (`routes.rs`), and every caller has at most one:
//!
//! | caller | role |
//! |---|---|
//! | the unix socket: the daemon's user, root, the members of `daemon.socket_group` | admin |
//! | a bearer token | the one that the token carries (`access.rs`) |
//! | a session of a browser, with its proof | operate (`sessions.rs`) |
//! | a certificate by `tls_client_ca` | the one that `[daemon.roles]` gives to one of its names, else read |
//! | none of these | read where reads are open, else none |
//!
//! Reads are open on loopback unless certificates are asked for; `daemon.open_reads` says
//! otherwise. An address that other hosts can reach must have a list of tokens or ask for
//! certificates: without, the daemon does not start.
//!
//! **DNS rebinding.** On loopback the `Host` of a request without credentials must be this machine:
//! a page from elsewhere may have a name that is made to lead here, and would read in its reader's
//! place.
//!
//! `/livez`, `/readyz` and `/metrics` need no role: probes have none. They tell names and numbers,
//! nothing that was proclaimed. The page at `/` is the same for everybody; what it shows it must
//! ask for.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{MatchedPath, Request, State};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE, HOST};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::watch;

use crate::api::Code;
use crate::clock::{boottime, date};
use crate::failure::{Failure, messages};
use crate::settings::{CertificateRole, Settings};
use crate::tokens::Role;

use super::access::{Access, Unwelcome};
use super::answer::Refused;
use super::audit::{Act, Outcome, Refusals, Story};
use super::certificate::Names;
use super::sessions::PROOF;
use super::sidecar::decoded;

/// The requirement of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need {
    /// The least role; `None` for what is open to everybody.
    pub(super) role: Option<Role>,
    /// Its name in the audit log, if it changes anything.
    pub(super) act: Option<&'static str>,
}

/// Whether a path is for probes: places are kept for those, so that nobody can lock them out.
pub(super) fn is_probe(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz" | "/metrics") || path.starts_with("/leader/")
}

impl Need {
    /// Open to everybody.
    pub(super) const OPEN: Self = Self { role: None, act: None };
    /// Tells something.
    pub(super) const READ: Self = Self { role: Some(Role::Read), act: None };

    /// Asks a leader for something.
    pub(super) const fn operate(act: &'static str) -> Self {
        Self { role: Some(Role::Operate), act: Some(act) }
    }

    /// Changes the cluster or who may.
    pub(super) const fn admin(act: &'static str) -> Self {
        Self { role: Some(Role::Admin), act: Some(act) }
    }
}

/// The requirements for callers, as they are now: a daemon may read its settings again. Cheap to
/// clone.
#[derive(Clone, Debug)]
pub(super) struct Entry(Arc<Gate>);

#[derive(Debug)]
struct Gate {
    node: String,
    rules: watch::Receiver<Rules>,
    access: Access,
    needs: BTreeMap<&'static str, Need>,
    refusals: Mutex<Refusals>,
}

/// The requirements of the settings.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// Whether everything but what is open to all needs a certificate.
    certificate: bool,
    /// Whether reads need no role.
    open_reads: bool,
    /// Whether only this machine reaches the address.
    loopback: bool,
    /// By the name in a certificate.
    roles: BTreeMap<String, CertificateRole>,
}

/// The other end of a connection.
#[derive(Clone, Debug)]
pub(super) enum Caller {
    /// Over TCP, perhaps with a certificate that one of our authorities has signed.
    Remote {
        /// Its address.
        from: Option<SocketAddr>,
        /// The names in its certificate.
        certificate: Option<Arc<Names>>,
    },
    /// Over the unix socket.
    Local {
        /// Its user, as the system says.
        uid: Option<u32>,
        /// Whether it may do everything.
        is_friend: bool,
    },
}

/// A caller that is known, and what it may do.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    who: String,
    role: Option<Role>,
    /// Whether it has shown anything by which it is known.
    is_known: bool,
}

impl Rules {
    /// By the settings; refused if others could reach `address` and nothing would be required of
    /// them.
    pub(super) fn new(settings: &Settings, address: SocketAddr) -> Result<Self, Failure> {
        let daemon = &settings.daemon;
        let certificate = daemon.tls_client_ca.is_some();
        let loopback = address.ip().is_loopback();
        if !loopback && daemon.tokens_file.is_none() && !certificate {
            return Err(messages::http_open_to_all(address));
        }
        if !certificate && !daemon.roles.is_empty() {
            return Err(messages::roles_without_certificates());
        }
        let open_reads = daemon.open_reads.unwrap_or(loopback && !certificate);
        Ok(Self { certificate, open_reads, loopback, roles: daemon.roles.clone() })
    }

    /// For the unix socket of a daemon without TCP.
    pub(super) fn local() -> Self {
        Self { certificate: false, open_reads: true, loopback: true, roles: BTreeMap::new() }
    }

    /// The role of a certificate. A name of its owner counts before its unit; among several the
    /// highest role counts, and `none` before all: so one certificate is shut out, whatever its
    /// unit may do.
    fn role_of(&self, names: &Names) -> Option<Role> {
        let given = |is_unit: bool| {
            let names = names.iter().filter(move |name| name.starts_with("OU=") == is_unit);
            names.filter_map(|name| self.roles.get(name)).max()
        };
        match given(false).or_else(|| given(true)) {
            None => Some(Role::Read),
            Some(CertificateRole::None) => None,
            Some(CertificateRole::Some(role)) => Some(*role),
        }
    }
}

impl Gate {
    /// The caller. An error if something was shown that does not hold.
    fn identify(&self, rules: &Rules, request: &Request) -> Result<Identity, Refused> {
        let nobody = |role| Identity { who: "nobody".to_owned(), role, is_known: false };
        let caller = request.extensions().get::<Caller>();
        let certificate = match caller {
            Some(Caller::Local { uid, is_friend }) => {
                let who = uid.map_or_else(|| "uid:unknown".to_owned(), |uid| format!("uid:{uid}"));
                let role = Some(if *is_friend { Role::Admin } else { Role::Read });
                return Ok(Identity { who, role, is_known: true });
            }
            Some(Caller::Remote { certificate, .. }) => certificate.as_deref(),
            None => None,
        };
        if rules.certificate && certificate.is_none() {
            return Err(Refused::new(
                Code::NoToken,
                "a client's certificate is needed: set client.cert and client.key",
            ));
        }
        if let Some(shown) = bearer(request.headers()) {
            let (id, role) = self.access.token(shown).map_err(|unwelcome| unknown_token(&unwelcome))?;
            return Ok(Identity { who: format!("token:{id}"), role: Some(role), is_known: true });
        }
        if let Some((who, is_proved)) = self.session(request.headers()) {
            check_host(rules, request)?;
            // Without its proof a cookie may come from a page that did not open the session.
            let role = if is_proved { Role::Operate } else { Role::Read };
            let role = Some(role).filter(|_| is_proved || rules.open_reads);
            return Ok(Identity { who, role, is_known: is_proved });
        }
        if let Some(names) = certificate {
            let who = format!("certificate:{}", names.shown());
            return Ok(Identity { who, role: rules.role_of(names), is_known: true });
        }
        check_host(rules, request)?;
        Ok(nobody(rules.open_reads.then_some(Role::Read)))
    }

    fn session(&self, headers: &HeaderMap) -> Option<(String, bool)> {
        let text = |value: &axum::http::HeaderValue| value.to_str().ok().map(str::to_owned);
        let proof = headers.get(PROOF).and_then(text);
        let mut cookies = headers.get_all(COOKIE).iter().filter_map(text);
        cookies.find_map(|cookies| self.access.session(&cookies, proof.as_deref()))
    }

    /// The caller, if it may.
    fn admit(&self, need: Need, request: &Request) -> Result<Identity, (Option<Identity>, Refused)> {
        let rules = self.rules.borrow().clone();
        let identity = match self.identify(&rules, request) {
            Ok(identity) => identity,
            // Probes are answered whatever they show.
            Err(_) if need == Need::OPEN => {
                return Ok(Identity { who: String::new(), role: None, is_known: false });
            }
            Err(refused) => return Err((None, refused)),
        };
        match need.role {
            Some(role) if identity.role < Some(role) => {
                let refused = too_little(&identity, role);
                Err((Some(identity), refused))
            }
            _ => Ok(identity),
        }
    }
}

/// The token of a request, if it shows one.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let shown = headers.get(AUTHORIZATION)?.as_bytes();
    let token = match shown.split_at_checked(7) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"Bearer ") => token,
        _ => &[],
    };
    Some(std::str::from_utf8(token).unwrap_or_default().trim())
}

fn unknown_token(unwelcome: &Unwelcome) -> Refused {
    let message = match unwelcome {
        Unwelcome::Unknown => {
            "this daemon knows no such bearer token: it was revoked, or made for another cluster; set client.token_file to a file with one that holds, or make one with `tenure token create`".to_owned()
        }
        Unwelcome::Expired { id, since } => {
            format!("token {id} expired at {}: make another with `tenure token create`", date(*since))
        }
    };
    Refused::new(Code::BadToken, message)
}

fn too_little(identity: &Identity, role: Role) -> Refused {
    if !identity.is_known {
        return Refused::new(
            Code::NoToken,
            format!(
                "this needs the role '{role}': ask over the daemon's unix socket, or set client.token_file to a file with a token that carries it"
            ),
        );
    }
    let has = identity.role.map_or_else(|| "no role".to_owned(), |role| format!("the role '{role}'"));
    let who = &identity.who;
    Refused::new(
        Code::Forbidden,
        format!(
            "{who} has {has}, and this needs '{role}': an admin can make a token with `tenure token create --role {role}`"
        ),
    )
}

/// On loopback, a caller that shows nothing must mean this machine: see the head of this file.
fn check_host(rules: &Rules, request: &Request) -> Result<(), Refused> {
    match rules.loopback && !names_this_host(request) {
        true => Err(Refused::new(
            Code::Forbidden,
            "without a token this daemon answers only as localhost or by its IP address",
        )),
        false => Ok(()),
    }
}

impl Entry {
    /// By the rules that were told last, for these paths.
    pub(super) fn new(
        node: &str,
        rules: watch::Receiver<Rules>,
        access: Access,
        needs: BTreeMap<&'static str, Need>,
    ) -> Self {
        let refusals = Mutex::default();
        Self(Arc::new(Gate { node: node.to_owned(), rules, access, needs, refusals }))
    }

    /// A path that is not served tells that to those who may read.
    fn need(&self, request: &Request) -> Need {
        let path = request.extensions().get::<MatchedPath>();
        path.and_then(|path| self.0.needs.get(path.as_str())).copied().unwrap_or(Need::READ)
    }

    fn story(&self, act: &'static str, identity: Option<&Identity>, request: &Request) -> Story {
        let group = request.uri().path().strip_prefix("/v1/groups/").and_then(|rest| rest.split('/').next());
        let mut story = Story::new(&self.0.node, act, group.map(decoded));
        if let Some(identity) = identity {
            story.who.clone_from(&identity.who);
        }
        if let Some(Caller::Remote { from: Some(from), .. }) = request.extensions().get::<Caller>() {
            story.from = Some(from.to_string());
        }
        story
    }

    /// Writes down that an act was refused. Refusals of strangers are bounded: they must not fill
    /// the log.
    fn tell_refusal(&self, mut story: Story, identity: Option<&Identity>, refused: &Refused) {
        if !identity.is_some_and(|identity| identity.is_known) {
            let mut refusals = self.0.refusals.lock().unwrap_or_else(PoisonError::into_inner);
            match refusals.admit(boottime()) {
                Some(unlogged) => story.unlogged = unlogged,
                None => return story.forget(),
            }
        }
        story.tell(Outcome::Refused, Some(refused.message()));
    }
}

/// Lets a request pass, or refuses it; acts are written down with what came of them.
pub(super) async fn admit(State(entry): State<Entry>, mut request: Request, next: Next) -> Response {
    let need = entry.need(&request);
    // Only what would change something is an act: a GET of the same path is a mistake.
    let act = need.act.filter(|_| request.method() == axum::http::Method::POST);
    match entry.0.admit(need, &request) {
        Err((identity, refused)) => {
            if let Some(act) = act {
                let story = entry.story(act, identity.as_ref(), &request);
                entry.tell_refusal(story, identity.as_ref(), &refused);
            }
            refused.into_response()
        }
        Ok(identity) => {
            let Some(act) = act else { return next.run(request).await };
            let act = Act::new(entry.story(act, Some(&identity), &request));
            request.extensions_mut().insert(act.clone());
            let response = next.run(request).await;
            act.end(&response);
            response
        }
    }
}

/// Whether a request names this machine as its `Host`, or none. A page of another site whose name
/// was made to lead here (DNS rebinding) names that site.
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

#[cfg(test)]
mod tests {
    use super::*;

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
