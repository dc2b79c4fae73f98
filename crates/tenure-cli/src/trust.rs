//! Which files are believed: by their owner, and by who else may write or read them.
//!
//! A configuration decides where a token is sent and which key is spoken, so the user who can write
//! it acts in the place of the user who runs the command. And a secret that others can read is
//! none.
//!
//! | file | belongs to | written by | read by |
//! |---|---|---|---|
//! | a configuration that was found, and its folder | the caller or root, else refused | owner only, else refused | anybody |
//! | a configuration that was named (`-c`, `TENURE_CONFIG`) | anybody, with a warning; it may name its owner's secrets only | owner only, else a warning, and it may name no secrets | anybody |
//! | a key, a token, a key of TLS | the caller or root, else refused | owner only, else refused | owner only; a group with a warning, others refused |
//!
//! A file that is no regular file (a pipe, as shells make them) has no meaningful mode, and is
//! believed.

use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::failure::{Failure, messages};

/// Root, who can do everything anyway.
const ROOT: u32 = 0;

/// Whose word counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Author {
    /// The caller's own, or root's: all that it says is believed.
    Trusted,
    /// That of another user: it may name secrets of that user only.
    Stranger(u32),
    /// Nobody knows whose: others can write the file. It may name no secrets.
    Anybody,
}

/// The permissions of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    owner: u32,
    group: u32,
    mode: u32,
    regular: bool,
}

impl Standing {
    pub(crate) fn of(about: &Metadata) -> Self {
        let regular = about.is_file() || about.is_dir();
        Self { owner: about.uid(), group: about.gid(), mode: about.mode() & 0o7777, regular }
    }

    /// Whose word a configuration is, for a process of `caller`.
    fn author(self, caller: u32) -> Author {
        match self {
            _ if !self.regular => Author::Trusted,
            _ if self.mode & 0o022 != 0 => Author::Anybody,
            Self { owner, .. } if owner == caller || owner == ROOT => Author::Trusted,
            Self { owner, .. } => Author::Stranger(owner),
        }
    }

    /// How well the file of a secret is kept that a configuration of `author` names.
    pub(crate) fn as_secret(self, author: Author, caller: u32) -> Secrecy {
        if !self.regular {
            return Secrecy::Kept;
        }
        let Self { owner, group, mode, .. } = self;
        let broken = |what: String, advice: &str| Secrecy::Broken(Flaw { what, advice: advice.to_owned() });
        match author {
            _ if mode & 0o022 != 0 => broken(
                format!("others can write it (mode {mode:03o})"),
                "`chmod 600` it, and replace the secret",
            ),
            _ if mode & 0o004 != 0 => {
                broken(format!("everybody can read it (mode {mode:03o})"), "`chmod 600` it")
            }
            Author::Anybody => broken(
                "others can write the configuration that names it".to_owned(),
                "`chmod go-w` the configuration, and look what it says",
            ),
            Author::Stranger(author) if owner != author => broken(
                format!(
                    "it belongs to {}, and the configuration that names it to {}, who could send it anywhere",
                    User(owner),
                    User(author)
                ),
                "use a configuration of your own",
            ),
            Author::Trusted if owner != caller && owner != ROOT => broken(
                format!("it belongs to {}, who can change it", User(owner)),
                "`chown` it, or run this as that user",
            ),
            // A group is how services share a secret (a volume of Kubernetes, `ssl-cert`); that of
            // root has one.
            _ if mode & 0o040 != 0 && group != ROOT => Secrecy::Shared(Flaw {
                what: format!("the group {group} can read it (mode {mode:03o})"),
                advice: "`chmod 600` it, unless that group should".to_owned(),
            }),
            _ => Secrecy::Kept,
        }
    }
}

/// How well a secret is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Secrecy {
    /// Only its owner can read it.
    Kept,
    /// A group can read it: it is used, with a warning.
    Shared(Flaw),
    /// Others can: it is refused.
    Broken(Flaw),
}

/// The flaw in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    /// In words.
    pub(crate) what: String,
    /// The advice.
    pub(crate) advice: String,
}

/// A user in a message.
struct User(u32);

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ROOT => f.write_str("root"),
            user => write!(f, "the user {user}"),
        }
    }
}

/// The user in whose name this process acts.
pub(crate) fn caller() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Reads a configuration that nobody named: it must be the caller's or root's, and so must its
/// folder.
pub(crate) fn read_found(path: &Path) -> Result<String, Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for place in [folder, path] {
        // A link is as good as where it leads, and must be the caller's too: another could have put
        // it there.
        let link = fs::symlink_metadata(place).map_err(|error| unreadable(path, &error))?;
        if link.is_symlink() && link.uid() != caller() && link.uid() != ROOT {
            return Err(distrusted(path, place, &format_args!("is a link that {} made", User(link.uid()))));
        }
    }
    let about = fs::metadata(folder).map_err(|error| unreadable(path, &error))?;
    believe(path, folder, Standing::of(&about))?;
    let (text, standing) = read(path).map_err(|error| unreadable(path, &error))?;
    believe(path, path, standing)?;
    Ok(text)
}

fn believe(path: &Path, place: &Path, standing: Standing) -> Result<(), Failure> {
    match standing.author(caller()) {
        Author::Trusted => Ok(()),
        Author::Stranger(owner) => Err(distrusted(path, place, &format_args!("belongs to {}", User(owner)))),
        Author::Anybody => {
            let mode = standing.mode;
            Err(distrusted(path, place, &format_args!("can be written by others (mode {mode:03o})")))
        }
    }
}

fn distrusted(path: &Path, place: &Path, why: &dyn fmt::Display) -> Failure {
    messages::config_distrusted(path.display(), place.display(), why)
}

/// Reads a configuration that somebody named, and says whose word it is.
pub(crate) fn read_named(path: &Path) -> Result<(String, Author), Failure> {
    let (text, standing) = read(path).map_err(|error| unreadable(path, &error))?;
    Ok((text, standing.author(caller())))
}

/// The warning about a configuration that was named, if there is one.
pub(crate) fn warning(path: &Path, author: Author) -> Option<String> {
    let path = path.display();
    match author {
        Author::Trusted => None,
        Author::Stranger(owner) => {
            Some(format!("{path} belongs to {}: it may name secrets of that user only", User(owner)))
        }
        Author::Anybody => {
            Some(format!("{path} can be written by others: it may name no secrets; `chmod go-w` it"))
        }
    }
}

/// Reads a secret of a configuration of `author`; `key` is the setting that names it. The file that
/// was judged is the file that is read.
pub(crate) fn read_secret(key: &str, path: &Path, author: Author) -> Result<String, Failure> {
    let unread = |error| messages::secret_unreadable(key, path.display(), error);
    let (text, standing) = read(path).map_err(unread)?;
    kept(key, path, standing, author)?;
    Ok(text)
}

/// Refuses a secret that is none; for those that are read elsewhere. One that is missing is told of
/// there.
pub(crate) fn check_secret(key: &str, path: &Path, author: Author) -> Result<(), Failure> {
    fs::metadata(path).map_or(Ok(()), |about| kept(key, path, Standing::of(&about), author))
}

fn kept(key: &str, path: &Path, standing: Standing, author: Author) -> Result<(), Failure> {
    match standing.as_secret(author, caller()) {
        Secrecy::Broken(Flaw { what, advice }) => {
            Err(messages::secret_exposed(key, path.display(), what, advice))
        }
        Secrecy::Kept | Secrecy::Shared(_) => Ok(()),
    }
}

fn read(path: &Path) -> io::Result<(String, Standing)> {
    let mut file = File::open(path)?;
    let standing = Standing::of(&file.metadata()?);
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok((text, standing))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    messages::config_unreadable(path.display(), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: u32 = 1_000;
    const OTHER: u32 = 1_001;

    fn file(owner: u32, mode: u32) -> Standing {
        Standing { owner, group: 50, mode, regular: true }
    }

    #[test]
    fn a_configuration_is_believed_if_it_is_the_callers_or_roots_and_nobody_else_can_write_it() {
        for owner in [ME, ROOT] {
            assert_eq!(file(owner, 0o644).author(ME), Author::Trusted);
            assert_eq!(file(owner, 0o664).author(ME), Author::Anybody);
            assert_eq!(file(owner, 0o646).author(ME), Author::Anybody);
        }
        assert_eq!(file(OTHER, 0o600).author(ME), Author::Stranger(OTHER));
        assert_eq!(file(ME, 0o600).author(ROOT), Author::Stranger(ME), "root is no exception");
    }

    #[test]
    fn a_secret_is_kept_by_its_mode_shared_with_a_group_and_refused_to_everybody() {
        let secrecy = |mode| file(ME, mode).as_secret(Author::Trusted, ME);
        assert_eq!(secrecy(0o600), Secrecy::Kept);
        assert_eq!(secrecy(0o400), Secrecy::Kept);
        assert!(matches!(secrecy(0o640), Secrecy::Shared(_)));
        for mode in [0o644, 0o604, 0o620, 0o602, 0o666] {
            assert!(matches!(secrecy(mode), Secrecy::Broken(_)), "{mode:o}");
        }
        assert_eq!(
            Standing { group: ROOT, ..file(ROOT, 0o440) }.as_secret(Author::Trusted, ME),
            Secrecy::Kept
        );
    }

    #[test]
    fn a_strangers_configuration_may_name_the_strangers_secrets_and_no_others() {
        let named = |owner, author| file(owner, 0o600).as_secret(author, ROOT);
        assert_eq!(named(OTHER, Author::Stranger(OTHER)), Secrecy::Kept);
        assert!(matches!(named(ROOT, Author::Stranger(OTHER)), Secrecy::Broken(_)));
        assert!(matches!(named(ROOT, Author::Anybody), Secrecy::Broken(_)));
        assert!(matches!(named(OTHER, Author::Trusted), Secrecy::Broken(_)));
    }

    #[test]
    fn a_pipe_has_no_mode_that_says_anything() {
        let pipe = Standing { regular: false, ..file(OTHER, 0o666) };
        assert_eq!(pipe.author(ME), Author::Trusted);
        assert_eq!(pipe.as_secret(Author::Trusted, ME), Secrecy::Kept);
    }
}
