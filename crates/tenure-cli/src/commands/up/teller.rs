//! The output of `tenure up`: lines for people, or an object a line for programs.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Instant;

use serde_json::{Value, json};

use super::cluster::{Cluster, Member};
use super::follow::Change;
use super::nodes::Nodes;
use crate::clock::clock;
use crate::output::{self, Format, many, quoted};

/// Says what happens, with the time since everything was ready.
#[derive(Debug)]
pub(super) struct Teller {
    format: Format,
    since: Instant,
    tenure: String,
}

impl Teller {
    /// In the format that was asked for.
    pub(super) fn new(format: Format) -> Self {
        Self { format, since: clock(), tenure: how_called() }
    }

    /// Every node is ready.
    pub(super) fn ready(&mut self, cluster: &Cluster, link: Option<&str>) {
        self.since = clock();
        let node = |member: &Member| {
            json!({
                "name": member.name,
                "address": member.address.to_string(),
                "http": member.http.map(|http| format!("http://{http}")),
                "config": member.file,
            })
        };
        let json = || {
            json!({
                "event": "ready",
                "cluster_id": cluster.id,
                "config": cluster.file(),
                "page": link,
                "nodes": cluster.members.iter().map(node).collect::<Vec<_>>(),
            })
        };
        self.say(json, || self.invitation(cluster, link));
    }

    /// A node runs that is no member.
    pub(super) fn no_member(&self, member: &Member) {
        let json = || json!({ "event": "no_member", "node": member.name });
        self.say(json, || {
            format!(
                "{0} runs, but is no member: `tenure members add {0} {1}` makes it one again; or stop here, and remove its folder\n",
                member.name, member.address
            )
        });
    }

    fn invitation(&self, cluster: &Cluster, link: Option<&str>) -> String {
        let (tenure, flag) = (&self.tenure, cluster.flag());
        let number = many(cluster.members.len() as u64, "node", "nodes");
        let began = if cluster.is_old { "continues" } else { "runs" };
        let mut text = format!("A cluster of {number} {began} in {}.\n\n", cluster.folder.display());
        text += "In other terminals:\n";
        let mut rows = vec![
            (
                format!("{tenure} run -g hello{flag} -- sh -c 'echo leads; sleep 600'"),
                "in two; then kill one",
            ),
            (format!("{tenure} leader hello --watch{flag}"), "who leads, as it changes"),
            (format!("{tenure} status{flag}"), "nodes and groups"),
        ];
        if let Some(link) = link {
            rows.push((link.to_owned(), "the same, in a browser, once"));
        }
        let widest = rows.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
        for (command, what) in rows {
            text += &format!("  {command:<widest$}  {what}\n");
        }
        text + &format!("\nCtrl-C stops it, `{tenure} up` continues it. Logs are in {}.\n\n", logs(cluster))
    }

    /// Some nodes take their time.
    pub(super) fn waiting(&self, nodes: &Nodes) {
        for node in nodes.iter().filter(|node| !node.is_ready() && !node.is_no_member()) {
            let (name, status) = (&node.member().name, node.status());
            self.say(
                || json!({ "event": "waiting", "node": name, "status": status }),
                || format!("{name} is not ready: {status}; its log is {}\n", node.log().display()),
            );
        }
    }

    /// Somebody leads, or nobody any more.
    pub(super) fn leads(&self, Change { group, leader, term }: &Change) {
        let json = json!({ "event": "leader", "group": group, "leader": leader, "term": term });
        let text = match (leader, term) {
            (Some(leader), Some(term)) => format!("{group}: {leader} leads, term {term}"),
            (Some(leader), None) => format!("{group}: {leader} leads"),
            (None, _) => format!("{group}: nobody leads"),
        };
        self.event(json, &text);
    }

    /// A node has ended, and this was not asked of it.
    pub(super) fn ended(&self, nodes: &Nodes, name: &str, how: ExitStatus) {
        let Some(node) = nodes.get(name) else { return };
        let how_said = match (how.signal(), how.code()) {
            (Some(signal), _) => format!("was killed by signal {signal}"),
            (None, Some(code)) => format!("ended with code {code}: {}", nodes.last_words(name, &how)),
            (None, None) => "ended".to_owned(),
        };
        let left = match nodes.running() {
            0 => String::new(),
            left => format!(
                "; {} {} on",
                many(left as u64, "node", "nodes"),
                if left == 1 { "goes" } else { "go" }
            ),
        };
        let again = format!("{} node -c {}", self.tenure, quoted(&node.member().file.to_string_lossy()));
        self.event(
            json!({ "event": "ended", "node": name, "signal": how.signal(), "code": how.code(), "again": again }),
            &format!("{name} {how_said}{left}. To start it again: {again}"),
        );
    }

    /// It was asked to end.
    pub(super) fn stopping(&self, signal: &str) {
        self.event(json!({ "event": "stopping", "signal": signal }), "stopping");
    }

    /// All nodes have ended.
    pub(super) fn stopped(&self) {
        self.event(json!({ "event": "stopped" }), "stopped");
    }

    /// One thing that happened.
    pub(super) fn event(&self, mut json: Value, text: &str) {
        let after = clock().duration_since(self.since).as_secs_f64();
        json["seconds"] = json!((after * 1000.0).round() / 1000.0);
        self.say(|| json, || format!("{after:>9.3} s  {text}\n"));
    }

    /// A reader that has gone away wants to hear no more; the cluster runs on.
    fn say(&self, json: impl FnOnce() -> Value, text: impl FnOnce() -> String) {
        let said = match self.format {
            Format::Table => text(),
            Format::Json => format!("{}\n", json()),
        };
        let _ = output::say(&said); // Nobody needs to read it.
    }
}

fn logs(cluster: &Cluster) -> String {
    let names: Vec<&str> = cluster.members.iter().map(|member| member.name.as_str()).collect();
    let pattern = match names.as_slice() {
        [one] => format!("{one}/log"),
        names => format!("{{{}}}/log", names.join(",")),
    };
    cluster.folder.join(pattern).display().to_string()
}

/// How this program is called in another terminal: by its name if that finds it, else by its path.
fn how_called() -> String {
    let Ok(me) = std::env::current_exe() else { return "tenure".to_owned() };
    let same = |folder: &Path| std::fs::canonicalize(folder.join("tenure")).is_ok_and(|path| path == me);
    let found =
        std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|folder| same(&folder)));
    if found {
        return "tenure".to_owned();
    }
    let here = std::env::current_dir().unwrap_or_default();
    quoted(&me.strip_prefix(&here).unwrap_or(&me).to_string_lossy())
}
