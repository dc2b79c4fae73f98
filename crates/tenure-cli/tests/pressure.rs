//! An attack on the HTTP of a real daemon: more clients than it has places send requests and read
//! no answer. Probes and the orders of others must go on.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tenure_testkit::binary::Binary;
use tenure_testkit::http_cluster::{HttpCluster, get};

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

/// More than the places of a daemon for anything (1,024) and for probes (64).
const CLIENTS: usize = 1_200;

/// Raises how many files this process may open; says whether that suffices.
fn may_open(files: u64) -> bool {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum }).is_ok()
}

/// A client that sends many requests and never reads.
fn hostile(address: SocketAddr) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(address).ok()?;
    let request = "GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(200);
    stream.set_nonblocking(true).ok()?;
    let _ = stream.write(request.as_bytes()); // The daemon may have closed it already.
    Some(stream)
}

#[test]
fn probes_are_answered_while_twelve_hundred_clients_send_and_never_read() {
    if !may_open(CLIENTS as u64 + 200) {
        return println!("left out: this process may not open {CLIENTS} connections");
    }
    let daemons = HttpCluster::start(TENURE, 1, "");
    let address = daemons.http[0];
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        clients.extend(hostile(address));
        if number % 100 == 99 {
            for path in ["/livez", "/readyz", "/metrics"] {
                let answer = get(address, path).unwrap_or_default();
                assert!(answer.starts_with("HTTP/1.1 200"), "{path} after {number} clients: {answer:?}");
            }
        }
    }
    assert!(clients.len() > CLIENTS / 2, "the attack took place: {}", clients.len());
    let leader = get(address, "/leader/nobody").unwrap_or_default();
    assert!(leader.starts_with("HTTP/1.1 503") && leader.contains("\"leader\":null"), "{leader:?}");
    drop(clients);
    daemons.wait("a place for anything", || {
        get(address, "/v1/status").filter(|answer| answer.starts_with("HTTP/1.1 200"))
    });
}
