//! Members of two releases in one cluster: an upgrade, one member at a time, and back.
//!
//! `cargo xtask compatibility REVISION` gives the binary of an earlier revision by
//! `TENURE_PREVIOUS`. Without it this tree's own binary has both roles: then the test shows that
//! restarts one by one, each ready before the next, never cost the leader its term.

use std::path::Path;

use rustix::process::Signal;
use tenure_testkit::binary::Binary;
use tenure_testkit::daemons::{Daemon, Daemons};

const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

/// The exit code of a command that no daemon can answer.
const NOT_KNOWN: i32 = 69;

/// The binary of the earlier release.
fn previous() -> Binary {
    std::env::var("TENURE_PREVIOUS").map_or(TENURE, |path| Binary(path.leak()))
}

/// Starts a member by one of the binaries.
fn start(binary: Binary, daemons: &Daemons, index: u16, life: usize) -> Daemon {
    let mut node = binary.command_in(daemons.path());
    node.args(["node", "-c"]).arg(daemons.file(index));
    Daemon::start(node, &daemons.path().join(format!("member{index}-{life}.log")))
}

/// A command that leads a group by one of the binaries.
fn lead(binary: Binary, folder: &Path, group: &str, command: &str) -> Daemon {
    let mut runner = binary.command_in(folder);
    // A lease that outlasts the pauses of a busy machine: the leader must not lose it by chance.
    runner.args(["-c", "tenure.toml", "run", "-g", group, "--lease", "5s", "--grace", "100ms"]);
    runner.args(["--", "sh", "-c", command]);
    Daemon::start(runner, &folder.join(format!("{group}.log")))
}

/// The leader, once a daemon knows: members that were restarted may have to hear its next renewal.
fn found_leader(client: Binary, folder: &Path) -> String {
    for _ in 0..300 {
        let output = client.run(folder, "-c tenure.toml leader stays");
        if output.status.code() != Some(NOT_KNOWN) {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            return String::from_utf8_lossy(&output.stdout).into_owned();
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("nobody knew who leads for thirty seconds")
}

#[test]
fn a_leader_leads_on_while_members_are_upgraded_one_by_one_and_back() {
    let old = previous();
    let daemons = Daemons::found(old, 3, "");
    let folder = daemons.path();
    let mut members: Vec<Daemon> = (0..3).map(|index| start(old, &daemons, index, 0)).collect();
    members.iter().for_each(|member| drop(member.line("event=ready")));
    let runner = lead(old, folder, "stays", "sleep 600");
    runner.line("leads in term");
    let leader = old.succeeds(folder, "-c tenure.toml leader stays");
    for (life, binary) in (1..).zip([TENURE, old]) {
        for index in 0..3 {
            let member = members.remove(0);
            member.signal(Signal::TERM);
            let (status, said) = member.end();
            assert_eq!(status.code(), Some(0), "{said}");
            members.push(start(binary, &daemons, index, life));
            members[2].line("event=ready");
            for client in [old, TENURE] {
                let found = found_leader(client, folder);
                assert_eq!(found, leader, "after restart {life} of member {index}");
                // Each release elects by members of both.
                client.succeeds(folder, &format!("-c tenure.toml run -g once{life}{index} -- true"));
            }
        }
    }
    assert_eq!(runner.text().matches("leads in term").count(), 1, "{}", runner.text());
}
