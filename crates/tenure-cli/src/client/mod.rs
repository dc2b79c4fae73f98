//! Asking a daemon over HTTP: what `leader`, `status`, `members`, `top` and the others have in
//! common.
//!
//! Daemons are asked in the order of the list until one answers. The time for the whole question is
//! shared out: with three endpoints the first has a third of it, so that one that hangs does not
//! keep the others from answering. A question may be put to the next daemon at any point; an order
//! (resign, transfer, a change of members) only as long as none was sent, for it could be carried
//! out twice.
//!
//! ```ignore
//! let client = self.asking.client(common)?;
//! let status: api::Status = client::block_on(client.get("/v1/status"))??;
//! ```

mod connect;
pub(crate) mod pem;
mod stream;

use std::fmt::Write as _;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::api::{Code, Problem, Refusal};
use crate::arguments::Common;
use crate::clock::clock;
use crate::failure::{Failure, messages};
use crate::settings::{self, Settings};

use connect::{Connector, Endpoint, Unreached, Way};
pub(crate) use stream::{Events, Lines};

/// The largest answer that is read, a stream's line included.
const LARGEST: usize = 64 << 20;

/// Whom to ask, and for how long: for every command that asks a daemon.
#[derive(Args, Clone, Debug)]
pub(crate) struct Asking {
    /// A daemon to ask, in place of `[client] endpoints`; may be repeated, the first that answers
    /// will do [env: TENURE_ENDPOINTS]
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Vec<String>,
    /// How long to wait for an answer [default: 5s; 15s where a leader must do something first]
    #[arg(long, value_name = "D", value_parser = settings::length)]
    pub(crate) timeout: Option<Duration>,
}

impl Asking {
    /// A client by the flags, the environment and the file.
    pub(crate) fn client(&self, common: &Common) -> Result<Client, Failure> {
        self.client_within(common, Duration::from_secs(5))
    }

    /// The same, with another patience unless the user says.
    pub(crate) fn client_within(&self, common: &Common, usual: Duration) -> Result<Client, Failure> {
        let settings = Settings::find_or_none(common.config.as_deref())?;
        Client::new(&settings, &self.endpoint, self.timeout.unwrap_or(usual))
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Nobody answered, or not in HTTP.
    Silent(Failure),
    /// A daemon answered that it will not or cannot.
    Said {
        /// Which.
        endpoint: String,
        /// The HTTP status.
        status: u16,
        /// The message.
        problem: Problem,
    },
}

impl Trouble {
    /// Whether a daemon answered just this.
    pub(crate) fn is(&self, code: Code) -> bool {
        matches!(self, Self::Said { problem, .. } if problem.code == code.name())
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Silent(failure) => failure,
            Trouble::Said { endpoint, status, problem } => {
                let said = problem.message;
                match status {
                    401 => messages::token_refused(endpoint, said),
                    403 => messages::role_refused(endpoint, said),
                    503 | 504 => messages::not_now(endpoint, said),
                    _ => messages::declined(endpoint, said),
                }
            }
        }
    }
}

/// Knows daemons and how to ask them.
#[derive(Debug)]
pub(crate) struct Client {
    endpoints: Vec<Endpoint>,
    connector: Connector,
    token: Option<String>,
    timeout: Duration,
}

/// A request.
#[derive(Debug)]
struct Question<'a> {
    method: Method,
    path: &'a str,
    body: Option<String>,
    /// Whether it may be asked twice.
    repeatable: bool,
    accept: &'static str,
}

impl Client {
    /// Asks `given`, else what `[client]` says, else the daemon of this very file.
    pub(crate) fn new(settings: &Settings, given: &[String], timeout: Duration) -> Result<Self, Failure> {
        let client = &settings.client;
        let named = if given.is_empty() { &client.endpoints } else { given };
        let own = named.is_empty().then(|| settings.own_endpoint()).flatten();
        let parse = |text: &String| Ok(Endpoint::parse(text)?.with_socket(settings.socket_of(text)));
        let endpoints: Vec<Endpoint> = named.iter().chain(&own).map(parse).collect::<Result<_, Failure>>()?;
        if endpoints.is_empty() {
            return Err(messages::no_endpoint());
        }
        let token = client.token_file.as_ref();
        let token = token.map(|path| read_token(settings, "client.token_file", path)).transpose()?;
        let pem = |path: &Option<PathBuf>| path.as_ref().map(|path| settings.resolve(path));
        let wants_tls = endpoints.iter().any(Endpoint::is_tls);
        let secret = |path: &PathBuf| settings.read_secret("client.key", path);
        let key = client.key.as_ref().filter(|_| wants_tls).map(secret).transpose()?;
        let connector = Connector::new(wants_tls, pem(&client.ca), pem(&client.cert), key)?;
        Ok(Self { endpoints, connector, token, timeout })
    }

    /// How long it waits.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Asks, and reads the answer.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Trouble> {
        let body = None;
        let (method, accept) = (Method::GET, "application/json");
        self.whole(&Question { method, path, body, repeatable: true, accept }).await
    }

    /// Orders something, once.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        order: &impl Serialize,
    ) -> Result<T, Trouble> {
        self.whole(&self.order(path, order, false)?).await
    }

    /// Asks something that takes a body and may be asked again.
    pub(crate) async fn query<T: DeserializeOwned>(
        &self,
        path: &str,
        order: &impl Serialize,
    ) -> Result<T, Trouble> {
        self.whole(&self.order(path, order, true)?).await
    }

    /// Listens to a stream of events (SSE). The time limit is for its beginning; afterwards a
    /// stream that gives no sign of life for a few heartbeats ends with an error.
    pub(crate) async fn events(&self, path: &str) -> Result<Events, Trouble> {
        let (method, accept) = (Method::GET, "text/event-stream");
        let question = Question { method, path, body: None, repeatable: true, accept };
        let (endpoint, response) = self.ask(&question, async |response| Ok(response)).await?;
        Ok(Events::new(Lines::new(endpoint, response.into_body())))
    }

    /// Orders something, once, and reads how it goes on: one JSON object a line (NDJSON).
    #[allow(dead_code, reason = "for changes of members")]
    pub(crate) async fn lines(&self, path: &str, order: &impl Serialize) -> Result<Lines, Trouble> {
        let question = Question { accept: "application/x-ndjson", ..self.order(path, order, false)? };
        let (endpoint, response) = self.ask(&question, async |response| Ok(response)).await?;
        Ok(Lines::new(endpoint, response.into_body()))
    }

    fn order<'a>(
        &self,
        path: &'a str,
        order: &impl Serialize,
        repeatable: bool,
    ) -> Result<Question<'a>, Trouble> {
        let body = serde_json::to_string(order)
            .map_err(|error| Trouble::Silent(messages::not_written_as_json(error)))?;
        Ok(Question { method: Method::POST, path, body: Some(body), repeatable, accept: "application/json" })
    }

    async fn whole<T: DeserializeOwned>(&self, question: &Question<'_>) -> Result<T, Trouble> {
        let read = async |response: Response<Incoming>| read_all(response.into_body()).await;
        let (endpoint, bytes) = self.ask(question, read).await?;
        serde_json::from_slice(&bytes).map_err(|error| {
            Trouble::Silent(messages::not_a_daemon(format!("{endpoint}{}", question.path), error))
        })
    }

    /// Puts a question to one daemon after the other, until one answers; `read` takes from the
    /// answer what is wanted in time.
    async fn ask<T>(
        &self,
        question: &Question<'_>,
        read: impl AsyncFn(Response<Incoming>) -> Result<T, String>,
    ) -> Result<(String, T), Trouble> {
        let end = clock() + self.timeout;
        let (mut complaints, mut untrusted) = (String::new(), 0);
        let mut complain = |endpoint: &Endpoint, what: &str| {
            let gap = if complaints.is_empty() { "" } else { ", " };
            let _ = write!(complaints, "{gap}{endpoint} ({what})");
        };
        for (at, endpoint) in self.endpoints.iter().enumerate() {
            let last = at + 1 == self.endpoints.len();
            let share = (end - clock().min(end)) / u32::try_from(self.endpoints.len() - at).unwrap_or(1);
            let until = clock() + share;
            let (stream, way) = match timeout(share, self.connector.connect(endpoint)).await {
                Ok(Ok(connected)) => connected,
                Ok(Err(Unreached::Untrusted(what))) => {
                    untrusted += 1;
                    complain(endpoint, &what);
                    continue;
                }
                Ok(Err(Unreached::Other(what))) => {
                    complain(endpoint, &what);
                    continue;
                }
                Err(_) => {
                    complain(endpoint, "no connection in time");
                    continue;
                }
            };
            let until = if question.repeatable { until } else { end };
            let outcome = async {
                let response = self.send((stream, way), endpoint, question).await?;
                let status = response.status().as_u16();
                if response.status().is_success() {
                    read(response).await.map(Ok)
                } else {
                    refusal(response, status).await.map(Err)
                }
            };
            match timeout(until - clock().min(until), outcome).await {
                Ok(Ok(Ok(answer))) => return Ok((endpoint.to_string(), answer)),
                Ok(Ok(Err((status, problem)))) => {
                    let said = Trouble::Said { endpoint: endpoint.to_string(), status, problem };
                    let stopped = question.repeatable && said.is(Code::Stopped);
                    // A daemon that is no member, or busy, has not begun the request.
                    let what = match () {
                        () if stopped => "it has stopped",
                        () if said.is(Code::NotAMember) => "it is no member",
                        () if said.is(Code::Busy) => "it has too many connections",
                        () => return Err(said),
                    };
                    if last {
                        return Err(said);
                    }
                    complain(endpoint, what);
                }
                Ok(Err(what)) if question.repeatable => complain(endpoint, &what),
                Err(_) if question.repeatable => complain(endpoint, "no answer in time"),
                Ok(Err(what)) => return Err(unclear(endpoint, &what)),
                Err(_) => return Err(unclear(endpoint, "no answer in time")),
            }
        }
        Err(Trouble::Silent(if untrusted == self.endpoints.len() {
            messages::tls_not_trusted(complaints)
        } else {
            messages::no_daemon(complaints)
        }))
    }

    async fn send(
        &self,
        (stream, way): (connect::Stream, Way),
        endpoint: &Endpoint,
        question: &Question<'_>,
    ) -> Result<Response<Incoming>, String> {
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(stream).await.map_err(|error| error.to_string())?;
        tokio::spawn(connection); // Ends with the answer's body, or with the runtime.
        let mut request = Request::builder()
            .method(&question.method)
            .uri(endpoint.target(question.path))
            .header(HOST, endpoint.authority())
            .header(ACCEPT, question.accept);
        if let Some(token) = self.token.as_ref().filter(|_| way == Way::Network) {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        if question.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let body = Full::new(Bytes::from(question.body.clone().unwrap_or_default()));
        let request = request.body(body).map_err(|error| error.to_string())?;
        sender.send_request(request).await.map_err(|error| with_cause(&error))
    }
}

/// Runs what a command asks, on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> Result<F::Output, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| messages::system_refuses("an event loop", error))?;
    Ok(runtime.block_on(future))
}

/// A token from its file; `key` is the setting that names it.
pub(crate) fn read_token(settings: &Settings, key: &str, path: &Path) -> Result<String, Failure> {
    let text = settings.read_secret(key, path)?;
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(messages::token_file_empty(key, settings.resolve(path).display()));
    }
    Ok(token.to_owned())
}

/// An order went out and no answer came back.
fn unclear(endpoint: &Endpoint, what: &str) -> Trouble {
    Trouble::Silent(messages::order_unclear(endpoint, what))
}

async fn read_all(body: Incoming) -> Result<Bytes, String> {
    let collected = Limited::new(body, LARGEST).collect().await.map_err(|error| error.to_string())?;
    Ok(collected.to_bytes())
}

/// Reads the body of an error; any other program's error is told by its status.
async fn refusal(response: Response<Incoming>, status: u16) -> Result<(u16, Problem), String> {
    let reason = response.status().canonical_reason().unwrap_or("an unknown status");
    let bytes = read_all(response.into_body()).await?;
    let problem = serde_json::from_slice::<Refusal>(&bytes).map(|refusal| refusal.error);
    Ok((
        status,
        problem.unwrap_or_else(|_| Problem {
            code: "unknown".to_owned(),
            message: format!("HTTP status {status} ({reason}), and not in the words of a daemon"),
        }),
    ))
}

fn with_cause(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let _ = write!(text, ": {inner}");
        cause = inner.source();
    }
    text
}

/// The name of a group on a command line.
pub(crate) fn group_name(text: &str) -> Result<String, String> {
    tenure::GroupName::new(text).map(|name| name.to_string()).map_err(|error| error.to_string())
}
