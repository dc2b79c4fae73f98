//! Founding a cluster: its id, its key, and a folder for every founding member, ready to be copied
//! to its host.
//!
//! ```text
//! DIR/tenure.toml      for those who ask and those who campaign: `tenure leader`, `tenure run`
//! DIR/key              the cluster's key, for the operator
//! DIR/client.key       a key for all groups, for clients
//! DIR/token            a token of the role admin, for HTTP from elsewhere
//! DIR/a/tenure.toml    for the daemon of member a: `tenure node -c DIR/a/tenure.toml`
//! DIR/a/key            the same key
//! DIR/a/tokens         the tokens that this daemon accepts, as hashes
//! DIR/a/http.sock      the daemon's unix socket, as soon as it runs
//! DIR/a/store/         the durable promise of a
//! ```
//!
//! All of it is made in a hidden folder of DIR first, and checked by the library. It takes its
//! place when nothing can go wrong any more but a rename, the client's file last: a reader that
//! finds that file finds a whole cluster.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure::{CandidateKey, Claims, ClusterId, ClusterKey, Config, Names, Node, NodeName, Scope, Term};

use crate::failure::{Failure, messages};
use crate::tokens::{List, Role, Token};

/// The name of the client's file and of every daemon's file.
pub(crate) const FILE: &str = "tenure.toml";

/// The name of the cluster's key beside them.
pub(crate) const KEY: &str = "key";

/// The key of clients, beside their configuration.
pub(crate) const CLIENT_KEY: &str = "client.key";

/// The names under which clients speak: each process has one of its own.
const CLIENTS: &str = "client-*";
/// The name of the commands' token beside the client's file.
pub(crate) const TOKEN: &str = "token";

/// The name of a daemon's list of tokens.
pub(crate) const TOKENS: &str = "tokens";

/// The name of a daemon's unix socket.
pub(crate) const SOCKET: &str = "http.sock";

/// A cluster that shall be.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Where its folders go.
    pub(crate) folder: PathBuf,
    /// The founding members.
    pub(crate) founders: Vec<Founder>,
    /// As in the configuration; majority if absent.
    pub(crate) quorums: Option<String>,
    /// ρ.
    pub(crate) drift_ppm: Option<u32>,
    /// δ_max.
    pub(crate) longest_lease: Option<Duration>,
    /// δ.
    pub(crate) lease: Option<Duration>,
    /// No term up to this is ever granted.
    pub(crate) floor: Term,
}

/// A member that founds the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Founder {
    /// Its name.
    pub(crate) name: String,
    /// `host:port`, where the others reach it.
    pub(crate) address: String,
    /// Where its daemon serves HTTP.
    pub(crate) http: SocketAddr,
}

/// A cluster that was founded.
#[derive(Clone, Debug)]
pub(crate) struct Founded {
    /// Its id.
    pub(crate) cluster: ClusterId,
    /// The short name of its key.
    pub(crate) key: String,
}

impl Founder {
    /// From `name=host:port`. HTTP is served on loopback, on the next port unless `http_port` says
    /// otherwise.
    pub(crate) fn new(text: &str, http_port: Option<u16>) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no member: write NAME=HOST:PORT, as in a=10.0.0.1:7400");
        let (name, address) = text.split_once('=').ok_or_else(wrong)?;
        let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
        let port: u16 = port.parse().map_err(|_| wrong())?;
        let next = port.checked_add(1).filter(|_| port > 0);
        let http = http_port.or(next).ok_or_else(wrong)?;
        let loopback = host_ip(host).filter(IpAddr::is_loopback);
        let ip = loopback.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        Ok(Self { name: name.to_owned(), address: address.to_owned(), http: SocketAddr::new(ip, http) })
    }

    /// Whether it runs where it was founded.
    pub(crate) fn is_local(&self) -> bool {
        let host = self.address.rsplit_once(':').map(|(host, _)| host);
        host.and_then(host_ip).is_some_and(|ip| ip.is_loopback())
    }

    /// Where it listens: its address if that is one, else everywhere on its port.
    fn listen(&self) -> String {
        match self.address.rsplit_once(':') {
            Some((host, port)) if host_ip(host).is_none() => format!("0.0.0.0:{port}"),
            _ => self.address.clone(),
        }
    }
}

fn host_ip(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

impl Plan {
    /// Founds the cluster. If anything is wrong, nothing is left behind.
    pub(crate) fn carry_out(&self) -> Result<Founded, Failure> {
        self.check_names()?;
        self.check_ports()?;
        let (cluster, key) = (ClusterId::draw(), ClusterKey::generate());
        let made = make_folder(&self.folder)?;
        let draft = self.folder.join(format!(".founding-{}", std::process::id()));
        let result = self.check_room().and_then(|()| {
            folder(&draft)?;
            self.write(&draft, cluster, &key)?;
            self.publish(&draft)
        });
        // After a success it is empty; after a failure it has a key in it that nobody needs.
        let _ = fs::remove_dir_all(&draft);
        if result.is_err() && made {
            let _ = fs::remove_dir(&self.folder);
        }
        result.map(|()| Founded { cluster, key: key.id().to_string() })
    }

    /// The entries that the folder will have, the client's file last.
    fn entries(&self) -> impl Iterator<Item = &str> {
        self.founders.iter().map(|founder| founder.name.as_str()).chain([KEY, CLIENT_KEY, TOKEN, FILE])
    }

    fn check_room(&self) -> Result<(), Failure> {
        match self.entries().map(|name| self.folder.join(name)).find(|path| path.exists()) {
            Some(path) => Err(messages::already_founded(path.display())),
            None => Ok(()),
        }
    }

    /// A member's name is the name of its folder.
    fn check_names(&self) -> Result<(), Failure> {
        for (i, Founder { name, .. }) in self.founders.iter().enumerate() {
            NodeName::new(name).map_err(messages::founding_member_malformed)?;
            if self.founders[..i].iter().any(|other| other.name == *name) {
                return Err(messages::founding_name_twice(name));
            }
            if [KEY, CLIENT_KEY, TOKEN, FILE].contains(&name.as_str()) || name.starts_with('.') {
                return Err(messages::founding_name_taken(name));
            }
        }
        Ok(())
    }

    /// Two daemons on one machine must not want one port. A member listens on its port by UDP and
    /// by TCP.
    fn check_ports(&self) -> Result<(), Failure> {
        for (i, founder) in self.founders.iter().enumerate() {
            let taken = |other: &Founder| {
                other.address == founder.address
                    || other.address == founder.http.to_string()
                    || founder.address == other.http.to_string()
                    || (other.is_local() && founder.is_local() && other.http == founder.http)
            };
            let clash = self.founders[..i].iter().find(|other| taken(other));
            if let Some(other) = clash {
                let ports = format!(
                    "{} and {}, HTTP on {} and {}",
                    other.address, founder.address, other.http, founder.http
                );
                return Err(messages::founding_ports_shared(&other.name, &founder.name, ports));
            }
            if founder.http.to_string() == founder.address {
                return Err(messages::founding_port_twice(&founder.name, founder.http.port()));
            }
        }
        Ok(())
    }

    fn write(&self, draft: &Path, cluster: ClusterId, key: &ClusterKey) -> Result<(), Failure> {
        let secret = key.reveal() + "\n";
        write_file(&draft.join(KEY), &secret, 0o600)?;
        let token = Token::draw();
        write_file(&draft.join(TOKEN), &format!("{}\n", token.reveal()), 0o600)?;
        let tokens =
            List(vec![token.listed(Role::Admin, None, "for the commands, made with the cluster")]).file();
        let client = draft.join(FILE);
        // The lineage follows from what is founded: files without it, written first, give it.
        self.write_client(draft, (cluster, key), None)?;
        let lineage = Node::founding_lineage(&Config::from_path(&client)?, cluster)?;
        for path in [&client, &draft.join(CLIENT_KEY)] {
            fs::remove_file(path).map_err(|error| cannot_write(path, &error))?;
        }
        self.write_client(draft, (cluster, key), Some(lineage))?;
        for founder in &self.founders {
            let home = draft.join(&founder.name);
            folder(&home)?;
            write_file(&home.join(KEY), &secret, 0o600)?;
            write_file(&home.join(TOKENS), &tokens, 0o600)?;
            let file = home.join(FILE);
            write_file(&file, &self.daemon_file(founder, cluster, lineage), 0o644)?;
            // A path of the draft means nothing to anybody: what is wrong is said without it.
            let config = Config::from_path(&file)?;
            config.check()?;
            Node::found(&config, cluster, self.floor)?;
        }
        Config::from_path(&client)?.check()?;
        Ok(())
    }

    /// Writes the files of clients: a configuration and a key.
    fn write_client(
        &self,
        draft: &Path,
        (cluster, key): (ClusterId, &ClusterKey),
        lineage: Option<u128>,
    ) -> Result<(), Failure> {
        let secret = client_key(key, cluster, lineage)?.reveal() + "\n";
        write_file(&draft.join(CLIENT_KEY), &secret, 0o600)?;
        write_file(&draft.join(FILE), &self.client_file(cluster, lineage), 0o644)
    }

    fn publish(&self, draft: &Path) -> Result<(), Failure> {
        let mut moved = Vec::new();
        for name in self.entries() {
            let to = self.folder.join(name);
            if let Err(error) = fs::rename(draft.join(name), &to) {
                moved.iter().for_each(|path: &PathBuf| {
                    let _ = fs::rename(path, draft.join(path.file_name().unwrap_or_default()));
                });
                return Err(cannot_write(&to, &error));
            }
            moved.push(to);
        }
        let synced = fs::File::open(&self.folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| cannot_write(&self.folder, &error))
    }

    fn daemon_file(&self, founder: &Founder, cluster: ClusterId, lineage: u128) -> String {
        let Founder { name, address, http } = founder;
        let listen = founder.listen();
        let mut lines = vec![
            format!(
                "# The daemon of member '{name}': tenure node -c FILE. Paths are relative to this file.\n"
            ),
            said(
                format!("name = \"{name}\""),
                "for good: one that lost its disk comes back under another name",
            ),
            format!("listen = \"{listen}\""),
            said(
                "store = \"store\"",
                "the durable promise: on a disk, not on tmpfs; never put back an old copy",
            ),
            said(format!("key_file = \"{KEY}\""), "who has it is believed to be a member"),
            said("old_key_files = []", "accepted too, while keys change: tenure key rotate"),
            format!("cluster_id = \"{cluster}\""),
            lineage_line(lineage),
        ];
        if listen != *address {
            lines.push(said(format!("advertise = \"{address}\""), "where the others reach it"));
        }
        lines.extend([
            "\n[daemon]".to_owned(),
            said(format!("http = \"{http}\""), "API, metrics, page: without a token, reads only"),
            said(format!("socket = \"{SOCKET}\""), "for the commands of this user and of root"),
            said(format!("tokens_file = \"{TOKENS}\""), "who may do what by HTTP: tenure token"),
            said("log = \"info\"", "error, warn, info, debug, trace; read again on HUP"),
            said("log_format = \"logfmt\"", "or json"),
            "\n# Founded the cluster; from then on the epoch in the stores rules: tenure members set"
                .to_owned(),
        ]);
        lines.join("\n") + "\n" + &self.cluster_table() + &self.lease_table()
    }

    fn client_file(&self, cluster: ClusterId, lineage: Option<u128>) -> String {
        let mut endpoints: Vec<String> =
            self.founders.iter().map(|founder| format!("\"http://{}\"", founder.http)).collect();
        endpoints.dedup();
        let socket = |founder: &Founder| format!("\"{}/{SOCKET}\"", founder.name);
        // By their order they belong to the endpoints. On other hosts the daemons have them
        // elsewhere.
        let all_here = self.founders.iter().all(Founder::is_local);
        let sockets: Vec<String> = self.founders.iter().filter(|_| all_here).map(socket).collect();
        let lines = [
            "# For those who lead by this cluster (tenure run) and those who ask it (tenure leader, tenure status).".to_owned(),
            "# Paths are relative to this file. For an application that shall lead some groups only, make a key:".to_owned(),
            "# tenure key --candidate NAME --groups 'NAME/*'\n".to_owned(),
            said("name = \"client-1\"", "tenure run has a name of its own for each process"),
            said("role = \"candidate\"", "may lead, and grants nothing"),
            said(format!("key_file = \"{CLIENT_KEY}\""), "may lead all groups, under names client-*"),
            format!("cluster_id = \"{cluster}\""),
            lineage.map_or_else(String::new, lineage_line),
            "\n[client]".to_owned(),
            said(format!("endpoints = [{}]", endpoints.join(", ")), "daemons, asked in this order"),
            said(format!("cluster_key_file = \"{KEY}\""), "for tenure key; never copy it to clients"),
            said(format!("sockets = [{}]", sockets.join(", ")), "the same, where they run here"),
            said(format!("token_file = \"{TOKEN}\""), "for those that run elsewhere"),
            "\n# The members, and what they were founded with".to_owned(),
        ];
        lines.join("\n") + "\n" + &self.cluster_table() + &self.lease_table()
    }

    fn cluster_table(&self) -> String {
        let mut text = "[cluster]\n".to_owned();
        if let Some(quorums) = &self.quorums {
            let _ = writeln!(text, "quorums = {}", toml::Value::from(quorums.as_str()));
        }
        if let Some(ppm) = self.drift_ppm {
            let _ = writeln!(text, "drift_ppm = {ppm}");
        }
        if let Some(longest) = self.longest_lease {
            let _ = writeln!(text, "longest_lease = \"{}\"", length(longest));
        }
        for Founder { name, address, .. } in &self.founders {
            let _ = write!(
                text,
                "[[cluster.members]]\nname = \"{name}\"\naddress = {}\n",
                toml::Value::from(address.as_str())
            );
        }
        text
    }

    fn lease_table(&self) -> String {
        self.lease.map_or_else(String::new, |lease| format!("\n[lease]\nlength = \"{}\"\n", length(lease)))
    }
}

/// Which founding this is.
fn lineage_line(lineage: u128) -> String {
    said(format!("lineage = \"{lineage:032x}\""), "this founding: members of another are refused")
}

/// Makes the key of clients: they may lead any group, and are no members.
fn client_key(key: &ClusterKey, cluster: ClusterId, lineage: Option<u128>) -> Result<CandidateKey, Failure> {
    let names = Names::new(CLIENTS)?;
    let scope = Scope::new("*").map_err(messages::name_refused)?;
    let claims = Claims::candidate(names, scope);
    let claims = match lineage {
        Some(lineage) => claims.lineage(lineage),
        None => claims,
    };
    Ok(key.derive(cluster, claims))
}

/// A line with what it means.
fn said(line: impl Into<String>, meaning: &str) -> String {
    format!("{:<28} # {meaning}", line.into())
}

/// A length as files have it, to the nanosecond.
pub(crate) fn length(length: Duration) -> String {
    let nanos = length.as_nanos();
    match nanos {
        0 => "0s".to_owned(),
        _ if nanos.is_multiple_of(1_000_000_000) => format!("{}s", nanos / 1_000_000_000),
        _ if nanos.is_multiple_of(1_000_000) => format!("{}ms", nanos / 1_000_000),
        _ => format!("{nanos}ns"),
    }
}

/// Makes the folder of the cluster if it is missing, and says whether it did.
fn make_folder(path: &Path) -> Result<bool, Failure> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(false),
        Err(error) => Err(cannot_write(path, &error)),
    }
}

fn folder(path: &Path) -> Result<(), Failure> {
    DirBuilder::new().mode(0o700).create(path).map_err(|error| cannot_write(path, &error))
}

/// Writes a new file, durably, with a mode.
pub(crate) fn write_file(path: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::AlreadyExists => messages::file_exists(path.display()),
        io::ErrorKind::NotFound => messages::folder_missing(path.display()),
        _ => messages::folder_unwritable(path.display(), error),
    }
}
