//! `TENURE_SOCKET`: where the command gets fresh edicts, and asks how long it has left.
//!
//! A line of words in, a line of JSON out, as often as wanted over one connection. Each answer is
//! made at that instant by the guard itself, which compares the clock with the end of the lease: an
//! edict that comes out of here was created by a leader. Only processes of the same user are
//! answered. See `docs/guides/run.md`.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tenure::Tenure;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::timing::{Timing, nanos};

/// The longest line that is read: a proclaim of 512 bytes, and its word.
const LONGEST: u64 = 1024;

/// The state that all connections share.
#[derive(Clone)]
pub(crate) struct Desk {
    /// The guard lies here only while the command may use it: the task that takes it away holds the
    /// last one.
    guard: Arc<Mutex<Option<Tenure>>>,
    node: String,
    timing: Timing,
    resign: UnboundedSender<()>,
}

impl Desk {
    /// Listens at `path`. The second part hears when the command no longer wants to lead.
    pub(crate) fn open(path: &Path, node: &str, timing: Timing) -> io::Result<(Self, UnboundedReceiver<()>)> {
        let listener = UnixListener::bind(path)?;
        let (resign, resigned) = unbounded_channel();
        let desk = Self { guard: Arc::default(), node: node.to_owned(), timing, resign };
        let own = rustix::process::geteuid().as_raw();
        let serving = desk.clone();
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await; // No file left: others will close theirs.
                    continue;
                };
                if stream.peer_cred().is_ok_and(|peer| peer.uid() == own) {
                    tokio::spawn(serving.clone().serve(stream));
                }
            }
        });
        Ok((desk, resigned))
    }

    /// A term begins, or ends. The guard of before is returned.
    pub(crate) fn place(&self, guard: Option<Tenure>) -> Option<Tenure> {
        let mut place = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *place, guard)
    }

    async fn serve(self, mut stream: UnixStream) {
        let (reader, mut writer) = stream.split();
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut reader).take(LONGEST).read_until(b'\n', &mut line).await;
            if read.map_or(true, |length| length == 0) {
                return;
            }
            let text = String::from_utf8_lossy(&line);
            let answer = format!("{}\n", self.answer(text.trim_end_matches(['\n', '\r'])));
            if writer.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    fn answer(&self, line: &str) -> Value {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let place = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(tenure) = place.as_ref() else { return refusal("not_leader", "this process does not lead") };
        match word {
            "edict" => match tenure.edict() {
                Ok(edict) => token(edict.token()),
                Err(error) => refusal("not_leader", &error.to_string()),
            },
            "remaining" => match tenure.remaining() {
                Some(left) => self.left(nanos(left)),
                None => refusal("not_leader", "the lease is over"),
            },
            "proclaim" => match tenure.proclaim(rest.as_bytes()) {
                Ok(edict) => token(edict.token()),
                Err(error @ tenure::ProclaimError::TooLong { .. }) => refusal("too_long", &error.to_string()),
                Err(error) => refusal("not_leader", &error.to_string()),
            },
            "resign" => {
                let _ = self.resign.send(());
                json!({ "ok": true })
            }
            "status" => self.status(tenure),
            _ => refusal("unknown", "write edict, remaining, proclaim TEXT, resign or status"),
        }
    }

    /// Rounded down: nobody is told of time that is not there.
    fn left(&self, left: u64) -> Value {
        let ms = |nanos: u64| nanos / 1_000_000;
        json!({
            "remaining_ms": ms(left),
            "term_in_ms": ms(self.timing.term_at(left)),
            "kill_in_ms": ms(self.timing.kill_at(left)),
        })
    }

    fn status(&self, tenure: &Tenure) -> Value {
        let left = tenure.remaining();
        json!({
            "group": tenure.group().as_str(),
            "node": self.node,
            "term": tenure.term().0,
            "token": tenure.token().to_string(),
            "leads": left.is_some(),
            "remaining_ms": left.map(|left| nanos(left) / 1_000_000),
        })
    }
}

fn token(token: tenure::Token) -> Value {
    // As text: not every reader of JSON has numbers of 128 bits.
    json!({ "token": token.to_string(), "packed": token.pack().ok().map(|packed| packed.to_string()) })
}

fn refusal(code: &str, message: &str) -> Value {
    json!({ "error": { "code": code, "message": message } })
}
