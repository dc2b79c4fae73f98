//! Every caller at every path: who gets in, and what the answer says.

use super::{Daemon, raw, settings};
use crate::api;
use crate::api::access::{Link, SessionOpened};
use crate::client::Client;
use crate::daemon::http::entry::{Need, Rules};
use crate::daemon::http::routes::routes;
use crate::tokens::{List, Listed, Role, Token};

use std::time::Duration;

/// A request as it is written.
fn request(method: &str, path: &str, headers: &[String]) -> String {
    let more: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    format!(
        "{} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n{more}\r\n{{}}",
        method.to_uppercase()
    )
}

fn bearer(token: &Token) -> Vec<String> {
    vec![format!("Authorization: Bearer {}", token.reveal())]
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
}

/// The head of an answer only: streams have no end.
async fn asked(daemon: &Daemon, method: &str, path: &str, headers: &[String]) -> (u16, String) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(daemon.address()).await.unwrap();
    stream.write_all(request(method, path, headers).as_bytes()).await.unwrap();
    let mut bytes = vec![0; 4096];
    let length =
        tokio::time::timeout(Duration::from_secs(20), stream.read(&mut bytes)).await.unwrap().unwrap();
    let answer = String::from_utf8_lossy(&bytes[..length]).into_owned();
    (status(&answer), answer)
}

/// A path that can be asked for.
fn concrete(path: &str) -> String {
    path.replace("{group}", "jobs").replace("{*group}", "jobs")
}

impl Daemon {
    /// Writes other tokens into its list, and waits until they count.
    async fn accept(&self, listed: &[Listed]) {
        std::fs::write(self.folder.path().join("tokens"), List(listed.to_vec()).file()).unwrap();
        let renewed = self.server.read_again(&self.settings).unwrap();
        self.server.renew(renewed);
    }
}

#[tokio::test]
async fn every_path_is_for_its_role_and_those_above_it_and_for_nobody_else() {
    let daemon = Daemon::start("").await;
    let tokens = [Role::Read, Role::Operate, Role::Admin].map(|role| (role, Token::draw()));
    let listed: Vec<Listed> = tokens.iter().map(|(role, token)| token.listed(*role, None, "")).collect();
    daemon.accept(&listed).await;
    for (method, path, need, _) in routes() {
        let (path, Need { role: needed, .. }) = (concrete(path), need);
        let (nobody, answer) = asked(&daemon, method, &path, &[]).await;
        let closed = needed > Some(Role::Read);
        // A session is opened by a code, and {} has none: that is answered, not refused at the
        // door.
        assert_eq!(nobody == 401, closed, "{method} {path} without a token: {answer}");
        assert!(!closed || answer.contains("client.token_file"), "what to do is said: {answer}");
        for (role, token) in &tokens {
            let (status, answer) = asked(&daemon, method, &path, &bearer(token)).await;
            assert_eq!(status == 403, Some(*role) < needed, "{method} {path} as {role}: {answer}");
            assert_ne!(status, 401, "{method} {path} as {role}: {answer}");
            if status == 403 {
                let needed = needed.unwrap();
                assert!(answer.contains(&format!("--role {needed}")), "what to do is said: {answer}");
            }
        }
    }
    daemon.end().await;
}

#[tokio::test]
async fn what_changes_something_is_never_a_read() {
    for (method, path, need, _) in routes() {
        let is_question = path.ends_with("/verify");
        let is_act = method == "post" && !is_question;
        assert_eq!(need.act.is_some(), is_act, "{path}: every act is in the audit log, and only acts are");
        assert!(!is_act || need.role >= Some(Role::Operate) || path == "/v1/session", "{path}");
    }
}

#[tokio::test]
async fn unknown_expired_and_revoked_tokens_are_refused_and_it_is_said_which() {
    let daemon = Daemon::start("").await;
    let [expired, revoked, kept] = [(); 3].map(|()| Token::draw());
    let all = [
        expired.listed(Role::Admin, Some(1_000_000_000), ""),
        kept.listed(Role::Admin, None, ""),
        revoked.listed(Role::Admin, None, ""),
    ];
    daemon.accept(&all).await;
    assert_eq!(asked(&daemon, "get", "/v1/tokens", &bearer(&revoked)).await.0, 200);
    daemon.accept(&all[..2]).await;
    let refused = async |token: &str, path: &str| {
        let header = vec![format!("Authorization: Bearer {token}")];
        let (status, answer) = asked(&daemon, "get", path, &header).await;
        assert!(status == 401 && answer.contains("www-authenticate: Bearer"), "{answer}");
        answer
    };
    assert!(refused(expired.reveal(), "/v1/tokens").await.contains("expired at 2001-09-09T01:46:40Z"));
    assert!(refused(revoked.reveal(), "/v1/tokens").await.contains("revoked"));
    assert!(refused(Token::draw().reveal(), "/v1/status").await.contains("tenure token create"), "reads too");
    for wrong in ["", "let-me-in", "Basic abc"] {
        refused(wrong, "/v1/status").await;
    }
    assert_eq!(asked(&daemon, "get", "/v1/tokens", &bearer(&kept)).await.0, 200);
    let small = vec![format!("authorization: bearer {}", kept.reveal())];
    assert_eq!(asked(&daemon, "get", "/v1/tokens", &small).await.0, 200, "as RFC 7235 has it");
    assert_eq!(asked(&daemon, "get", "/livez", &bearer(&expired)).await.0, 200, "a probe is answered");
    daemon.end().await;
}

#[tokio::test]
async fn where_reads_are_not_open_only_probes_are_answered_without_a_token() {
    let daemon = Daemon::start("open_reads = false").await;
    for path in ["/livez", "/readyz", "/metrics", "/"] {
        assert!(daemon.get(path).await.starts_with("HTTP/1.1 200"), "{path}");
    }
    for path in ["/v1/status", "/v1/groups", "/v1/watch", "/leader/jobs", "/v1/openapi.json", "/nowhere"] {
        let answer = daemon.get(path).await;
        assert!(
            answer.starts_with("HTTP/1.1 401") && answer.contains("www-authenticate: Bearer"),
            "{answer}"
        );
    }
    let status: api::Status = daemon.client().get("/v1/status").await.unwrap();
    assert_eq!(status.name, "n1");
    daemon.end().await;
}

#[tokio::test]
async fn who_is_asked_by_its_own_file_is_asked_by_its_socket_and_needs_no_token() {
    let mut daemon = Daemon::start("socket = \"http.sock\"").await;
    let address = daemon.address().to_string();
    daemon.settings.put("daemon.http", toml::Value::String(address), crate::settings::Source::Flag).unwrap();
    daemon
        .settings
        .put("client.token_file", toml::Value::String("wrong".to_owned()), crate::settings::Source::Flag)
        .unwrap();
    crate::founding::write_file(&daemon.folder.path().join("wrong"), "no-token", 0o600).unwrap();
    let client = Client::new(&daemon.settings, &[], Duration::from_secs(5)).unwrap();
    let link: Link = client.post("/v1/session/link", &serde_json::json!({})).await.unwrap();
    assert!(link.url.unwrap().ends_with(&format!("/#code={}", link.code)));
    // A daemon that is down leaves its socket: nobody is asked at the address, which somebody else
    // may have by now.
    let (settings, server) = (daemon.settings.clone(), daemon.server);
    server.shutdown().await;
    let squatter = tokio::net::TcpListener::bind(settings.daemon.http.unwrap()).await.unwrap();
    let client = Client::new(&settings, &[], Duration::from_secs(5)).unwrap();
    let failure = crate::failure::Failure::from(client.get::<api::Status>("/v1/status").await.unwrap_err());
    assert!(failure.to_string().contains("http.sock: Connection refused"), "{failure}");
    assert!(tokio::time::timeout(Duration::from_millis(200), squatter.accept()).await.is_err());
    daemon.node.shutdown().await;
}

#[tokio::test]
async fn a_link_opens_one_session_and_its_cookie_alone_orders_nothing() {
    let daemon = Daemon::start("").await;
    let client = daemon.client();
    let link: Link = client.post("/v1/session/link", &serde_json::json!({})).await.unwrap();
    let open = |code: &str, host: &str| {
        let body = format!("{{\"code\":\"{code}\"}}");
        format!(
            "POST /v1/session HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    };
    let rebound = raw(daemon.address(), &open(&link.code, "evil.example")).await;
    assert_eq!(status(&rebound), 403, "a page by another name cannot use it: {rebound}");
    let answer = raw(daemon.address(), &open(&link.code, "localhost")).await;
    assert_eq!(status(&answer), 200, "{answer}");
    let again = raw(daemon.address(), &open(&link.code, "localhost")).await;
    assert!(status(&again) == 401 && again.contains("tenure token link"), "{again}");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    for word in ["HttpOnly", "SameSite=Strict", "Max-Age=3600", "Path=/"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    assert!(cookie.starts_with(&format!("tenure-session-{}=", daemon.address().port())), "{cookie}");
    let opened: SessionOpened = serde_json::from_str(body).unwrap();
    let cookie = format!("Cookie: other=1; {}", cookie.split(';').next().unwrap());
    let proof = format!("X-Tenure-Session: {}", opened.proof);
    let resign = async |headers: &[String]| asked(&daemon, "post", "/v1/groups/jobs/resign", headers).await.0;
    assert_eq!(resign(std::slice::from_ref(&cookie)).await, 401, "a forged request has the cookie alone");
    assert_eq!(resign(std::slice::from_ref(&proof)).await, 401);
    assert_eq!(resign(&[cookie.clone(), "X-Tenure-Session: 0".to_owned()]).await, 401);
    assert_eq!(resign(&[cookie.clone(), proof.clone()]).await, 503, "it may ask; nobody leads");
    let (status, _) = asked(&daemon, "get", "/v1/tokens", &[cookie, proof]).await;
    assert_eq!(status, 403, "a session operates and does not administer");
    daemon.end().await;
}

#[test]
fn an_address_that_others_reach_is_refused_without_tokens_and_its_reads_are_not_open() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(folder.path(), "");
    settings
        .put("daemon.http", toml::Value::String("0.0.0.0:0".to_owned()), crate::settings::Source::Flag)
        .unwrap();
    let address = settings.daemon.http.unwrap();
    assert!(Rules::new(&settings, address).is_ok());
    settings.daemon.tokens_file = None;
    let failure = Rules::new(&settings, address).unwrap_err();
    let text = failure.to_string();
    assert!(
        failure.code() == 78 && text.contains("daemon.tokens_file") && text.contains("tls_client_ca"),
        "{text}"
    );
}

#[tokio::test]
async fn a_member_that_is_heard_is_not_removed_by_force() {
    let daemon = Daemon::start("").await;
    let client = daemon.client();
    let order = serde_json::json!({ "powered_off": ["n1"] });
    let refused = client.lines("/v1/members/force-remove", &order).await.unwrap_err();
    assert!(refused.is(api::Code::StillHeard), "{refused:?}");
    daemon.end().await;
}
