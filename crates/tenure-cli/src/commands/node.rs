//! `tenure node`: one daemon.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use tenure::ClusterId;
use toml::Value;

use crate::arguments::Common;
use crate::daemon::{Daemon, Founding};
use crate::failure::Failure;
use crate::output::Answer;
use crate::settings::{LogFormat, Settings, Source};

/// Run one daemon.
#[derive(Args, Debug)]
#[command(
    after_help = "Runs in the foreground and logs to stderr, one line an event. Reads the configuration's file,
then TENURE_* in the environment, then these flags; the later wins.

Signals: TERM and INT resign, drain and end with 0; a second one ends at once. HUP reads log
level, keys, tokens and certificates again. USR1 writes the state to the log. systemd is told
READY when the node can do its part: it is not silent after a reboot and has reached a quorum.

Examples:
  tenure node -c /var/lib/tenure/tenure.toml
  tenure node -c d/tenure.toml --join   a new member's first start
  TENURE_LOG=debug tenure node -c n1/tenure.toml --http 127.0.0.1:7401

Exit codes: 0 ended as it was told, 2 error, 70 the node stopped by itself (its clock or its
disk cannot be trusted), 78 the configuration, the key, the store or the name must be changed
first; 128+N for a second signal N"
)]
pub(crate) struct Node {
    /// Make the store first, as a founding member (`tenure init` does that for all of them at once)
    #[arg(long, conflicts_with = "join", requires = "term_floor")]
    found: bool,
    /// Make the store first, as a member to be: it grants nothing until `tenure members add` or
    /// `replace`
    #[arg(long)]
    join: bool,
    /// The cluster to found or join [default: cluster_id of the file]
    #[arg(long, value_name = "ID")]
    cluster_id: Option<ClusterId>,
    /// With --found: terms begin above this; the same for every founding member
    #[arg(long, value_name = "N", requires = "found")]
    term_floor: Option<u64>,
    /// The name of this node
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Where it listens; may be repeated
    #[arg(long, value_name = "IP:PORT")]
    listen: Vec<SocketAddr>,
    /// Where others reach it, if that is elsewhere
    #[arg(long, value_name = "HOST:PORT")]
    advertise: Option<String>,
    /// The folder of the store
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Where HTTP is served
    #[arg(long, value_name = "IP:PORT")]
    http: Option<SocketAddr>,
    /// Serve the leader-elector sidecar's answer on this port
    #[arg(long, value_name = "PORT")]
    sidecar_port: Option<u16>,
    /// The group that the sidecar's answer is about
    #[arg(long, value_name = "GROUP")]
    sidecar_group: Option<String>,
    /// The level of the log: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL")]
    log: Option<String>,
    /// How it is logged
    #[arg(long, value_name = "FORMAT", value_enum)]
    log_format: Option<LogFormat>,
    /// End when this process, which started it, has ended
    #[arg(long, value_name = "PID", hide = true)]
    parent_pid: Option<i32>,
}

impl Node {
    /// Does it.
    pub(crate) fn run(self, common: &Common) -> Result<Answer, Failure> {
        if let Some(parent) = self.parent_pid {
            crate::daemon::die_with(parent)?;
        }
        let settings = self.settings(common)?;
        let founding = match (self.found, self.join) {
            (true, _) => Founding::Found { floor: self.term_floor.unwrap_or_default() },
            (false, true) => Founding::Join,
            (false, false) => Founding::Done,
        };
        let common = common.clone();
        let again = move || self.settings(&common);
        Daemon { settings, founding, again: Box::new(again) }.run()
    }

    /// The file, the environment and the flags, as they are now.
    fn settings(&self, common: &Common) -> Result<Settings, Failure> {
        let mut settings = common.settings()?;
        let path = |path: &PathBuf| {
            let path = std::env::current_dir().unwrap_or_default().join(path);
            Value::from(path.to_string_lossy().into_owned())
        };
        let text = |text: &String| Value::from(text.as_str());
        let listen: Vec<Value> = self.listen.iter().map(|address| Value::from(address.to_string())).collect();
        let flags = [
            ("cluster_id", self.cluster_id.map(|id| Value::from(id.to_string()))),
            ("name", self.name.as_ref().map(text)),
            ("listen", (!listen.is_empty()).then_some(Value::Array(listen))),
            ("advertise", self.advertise.as_ref().map(text)),
            ("store", self.store.as_ref().map(path)),
            ("daemon.http", self.http.map(|address| Value::from(address.to_string()))),
            ("daemon.sidecar_port", self.sidecar_port.map(|port| Value::from(i64::from(port)))),
            ("daemon.sidecar_group", self.sidecar_group.as_ref().map(text)),
            ("daemon.log", self.log.as_ref().map(text)),
            ("daemon.log_format", self.log_format.map(|format| Value::from(format.name()))),
        ];
        for (key, value) in flags {
            if let Some(value) = value {
                settings.put(key, value, Source::Flag)?;
            }
        }
        Ok(settings)
    }
}
