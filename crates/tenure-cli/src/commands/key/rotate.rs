//! `tenure key rotate`: another key for the whole cluster, without a gap.
//!
//! No two members can change at the same instant, so there is a time in which both keys are
//! understood:
//!
//! | step | every member | files afterwards |
//! |---|---|---|
//! | 1 | understands the new key, speaks the old one | `key` old, `key.new` new, `old_key_files = ["key.new"]` |
//! | 2 | speaks the new key, understands the old one | `key` new, `key.old` old, `old_key_files = ["key.old"]` |
//! | 3 | knows the new key only | `key` new, `old_key_files = []` |
//!
//! After each step every member reads its files again, by HUP, before the next step begins
//! anywhere. Between 2 and 3 those that are no members get keys derived from the new one. A step
//! that was interrupted can be done again.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use tenure::ClusterKey;

use crate::arguments::Common;
use crate::failure::{Failure, messages};
use crate::founding::write_file;
use crate::output::{Answer, quoted};
use crate::settings::Settings;

/// Change the cluster's key without anybody noticing, in three steps.
#[derive(Args, Debug)]
#[command(
    after_help = "Each step is done for every member (-c FILE), which then reads its files again (HUP), before the
next step begins anywhere. No leader is disturbed.

  1  draws the new key to KEY.new, or takes the one that another member drew, and lets the
     member understand it
  2  the member speaks the new key; the old one goes to KEY.old and is still understood. Now
     copy the new key to where the operator keeps it (cluster_key_file of clients), and derive new
     keys for clients, candidates, observers and operators
  3  removes the old key: who still has it, or a key derived from it, is refused

Where KEY is key_file of the configuration. Written are KEY, KEY.new or KEY.old, and the line
old_key_files.

Examples:
  tenure key rotate --step 1 -c a/tenure.toml                     on a's host; then HUP
  tenure key rotate --step 1 -c b/tenure.toml --with a/key.new    with what a drew
  tenure key rotate --step 2 -c a/tenure.toml

Exit codes: 0 done, 2 error, 78 the files are not as this step needs them: one line says what to
do"
)]
pub(super) struct Rotate {
    /// Which step
    #[arg(long, value_name = "1|2|3", value_parser = clap::value_parser!(u8).range(1..=3))]
    step: u8,
    /// Step 1: the new key that another member drew
    #[arg(long, value_name = "FILE")]
    with: Option<PathBuf>,
}

/// The files of one member.
struct Files {
    config: PathBuf,
    key: PathBuf,
    new: PathBuf,
    old: PathBuf,
    /// The value of `key_file`, for the line that names the others.
    written: String,
    /// The value of `old_key_files`.
    accepted: Vec<String>,
}

impl Rotate {
    /// Does it.
    pub(super) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let settings = common.settings()?;
        if self.with.is_some() && self.step != 1 {
            return Err(messages::rotate_with_later());
        }
        let files = Files::of(&settings)?;
        let (wrote, next) = match self.step {
            1 => files.first(self.with.as_deref())?,
            2 => files.second()?,
            _ => files.third()?,
        };
        let id = |path: &Path| read_key(path).ok().map(|key| key.id().to_string());
        let (spoken, new) = (id(&files.key), id(&files.new));
        let json = || json!({ "step": self.step, "wrote": wrote, "speaks": spoken, "new": new });
        let text = || {
            let wrote: Vec<String> = wrote.iter().map(|path| path.display().to_string()).collect();
            format!("Step {} is done: wrote {}.\n{next}\n", self.step, wrote.join(", "))
        };
        Ok(Answer::new(common.output, json, text))
    }
}

type Done = (Vec<PathBuf>, String);

impl Files {
    fn of(settings: &Settings) -> Result<Self, Failure> {
        let config = settings.path().to_owned();
        let written =
            settings.text("key_file").ok_or_else(|| messages::rotate_without_key_file(config.display()))?;
        let key = settings.resolve(Path::new(&written));
        read_key(&key)?;
        let beside = |ending: &str| PathBuf::from(format!("{}.{ending}", key.display()));
        let accepted = accepted(settings);
        Ok(Self { config, new: beside("new"), old: beside("old"), key: key.clone(), written, accepted })
    }

    fn first(&self, with: Option<&Path>) -> Result<Done, Failure> {
        if self.old.exists() {
            return Err(messages::rotate_step_begun(self.old.display()));
        }
        let mut wrote = vec![self.config.clone()];
        match (with.map(read_key).transpose()?, self.new.exists()) {
            (Some(key), true) if read_key(&self.new)? != key => {
                return Err(messages::rotate_other_key(self.new.display()));
            }
            (_, true) => {} // This step was begun before.
            (given, false) => {
                let key = given.unwrap_or_else(ClusterKey::generate);
                self.write_key(&self.new, &(key.reveal() + "\n"))?;
                wrote.insert(0, self.new.clone());
            }
        }
        self.write_line(&format!("[\"{}.new\"]", self.written))?;
        let (new, config) = (quoted(&self.new.to_string_lossy()), quoted(&self.config.to_string_lossy()));
        let next = format!(
            "Next: let this node read its files (kill -HUP, or systemctl reload tenure). Copy {new} to each other member,\n\
             and do step 1 there with --with. When all have read their files: tenure key rotate --step 2 -c {config}"
        );
        Ok((wrote, next))
    }

    fn second(&self) -> Result<Done, Failure> {
        if self.new.exists() {
            read_key(&self.new)?;
            self.check_first_is_done()?;
            // Interrupted after the first rename, there would be no key; so the old one is copied,
            // and then overwritten at once.
            if !self.old.exists() {
                let text = fs::read_to_string(&self.key).map_err(|error| wrong(&self.key, &error))?;
                self.write_key(&self.old, &text)?;
            }
            fs::rename(&self.new, &self.key).map_err(|error| wrong(&self.key, &error))?;
        } else if !self.old.exists() {
            return Err(messages::rotate_not_begun(self.new.display()));
        }
        self.write_line(&format!("[\"{}.old\"]", self.written))?;
        let config = quoted(&self.config.to_string_lossy());
        let next = format!(
            "Next: let this node read its files (kill -HUP, or systemctl reload tenure), and do step 2 for the other members. Copy the\n\
             new key to where the operator keeps it, derive new keys for those that are no members, and when nobody needs the old one:\n\
             tenure key rotate --step 3 -c {config}"
        );
        Ok((vec![self.key.clone(), self.old.clone(), self.config.clone()], next))
    }

    /// Step 2 would cut a member off from the others that does not understand the new key yet.
    fn check_first_is_done(&self) -> Result<(), Failure> {
        let new = format!("{}.new", self.written);
        if self.accepted.contains(&new) {
            return Ok(());
        }
        Err(messages::rotate_step_incomplete(self.new.display(), self.config.display()))
    }

    /// Writes a key beside the present one: for the same user, with the same mode.
    fn write_key(&self, path: &Path, text: &str) -> Result<(), Failure> {
        write_file(path, text, 0o600)?;
        let file = fs::File::open(path).map_err(|error| wrong(path, &error))?;
        let kept = keep(&file, &self.key);
        if kept.is_err() {
            let _ = fs::remove_file(path); // The node could not read it.
        }
        kept.map_err(|error| wrong(path, &error))
    }

    fn third(&self) -> Result<Done, Failure> {
        if self.new.exists() {
            return Err(messages::rotate_step_early(self.new.display()));
        }
        self.write_line("[]")?;
        if let Err(error) = fs::remove_file(&self.old)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(wrong(&self.old, &error));
        }
        let next =
            "Next: let this node read its files (kill -HUP, or systemctl reload tenure), and do step 3 for the other members."
                .to_owned();
        Ok((vec![self.config.clone()], next))
    }

    /// Writes the one line of the configuration that this changes, and nothing else: the rest is
    /// its owner's.
    fn write_line(&self, value: &str) -> Result<(), Failure> {
        let text = fs::read_to_string(&self.config).map_err(|error| wrong(&self.config, &error))?;
        let mut found = 0;
        let lines = text.lines().map(|line| match line.split_once('=') {
            Some((key, rest)) if key.trim() == "old_key_files" => {
                found += 1;
                let comment =
                    rest.split_once('#').map(|(_, comment)| format!(" #{comment}")).unwrap_or_default();
                format!("old_key_files = {value}{comment}")
            }
            _ => line.to_owned(),
        });
        let changed = lines.collect::<Vec<_>>().join("\n") + "\n";
        if found != 1 {
            return Err(messages::rotate_line_missing(self.config.display(), value));
        }
        // Whatever the line was part of: the file must say afterwards what it should.
        let says = accepted(&Settings::read(&self.config, changed.clone())?);
        if format!("{says:?}") != value {
            return Err(messages::rotate_line_unclear(self.config.display(), value));
        }
        replace(&self.config, &changed)
    }
}

/// The keys that a configuration accepts beside the one that it speaks.
fn accepted(settings: &Settings) -> Vec<String> {
    let list = settings.get("old_key_files").and_then(|value| value.as_array()).cloned();
    list.unwrap_or_default().iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
}

/// Gives a file the owner, the group and the mode of another. Root may edit the files of a service:
/// its user must be able to read them afterwards.
fn keep(file: &fs::File, like: &Path) -> std::io::Result<()> {
    let (about, wanted) = (file.metadata()?, fs::metadata(like)?);
    if (about.uid(), about.gid()) != (wanted.uid(), wanted.gid()) {
        fchown(file, Some(wanted.uid()), Some(wanted.gid()))?;
    }
    file.set_permissions(wanted.permissions())
}

/// Replaces a file in one step, with its owner and mode.
fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let draft = path.with_extension("toml.draft");
    let write = || {
        let mut file = fs::File::create(&draft)?;
        keep(&file, path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, path)
    };
    write().map_err(|error| wrong(path, &error))
}

fn read_key(path: &Path) -> Result<ClusterKey, Failure> {
    let text = fs::read_to_string(path).map_err(|error| wrong(path, &error))?;
    text.trim().parse().map_err(|flaw: tenure::KeyError| messages::key_file_malformed(path.display(), flaw))
}

fn wrong(path: &Path, error: &std::io::Error) -> Failure {
    messages::rotate_file_refused(path.display(), error)
}
