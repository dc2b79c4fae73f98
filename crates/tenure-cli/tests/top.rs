//! `tenure top` on a real cluster: one look off a terminal, and the real thing in tmux, driven by
//! keys.

use std::process::{Command, Stdio};

use serde_json::Value;
use tenure_testkit::binary::Binary;
use tenure_testkit::up::{Ends, Up};
use tenure_testkit::waiting::look_for;

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

/// A tmux server of its own, ended with the test.
struct Screen {
    socket: String,
}

impl Screen {
    fn start(up: &Up, words: &str) -> Self {
        let screen = Self { socket: format!("tenure-{}", up.path().file_name().unwrap().to_string_lossy()) };
        let folder = up.path().to_str().unwrap();
        let command = format!("{} {words}", TENURE.0);
        // The shell stays when the command has ended, and says how.
        let shell = format!("{command}; echo exit code $?; cat");
        screen.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "30", "-c", folder, &shell]);
        screen
    }

    fn tmux(&self, words: &[&str]) -> String {
        let output = Command::new("tmux")
            .args(["-u", "-L", &self.socket])
            .args(words)
            .env("LC_ALL", "C.UTF-8")
            .env_remove("TMUX")
            .output()
            .expect("tmux is here: `cargo xtask setup` installs it");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Waits until the screen shows all of it.
    fn shows(&self, up: &Up, parts: &[&str]) -> String {
        let mut last = String::new();
        for _ in 0..300 {
            last = self.tmux(&["capture-pane", "-p"]);
            if parts.iter().all(|part| last.contains(part)) {
                return last;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("{parts:?} are not all on the screen of {}:\n{last}", up.path().display());
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-L", &self.socket, "kill-server"]).env_remove("TMUX").output();
    }
}

fn runner(up: &Up, group: &str) -> Ends {
    let mut command = up.command(&format!("run --lease 4s -g {group} -- sleep 600"));
    Ends(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

#[test]
fn off_a_terminal_one_look_is_printed_and_on_one_it_lives() {
    let up = Up::start(TENURE);
    let (code, text) = up.tenure("top");
    assert!(code == 0 && text.contains("n1") && text.contains("no groups yet"), "{code} {text}");

    let mail = runner(&up, "mail");
    let jobs = runner(&up, "jobs");
    let report: Value = look_for("both groups are led", || {
        let report: Value = serde_json::from_str(&up.tenure("top -o json").1).ok()?;
        let groups = report["groups"].as_array()?;
        (groups.len() == 2 && groups.iter().all(|group| group["leader"].is_string()))
            .then_some(report.clone())
    });
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(keys(&report), "groups nodes");
    assert_eq!(
        keys(&report["nodes"][0]),
        "endpoint epoch led name peers peers_answering round_trip_us state version why"
    );
    assert_eq!(keys(&report["groups"][0]), "group leader lease_left_ms term unknown weak");

    let screen = Screen::start(&up, "top");
    screen.shows(
        &up,
        &["nodes: 3 of 3 ready", "groups: 2 of 2, by name", "jobs", "mail", "█", "events", "q quit"],
    );
    screen.keys(&["/", "m", "a", "i"]);
    screen.shows(&up, &["groups: 1 of 2, by name, filter 'mai'", "/mai"]);
    screen.keys(&["Escape"]);
    screen.shows(&up, &["groups: 2 of 2, by name"]);
    screen.keys(&["s"]);
    screen.shows(&up, &["groups: 2 of 2, by lease left"]);
    drop(mail); // It resigns, and somebody hears of it.
    screen.shows(&up, &["mail: nobody leads"]);
    screen.keys(&["q"]);
    let last = screen.shows(&up, &["exit code 0"]);
    assert!(!last.contains("nodes:"), "the screen is as it was before:\n{last}");
    drop(jobs);
}

#[test]
fn nobody_to_ask_is_exit_code_78_and_nobody_who_answers_69() {
    let folder = tempfile::tempdir().unwrap();
    let top = |words: &[&str]| {
        let mut command = Command::new(TENURE.0);
        command.arg("top").args(words).current_dir(&folder).env_remove("TENURE_CONFIG");
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = top(&[]);
    assert!(code == Some(78) && said.contains("tenure up") && said.lines().count() == 1, "{said}");
    let (code, said) = top(&["--endpoint", "http://127.0.0.1:9"]);
    assert!(code == Some(69) && said.contains("127.0.0.1:9") && said.lines().count() == 1, "{said}");
}
