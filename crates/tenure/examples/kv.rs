//! A replicated key-value server over HTTP: three copies, one store. A write that was answered
//! survives the loss of any one of them, and a read anywhere sees every write that was answered
//! before.
//!
//! By hand, in four terminals:
//!
//! ```sh
//! cargo run --example kv -- found /tmp/kv                            # once: a key, a.toml, b.toml, c.toml, stores and logs
//! cargo run --example kv -- run /tmp/kv/a.toml 127.0.0.1:8001        # and b.toml at 8002, c.toml at 8003
//! curl -X PUT -d blue http://127.0.0.1:8001/kv/sky                   # at any of them
//! curl http://127.0.0.1:8002/kv/sky                                  # blue
//! curl -X PUT -H 'if-match: blue' -d grey http://127.0.0.1:8003/kv/sky
//! curl http://127.0.0.1:8001/status
//! ```
//!
//! `kill -9` any one of them: within the length of a lease the other two go on. With `eventual`
//! after the address the copies elect a leader among themselves, without leases.
//! `alone FOLDER ADDRESS` is a store of one copy.

mod cluster;

use std::collections::BTreeMap;
use std::error::Error;
use std::io::BufRead;
use std::path::Path as File;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use tenure::log::{self, Election, Log, ProposeError, Snapshot, StateError, StateMachine};
use tenure::{ClusterId, ClusterKey, Config, Node, NodeName};
use tokio::time::timeout;

/// The log's streams are at the ports this far above those of the nodes.
const OFFSET: u16 = 1000;

/// How long a client waits before it is told that the outcome is unknown.
const PATIENCE: Duration = Duration::from_secs(5);

/// The store itself. It knows nothing of other copies.
#[derive(Default)]
struct Kv(BTreeMap<Vec<u8>, Vec<u8>>);

impl StateMachine for Kv {
    /// A write is key, expected value, new value; what is not there is `None`. The answer says
    /// whether it was done.
    fn apply(&mut self, _index: u64, write: &[u8]) -> Vec<u8> {
        let [Some(key), expected, new] = &parts(write)[..] else { return vec![0] };
        if expected.is_some() && expected.as_ref() != self.0.get(key) {
            return vec![0];
        }
        match new {
            Some(value) => self.0.insert(key.clone(), value.clone()),
            None => self.0.remove(key),
        };
        vec![1]
    }
    fn snapshot(&self) -> Snapshot {
        join(self.0.iter().flat_map(|(key, value)| [Some(&key[..]), Some(&value[..])])).into()
    }
    fn restore(&mut self, from: &mut dyn BufRead) -> Result<(), StateError> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)?;
        let mut parts = parts(&bytes).into_iter().flatten();
        self.0.clear();
        while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
            self.0.insert(key, value);
        }
        Ok(())
    }
}

/// Each part after its length; nothing has the largest length.
fn join<'a>(parts: impl IntoIterator<Item = Option<&'a [u8]>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in parts {
        let length = part.map_or(u32::MAX, |part| u32::try_from(part.len()).expect("parts are short"));
        bytes.extend(length.to_be_bytes());
        bytes.extend(part.unwrap_or_default());
    }
    bytes
}

fn parts(mut bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
    let mut parts = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let length = u32::from_be_bytes(*length);
        let there = (length != u32::MAX).then(|| rest.split_at(length as usize));
        parts.push(there.map(|(part, _)| part.to_vec()));
        bytes = there.map_or(rest, |(_, rest)| rest);
    }
    parts
}

type Answer = (StatusCode, Vec<u8>);

async fn read(State(log): State<Log<Kv>>, Path(key): Path<String>) -> Answer {
    match timeout(PATIENCE, log.read(move |kv| kv.0.get(key.as_bytes()).cloned())).await {
        Ok(Ok(Some(value))) => (StatusCode::OK, value),
        Ok(Ok(None)) => (StatusCode::NOT_FOUND, Vec::new()),
        Ok(Err(error)) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string().into()),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, b"no answer in time".to_vec()),
    }
}

async fn put(log: State<Log<Kv>>, key: Path<String>, headers: HeaderMap, value: Bytes) -> Answer {
    let expected = headers.get("if-match").map(|value| value.as_bytes());
    write(&log, join([Some(key.as_bytes()), expected, Some(&value)])).await
}

async fn delete(log: State<Log<Kv>>, key: Path<String>) -> Answer {
    write(&log, join([Some(key.as_bytes()), None, None])).await
}

/// 503 means that the outcome is unknown; 507 and 413 that nothing was written.
async fn write(log: &Log<Kv>, write: Vec<u8>) -> Answer {
    match timeout(PATIENCE, log.propose(write)).await {
        Ok(Ok(chosen)) if chosen.answer == [1] => (StatusCode::OK, chosen.index.to_string().into()),
        Ok(Ok(_)) => (StatusCode::PRECONDITION_FAILED, Vec::new()),
        Ok(Err(error @ ProposeError::DiskFull)) => {
            (StatusCode::INSUFFICIENT_STORAGE, error.to_string().into())
        }
        Ok(Err(error @ ProposeError::TooLong { .. })) => {
            (StatusCode::PAYLOAD_TOO_LARGE, error.to_string().into())
        }
        Ok(Err(error)) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string().into()),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, b"no answer in time".to_vec()),
    }
}

async fn status(log: State<Log<Kv>>) -> Answer {
    match log.status().await {
        Ok(status) => (StatusCode::OK, format!("{status:?}").into()),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string().into()),
    }
}

async fn serve(log: Log<Kv>, address: &str) -> Result<(), Box<dyn Error>> {
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("ready http={address}");
    let routes = axum::Router::new()
        .route("/kv/{key}", get(read).put(put).delete(delete))
        .route("/status", get(status))
        .with_state(log.clone());
    tokio::select! {
        served = axum::serve(listener, routes) => Ok(served?),
        stopped = log.stopped() => Err(stopped.into()),
    }
}

/// A key, and for each member a file, a store and a log.
fn found(folder: &File) -> Result<(), Box<dyn Error>> {
    let plan = cluster::Plan::by_hand(folder);
    let cluster = plan.found()?;
    for name in cluster::NAMES {
        log::found(&log::Config::beside(&Config::from_path(plan.file(name))?, cluster, "kv", OFFSET)?)?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["found", folder] => found(File::new(folder)),
        ["run", file, address, how @ ..] => {
            cluster::end_with_input();
            let config = Config::from_path(file)?;
            let node = Node::start(config.clone()).await?;
            let beside = log::Config::beside(&config, node.status().await?.cluster, "kv", OFFSET)?;
            let election = match how {
                ["eventual"] => Election::Eventual { round: Duration::from_millis(50) },
                _ => Election::Strong(node),
            };
            serve(Log::open(&beside, election, Kv::default())?, address).await
        }
        ["alone", folder, address] => {
            cluster::end_with_input();
            let mut config = log::Config::new("kv", "alone", ClusterId(1), ClusterKey::generate());
            config.members = tenure::peers([("alone", "127.0.0.1:7400")]);
            config.folder = folder.into();
            if !config.folder.exists() {
                log::found(&config)?;
            }
            let election = Election::fixed(NodeName::new("alone")?);
            serve(Log::open(&config, election, Kv::default())?, address).await
        }
        _ => {
            Err("usage: kv found FOLDER | run FOLDER/NAME.toml ADDRESS [eventual] | alone FOLDER ADDRESS"
                .into())
        }
    }
}
