//! Answers without an end: lines of JSON, and events.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::{LARGEST, Trouble};
use crate::failure::{Failure, messages};

/// A daemon gives a sign of life at least every five seconds; after so long without one it is taken
/// for dead.
const SILENCE: Duration = Duration::from_secs(16);

/// An answer line by line.
#[derive(Debug)]
pub(crate) struct Lines {
    endpoint: String,
    body: Incoming,
    buffer: Vec<u8>,
    /// Before this place there is no end of a line.
    searched: usize,
}

impl Lines {
    pub(super) fn new(endpoint: String, body: Incoming) -> Self {
        Self { endpoint, body, buffer: Vec::new(), searched: 0 }
    }

    /// The endpoint that answers.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The next object; `None` at the end. Blank lines are signs of life and are passed over.
    #[allow(dead_code, reason = "for changes of members")]
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Trouble> {
        loop {
            let Some(line) = self.line().await? else { return Ok(None) };
            if !line.trim().is_empty() {
                return serde_json::from_str(&line)
                    .map(Some)
                    .map_err(|error| self.broken(&format!("a line is not what was expected: {error}")));
            }
        }
    }

    /// The next line as it is, without its end.
    pub(crate) async fn line(&mut self) -> Result<Option<String>, Trouble> {
        loop {
            if let Some(at) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=self.searched + at).collect();
                self.searched = 0;
                let line = String::from_utf8_lossy(&line);
                return Ok(Some(line.trim_end_matches(['\n', '\r']).to_owned()));
            }
            self.searched = self.buffer.len();
            let frame = timeout(SILENCE, self.body.frame())
                .await
                .map_err(|_| self.broken("it has given no sign of life for a while"))?;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(self.broken(&format!("the answer broke off: {error}"))),
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.buffer.extend_from_slice(data);
                    }
                }
            }
            if self.buffer.len() > LARGEST {
                return Err(self.broken("it sends a line without an end"));
            }
        }
    }

    fn broken(&self, what: &str) -> Trouble {
        Trouble::Silent(messages::stream_broken(&self.endpoint, what))
    }
}

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// The kind of the event.
    pub(crate) name: String,
    /// The data of the event.
    pub(crate) data: String,
}

impl Event {
    /// Parses the data as JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_str(&self.data).map_err(messages::event_unforeseen)
    }
}

/// Events as they come (SSE).
#[derive(Debug)]
pub(crate) struct Events {
    lines: Lines,
}

impl Events {
    pub(super) fn new(lines: Lines) -> Self {
        Self { lines }
    }

    /// The endpoint that answers.
    pub(crate) fn endpoint(&self) -> &str {
        self.lines.endpoint()
    }

    /// The next event; `None` when the daemon has ended the stream, as it does when it stops.
    /// Heartbeats are passed over.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, Trouble> {
        let mut event = Event::default();
        while let Some(line) = self.lines.line().await? {
            if line.is_empty() {
                if !event.data.is_empty() {
                    return Ok(Some(event));
                }
                event = Event::default();
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => event.name = value.to_owned(),
                "data" => {
                    if !event.data.is_empty() {
                        event.data.push('\n');
                    }
                    event.data += value;
                }
                _ => {} // A comment is a heartbeat.
            }
        }
        Ok(None)
    }
}
