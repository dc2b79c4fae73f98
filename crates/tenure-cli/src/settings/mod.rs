//! The settings of a command beside its command line: a TOML file, and `TENURE_*` in the
//! environment.
//!
//! Flags win over the environment, the environment over the file, the file over the defaults. Which
//! file: `-c FILE`, else `TENURE_CONFIG`, else `.tenure/tenure.toml` in this folder (written by
//! `tenure up`), else `/etc/tenure/tenure.toml`. A file that was found is believed only if it is
//! the caller's or root's: see `trust.rs`.
//!
//! `table.rs` has every key once: its type, its default, its variable and what it is for. One file
//! serves all. The library reads the settings of a node ([`tenure::Config`]); two tables
//! are for the command alone: `[daemon]`, for `tenure node`, and `[client]`, for the commands that
//! ask a daemon.

mod key;
pub(crate) mod reference;
mod table;
#[cfg(test)]
mod tests;
mod unknown;

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use tenure::Config;
use toml::{Table, Value};

use crate::failure::{Failure, malformed, messages};
use crate::nearest::nearest;
use crate::output;
use crate::tokens::Role;
use crate::trust::{self, Author, Secrecy, Standing};
use key::{Key, Kind};
use table::KEYS;

/// Where `tenure up` puts it, and where everybody looks.
pub(crate) const LOCAL: &str = ".tenure/tenure.toml";

/// Where a system has it.
pub(crate) const SYSTEM: &str = "/etc/tenure/tenure.toml";

/// The settings of a process, from file, environment and flags, not yet checked.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    path: PathBuf,
    /// Whose word the file is.
    author: Author,
    /// The file's text, as long as nothing was put over it: errors in it have lines.
    text: Option<String>,
    table: Table,
    /// Where values come from that are not from the file.
    sources: BTreeMap<String, Source>,
    /// For `tenure node`.
    pub(crate) daemon: Daemon,
    /// For those who ask a daemon.
    pub(crate) client: Client,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The file.
    File,
    /// This variable of the environment, without `TENURE_`.
    Variable(&'static str),
    /// A flag of the command.
    Flag,
    /// Nobody wrote it.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => f.write_str("file"),
            Self::Variable(name) => write!(f, "TENURE_{name}"),
            Self::Flag => f.write_str("flag"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// `[daemon]`: what `tenure node` does beside granting.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table [daemon]")]
pub(crate) struct Daemon {
    /// Where HTTP is served: an address, or none for no HTTP.
    pub(crate) http: Option<SocketAddr>,
    /// Where the answer of the leader-elector sidecar is served, on the address of `http`: a port
    /// of its own.
    pub(crate) sidecar_port: Option<u16>,
    /// The group that the sidecar's answer is about.
    pub(crate) sidecar_group: Option<String>,
    /// A unix socket for the commands of this machine.
    pub(crate) socket: Option<PathBuf>,
    /// The group whose members may do everything over the socket, by name or number; none, if
    /// absent.
    pub(crate) socket_group: Option<String>,
    /// A file with the bearer tokens that are accepted: see `tokens.rs`.
    pub(crate) tokens_file: Option<PathBuf>,
    /// Whether reads need no token; if absent, on loopback only, and not where certificates are
    /// asked for.
    pub(crate) open_reads: Option<bool>,
    /// The roles of client certificates, by a name in them: `"CN=alice" = "admin"`. All others may
    /// read.
    pub(crate) roles: BTreeMap<String, CertificateRole>,
    /// TLS: the certificate chain, as PEM.
    pub(crate) tls_cert: Option<PathBuf>,
    /// TLS: its private key, as PEM.
    pub(crate) tls_key: Option<PathBuf>,
    /// Mutual TLS: who may ask must have a certificate by one of these authorities.
    pub(crate) tls_client_ca: Option<PathBuf>,
    /// The log level: `error`, `warn`, `info`, `debug`, `trace`, or directives as of `tracing`'s
    /// filter.
    pub(crate) log: Option<String>,
    /// How it is logged.
    pub(crate) log_format: LogFormat,
    /// A member that was not heard of for this long is replaced by a standby; never, if absent.
    pub(crate) replace_after: Option<Length>,
    /// The processes that take the place of a member that is gone, in this order. They run already,
    /// and have joined.
    pub(crate) standbys: Vec<Standby>,
}

/// The rights of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CertificateRole {
    /// The rights of this role.
    Some(Role),
    /// Nothing at all. The greatest: it counts before every role.
    None,
}

impl<'de> Deserialize<'de> for CertificateRole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "none" => Ok(Self::None),
            text => text.parse().map(Self::Some).map_err(|_| {
                D::Error::custom(format!("'{text}' is no role: there are read, operate, admin and none"))
            }),
        }
    }
}

/// A node that waits to become a member.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { name = \"n4\", address = \"10.0.0.4:7400\" }")]
pub(crate) struct Standby {
    /// Its name.
    pub(crate) name: String,
    /// `host:port`.
    pub(crate) address: String,
}

/// How lines of the log look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// `key=value` pairs
    #[default]
    Logfmt,
    /// One JSON object a line
    Json,
}

impl LogFormat {
    /// As it is written in a file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Logfmt => "logfmt",
            Self::Json => "json",
        }
    }
}

/// `[client]`: where daemons are asked.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table [client]")]
pub(crate) struct Client {
    /// Addresses of daemons, asked in this order until one answers: `http://127.0.0.1:7401`.
    pub(crate) endpoints: Vec<String>,
    /// The unix sockets of the same daemons, in the same order. One that is there is used in place
    /// of its address.
    pub(crate) sockets: Vec<PathBuf>,
    /// A file with the bearer token.
    pub(crate) token_file: Option<PathBuf>,
    /// TLS: the authorities that daemons' certificates come from, as PEM.
    pub(crate) ca: Option<PathBuf>,
    /// Mutual TLS: this client's certificate chain.
    pub(crate) cert: Option<PathBuf>,
    /// Mutual TLS: its private key.
    pub(crate) key: Option<PathBuf>,
    /// The cluster's key, for `tenure key`, where the configuration's own key is no cluster's key.
    /// It stays with the operator.
    pub(crate) cluster_key_file: Option<PathBuf>,
}

/// A length of time in a file: `250ms`, `1.5s`, `2m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length(pub(crate) Duration);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        length(&String::deserialize(deserializer)?).map(Self).map_err(D::Error::custom)
    }
}

/// A length of time, in a file or on the command line.
pub(crate) fn length(text: &str) -> Result<Duration, String> {
    tenure::parse_length(text).ok_or_else(|| {
        format!("'{text}' is no length of time: write a number and ns, us, ms, s or m, as in 250ms")
    })
}

/// Variables whose values are secrets: those that another process must not inherit.
pub(crate) fn secret_variables() -> impl Iterator<Item = String> {
    let secrets = KEYS.iter().filter(|key| key.kind == Kind::Secret);
    secrets.filter_map(|key| key.variable).map(|name| format!("TENURE_{name}"))
}

/// Variables that `tenure run` gives its child, and the one that names the file: no settings.
const OTHERS: &[&str] = &["CONFIG", "GROUP", "TERM", "TOKEN", "NODE", "SOCKET"];

impl Settings {
    /// Finds and reads the file that `config` names or that is found without a name, and puts the
    /// environment over it.
    pub(crate) fn find(config: Option<&Path>) -> Result<Self, Failure> {
        Self::find_any(config)?.ok_or_else(|| messages::config_missing(LOCAL, SYSTEM))
    }

    /// The same, for those who can do without: `None` if nobody named a file and none is found. One
    /// that says nothing, as a package installs it, is none.
    pub(crate) fn find_any(config: Option<&Path>) -> Result<Option<Self>, Failure> {
        let named = config.map(Path::to_owned).or_else(|| env::var_os("TENURE_CONFIG").map(PathBuf::from));
        let (was_named, usual) = (named.is_some(), [LOCAL, SYSTEM].map(PathBuf::from));
        let Some(path) = named.or_else(|| usual.into_iter().find(|path| path.is_file())) else {
            return Ok(None);
        };
        let mut settings = if was_named { Self::named(&path)? } else { Self::found(&path)? };
        if settings.table.is_empty() && !was_named {
            return Ok(None);
        }
        for (name, value) in env::vars() {
            settings.put_variable(&name, &value)?;
        }
        Ok(Some(settings))
    }

    /// The same for those who can do without a file: where none is named and none is found, only
    /// the environment speaks.
    pub(crate) fn find_or_none(config: Option<&Path>) -> Result<Self, Failure> {
        if let Some(settings) = Self::find_any(config)? {
            return Ok(settings);
        }
        let mut settings = Self::read(Path::new("tenure.toml"), String::new())?;
        for (name, value) in env::vars() {
            settings.put_variable(&name, &value)?;
        }
        Ok(settings)
    }

    /// Reads a file that nobody named. One that others could have written is refused.
    pub(crate) fn found(path: &Path) -> Result<Self, Failure> {
        Self::read(path, trust::read_found(path)?)
    }

    /// Reads a file that somebody named. One that others could have written may not name what they
    /// have not got.
    pub(crate) fn named(path: &Path) -> Result<Self, Failure> {
        let (text, author) = trust::read_named(path)?;
        if let Some(warning) = trust::warning(path, author) {
            output::note(&format!("tenure: {warning}"));
        }
        Ok(Self { author, ..Self::read(path, text)? })
    }

    /// Where the daemon of this file is reached from its own host.
    pub(crate) fn daemon_address(&self) -> Option<SocketAddr> {
        let mut address = self.daemon.http?;
        if address.ip().is_unspecified() {
            let loopback =
                if address.is_ipv4() { IpAddr::from([127, 0, 0, 1]) } else { Ipv6Addr::LOCALHOST.into() };
            address.set_ip(loopback);
        }
        Some(address)
    }

    /// The same as a URL.
    pub(crate) fn daemon_url(&self) -> Option<String> {
        let address = self.daemon_address()?;
        let scheme = if self.daemon.tls_cert.is_some() { "https" } else { "http" };
        Some(format!("{scheme}://{address}"))
    }

    /// The daemon of this file, as an endpoint. One that serves its socket only is asked under a
    /// name of this machine.
    pub(crate) fn own_endpoint(&self) -> Option<String> {
        let local = || self.daemon.socket.is_some().then(|| "http://localhost".to_owned());
        self.daemon_url().or_else(local)
    }

    /// The unix socket of the daemon that has this endpoint, if the file names one.
    pub(crate) fn socket_of(&self, endpoint: &str) -> Option<PathBuf> {
        let at = self.client.endpoints.iter().position(|known| known == endpoint);
        let named = at.and_then(|at| self.client.sockets.get(at));
        let own = || self.daemon.socket.as_ref().filter(|_| self.own_endpoint().as_deref() == Some(endpoint));
        named.or_else(own).map(|path| self.resolve(path))
    }

    /// Whose word the file is.
    pub(crate) fn author(&self) -> Author {
        self.author
    }

    /// Reads a text; `path` is what to call it, and what relative paths start from.
    pub(crate) fn read(path: &Path, text: String) -> Result<Self, Failure> {
        let problem =
            |error: toml::de::Error| malformed(path.display(), &tenure::explain_toml(&error, &text));
        let table: Table = toml::from_str(&text).map_err(problem)?;
        if let Some(unknown) = unknown::first(&text) {
            return Err(malformed(path.display(), &unknown));
        }
        #[derive(Deserialize)]
        #[serde(expecting = "a configuration")]
        struct Own {
            #[serde(default)]
            daemon: Daemon,
            #[serde(default)]
            client: Client,
        }
        let own: Own = toml::from_str(&text).map_err(problem)?;
        let (daemon, client) = (own.daemon, own.client);
        let (path, author, sources) = (path.to_owned(), Author::Trusted, BTreeMap::new());
        Ok(Self { path, author, text: Some(text), table, sources, daemon, client })
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A path of the file: relative ones start from where the file is.
    pub(crate) fn resolve(&self, path: &Path) -> PathBuf {
        self.path.parent().unwrap_or(Path::new(".")).join(path)
    }

    /// Whether the file or what was put over it says anything of this key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// The value of this key, in the file or in what was put over it; `key` has its tables before
    /// dots.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        let mut parts = key.split('.');
        let first = parts.next().and_then(|part| self.table.get(part));
        parts.try_fold(first, |value, part| value.map(|value| value.get(part))).flatten()
    }

    /// Puts a flag's or a variable's value over what the file says; `key` has its tables before
    /// dots.
    pub(crate) fn put(&mut self, key: &str, value: Value, source: Source) -> Result<(), Failure> {
        let mut table = &mut self.table;
        let (tables, last) = key.rsplit_once('.').unwrap_or(("", key));
        for part in tables.split('.').filter(|part| !part.is_empty()) {
            let entry = table.entry(part).or_insert_with(|| Value::Table(Table::new()));
            let no_table = || messages::setting_refused(part, "it has a value, and must be a table");
            table = entry.as_table_mut().ok_or_else(no_table)?;
        }
        table.insert(last.to_owned(), value);
        self.sources.insert(key.to_owned(), source);
        self.text = None;
        let own = |name: &str| self.table.get(name).cloned().unwrap_or_else(|| Value::Table(Table::new()));
        let wrong = |error: toml::de::Error| messages::setting_refused(key, tenure::explain_toml(&error, ""));
        self.daemon = own("daemon").try_into().map_err(wrong)?;
        self.client = own("client").try_into().map_err(wrong)?;
        Ok(())
    }

    /// Files that have secrets, with the settings that name them.
    pub(crate) fn secrets(&self) -> Vec<(&'static str, PathBuf)> {
        let paths = |key: &Key| match (key.kind, self.get(key.name)) {
            (Kind::SecretPath, Some(Value::String(path))) => vec![path.clone()],
            (Kind::SecretPaths, Some(Value::Array(paths))) => {
                paths.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        };
        let all = KEYS.iter().flat_map(|key| paths(key).into_iter().map(|path| (key.name, path)));
        all.map(|(key, path)| (key, self.resolve(Path::new(&path)))).collect()
    }

    /// How well each secret is kept, with the setting that names it; of a key in the file itself,
    /// how well that is kept.
    pub(crate) fn secrecy(&self) -> Vec<(&'static str, PathBuf, Secrecy)> {
        let own = self.has("key").then(|| ("key", self.path.clone()));
        let judge = |(key, path): (&'static str, PathBuf)| {
            let standing = Standing::of(&std::fs::metadata(&path).ok()?);
            Some((key, path, standing.as_secret(self.author, trust::caller())))
        };
        self.secrets().into_iter().chain(own).filter_map(judge).collect()
    }

    /// Reads a file with a secret, unless others can read or write it.
    pub(crate) fn read_secret(&self, key: &str, path: &Path) -> Result<String, Failure> {
        trust::read_secret(key, &self.resolve(path), self.author)
    }

    /// The settings of a node: read by the library, errors in its words.
    pub(crate) fn node(&self) -> Result<Config, Failure> {
        // Keys of the library are in no table; it reads the files itself.
        for (key, path) in self.secrets().iter().filter(|(key, _)| !key.contains('.')) {
            trust::check_secret(key, path, self.author)?;
        }
        Ok(match &self.text {
            Some(text) => Config::from_toml(text, &self.path)?,
            None => Config::from_table(self.table.clone(), &self.path)?,
        })
    }

    /// Every key that has a value, in the order of the table, and where the value comes from;
    /// secrets are left out. With `effective`, the defaults of all others too.
    pub(crate) fn shown(&self, effective: bool) -> Vec<(&'static Key, Value, Source)> {
        let value = |key: &'static Key| {
            let written = self.get(key.name).map(|value| (hidden(key, value), self.source(key)));
            let default = || key.default_value().filter(|_| effective && self.applies(key));
            let (value, source) = written.or_else(|| Some((default()?, Source::Default)))?;
            Some((key, value, source))
        };
        // A table with rows of its own is shown by them.
        let has_rows = |key: &Key| {
            KEYS.iter()
                .any(|other| other.name.strip_prefix(key.name).is_some_and(|rest| rest.starts_with('.')))
        };
        KEYS.iter().filter(|key| !has_rows(key)).filter_map(value).collect()
    }

    /// Where the value of a key that is set comes from.
    fn source(&self, key: &Key) -> Source {
        self.sources.get(key.name).copied().unwrap_or(Source::File)
    }

    /// Whether a key that is not set means anything: other keys may have to have a value first.
    fn applies(&self, key: &Key) -> bool {
        let named = |name: &str| KEYS.iter().find(|key| key.name == name);
        let parent = key.name.rsplit_once('.').and_then(|(parent, _)| named(parent));
        let holds = |(other, wanted): (&str, &str)| {
            let other = named(other).filter(|other| self.has(other.name) || self.applies(other));
            let value =
                other.and_then(|other| self.get(other.name).cloned().or_else(|| other.default_value()));
            value.as_ref().and_then(Value::as_str) == Some(wanted)
        };
        parent.is_none_or(|parent| self.has(parent.name)) && key.with.is_none_or(holds)
    }

    /// A key's text, if it is one, as file, environment and flags have it.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        self.table.get(key).and_then(Value::as_str).map(str::to_owned)
    }

    fn put_variable(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        let Some(short) = name.strip_prefix("TENURE_") else { return Ok(()) };
        let Some(key) = KEYS.iter().find(|key| key.variable == Some(short)) else {
            if !OTHERS.contains(&short) {
                let known = KEYS.iter().filter_map(|key| key.variable);
                let meant = nearest(short, known).map(|near| format!("; did you mean TENURE_{near}?"));
                let meant = meant.unwrap_or_default();
                output::note(&format!(
                    "tenure: {name} in the environment is no setting and is passed over{meant}"
                ));
            }
            return Ok(());
        };
        let shown = if key.kind == Kind::Secret { SECRET } else { text };
        let value = key.variable_value(text).map_err(|flaw| messages::variable_refused(name, shown, flaw))?;
        let source = Source::Variable(key.variable.unwrap_or_default());
        self.put(key.name, value, source)
            .map_err(|failure| messages::variable_refused(name, shown, failure.why()))
    }
}

/// The text shown in place of a secret.
const SECRET: &str = "(secret)";

/// The value of a key as it may be shown.
fn hidden(key: &Key, value: &Value) -> Value {
    if key.kind == Kind::Secret {
        return Value::String(SECRET.to_owned());
    }
    let mut shown = value.clone();
    hide_keys(&mut shown);
    shown
}

/// Hides what looks like a key, wherever it was written: a key in the wrong place is secret too.
fn hide_keys(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with("tenure-") && text.contains(':') => {
            SECRET.clone_into(text);
        }
        Value::Array(values) => values.iter_mut().for_each(hide_keys),
        Value::Table(table) => table.iter_mut().for_each(|(_, value)| hide_keys(value)),
        _ => {}
    }
}
