//! Hostile clients at small size: the limits are those of a test, the sockets are real.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::raw;
use crate::daemon::http::entry::is_probe;
use crate::daemon::http::listen::{self, Served};
use crate::daemon::http::places::Limits;

/// Longer than a test may take.
const FOREVER: Duration = Duration::from_secs(3_600);

const DEADLINE: Duration = Duration::from_secs(30);

/// Four places for anything, and one source may take all four; two places for probes. No connection
/// ends by itself.
fn limits() -> Limits {
    Limits { most: 4, per_source: 4, probes: 2, header: FOREVER, write: FOREVER, probe: FOREVER }
}

/// A server of its own until the sender is dropped.
async fn served(limits: Limits) -> (SocketAddr, watch::Sender<bool>) {
    let router = Router::new()
        .route("/livez", get(async || "ok"))
        .route("/leader/{*group}", get(async || "me"))
        .route("/v1/status", get(async || "status"))
        .route("/large", get(async || "x".repeat(1 << 20)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopping) = watch::channel(false);
    let (_, plain) = watch::channel(None);
    tokio::spawn(listen::run(listener, plain, Served { router, is_probe, limits }, stopping));
    (address, stop)
}

/// Connections that begin a request and never end it. Each is accepted when this returns.
async fn idlers(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    let mut idlers = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /v1/status HTTP/1.1\r\n").await.unwrap();
        idlers.push(stream);
    }
    idlers
}

/// The status of an answer.
async fn status(address: SocketAddr, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    raw(address, &request).await.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_client_that_pipelines_and_never_reads_is_dropped() {
    let (address, _stop) = served(Limits { write: Duration::from_millis(100), ..limits() }).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100).as_bytes()).await.unwrap();
    // The client does not read, so it notices only when it writes: the other end is gone.
    let dropped = async {
        loop {
            match client.try_write(b"G") {
                Err(error) if error.kind() != ErrorKind::WouldBlock => return,
                _ => sleep(Duration::from_millis(20)).await,
            }
        }
    };
    timeout(DEADLINE, dropped).await.expect("the server gives up on a client that does not read");
}

#[tokio::test]
async fn probes_are_answered_while_every_place_for_anything_is_held() {
    let (address, _stop) = served(limits()).await;
    let idlers = idlers(address, 4).await;
    for path in ["/livez", "/leader/jobs"] {
        assert_eq!(status(address, path).await, "200", "{path}");
    }
    let refused = raw(address, "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("\"busy\""), "{refused}");
    drop(idlers);
    let free = async {
        while status(address, "/v1/status").await != "200" {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(DEADLINE, free).await.expect("places that were given back can be had again");
}

#[tokio::test]
async fn idlers_cannot_lock_probes_out_of_the_places_for_probes() {
    let (address, _stop) = served(limits()).await;
    let _idlers = idlers(address, 50).await;
    for _ in 0..10 {
        assert_eq!(status(address, "/livez").await, "200");
        let _more = idlers(address, 5).await;
    }
}

#[tokio::test]
async fn a_place_for_a_probe_ends_by_itself() {
    let (address, _stop) = served(Limits { most: 0, probe: Duration::from_millis(100), ..limits() }).await;
    let answer = raw(address, "GET /livez HTTP/1.1\r\nHost: loc").await;
    assert_eq!(answer, "", "the half of a request is not waited for");
}

#[tokio::test]
async fn a_place_for_a_probe_serves_one_request() {
    let (address, _stop) = served(Limits { most: 0, ..limits() }).await;
    let answer = raw(address, &"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(3)).await;
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 1, "{answer}");
}
