//! A client of the store: one connection, one request after the other, and a line of history for
//! each.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tenure::Clock;

/// Longer than a server takes to say that it does not know.
const PATIENCE: Duration = Duration::from_secs(8);

/// An answer of a server.
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) body: String,
}

/// A connection to one server.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// One request. After an error nobody knows whether it was carried out.
    pub(crate) fn ask(&mut self, method: &str, path: &str, header: &str, body: &str) -> io::Result<Reply> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: kv\r\n{header}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0.get_mut().write_all(request.as_bytes())?;
        let garbled = || io::Error::other("the answer is garbled");
        let first = self.line()?;
        let code = first.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(garbled)?;
        let mut length = 0;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().map_err(|_| garbled())?;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok(Reply { code, body: String::from_utf8(body).map_err(|_| garbled())? })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }
}

/// A call of a client, and its outcome.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Get { saw: Option<String> },
    Put { value: String },
    Cas { from: String, value: String, done: bool },
}

/// One line of history.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) client: usize,
    pub(crate) key: String,
    pub(crate) call: Call,
    pub(crate) invoked: u64,
    /// `None` if nobody knows whether it took place.
    pub(crate) returned: Option<u64>,
}

impl Operation {
    /// As `tenure lab check-history` reads it.
    pub(crate) fn line(&self) -> String {
        let Self { client, key, invoked, .. } = self;
        let call = match &self.call {
            Call::Get { saw } => format!("get {key} -> {}", saw.as_deref().unwrap_or("-")),
            Call::Put { value } => format!("put {key} {value}"),
            Call::Cas { from, value, done } => {
                format!("cas {key} {from} {value} -> {}", if *done { "yes" } else { "no" })
            }
        };
        let returned = self.returned.map_or("?".to_owned(), |at| at.to_string());
        format!("c{client} {call} @ {invoked} {returned}\n")
    }
}

pub(crate) fn now() -> u64 {
    Clock::boot().read().as_nanos()
}

/// A client that goes to another server when one fails it.
pub(crate) struct Client {
    pub(crate) number: usize,
    servers: Vec<SocketAddr>,
    at: usize,
    connection: Option<Connection>,
    pub(crate) history: Vec<Operation>,
}

impl Client {
    pub(crate) fn new(number: usize, servers: &[SocketAddr]) -> Self {
        Self { number, servers: servers.to_vec(), at: number, connection: None, history: Vec::new() }
    }

    fn connection(&mut self) -> Option<&mut Connection> {
        if self.connection.is_none() {
            self.connection = Connection::open(self.servers[self.at % self.servers.len()]).ok();
        }
        if self.connection.is_none() {
            self.at += 1;
        }
        self.connection.as_mut()
    }

    /// Carries out a call and writes it down. Returns the answer's code, if there was one.
    pub(crate) fn call(&mut self, key: &str, mut call: Call) -> Option<u16> {
        let (method, header, body) = match &call {
            Call::Get { .. } => ("GET", String::new(), String::new()),
            Call::Put { value } => ("PUT", String::new(), value.clone()),
            Call::Cas { from, value, .. } => ("PUT", format!("if-match: {from}\r\n"), value.clone()),
        };
        let client = self.number;
        let connection = self.connection()?;
        let invoked = now();
        let reply = connection.ask(method, &format!("/kv/{key}"), &header, &body);
        let returned = now();
        let code = reply.as_ref().map(|reply| reply.code).ok();
        let answered = match (&mut call, reply) {
            (Call::Get { saw }, Ok(reply)) if reply.code == 200 => {
                *saw = Some(reply.body);
                true
            }
            (Call::Get { .. }, Ok(reply)) => reply.code == 404,
            (Call::Put { .. }, Ok(reply)) => reply.code == 200,
            (Call::Cas { done, .. }, Ok(reply)) => {
                *done = reply.code == 200;
                matches!(reply.code, 200 | 412)
            }
            (_, Err(_)) => false,
        };
        let refused = matches!(code, Some(507 | 413));
        let matters = answered || (!refused && !matches!(call, Call::Get { .. }));
        if matters {
            let returned = answered.then_some(returned);
            self.history.push(Operation { client, key: key.to_owned(), call, invoked, returned });
        }
        if !answered && !refused {
            self.connection = None;
            self.at += 1;
        }
        code.filter(|_| answered || refused)
    }
}
