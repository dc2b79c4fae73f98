//! Files that hold keys: whose they are, and who else can read or write them.
//!
//! A key that others can read is none, and one that others can write is theirs. So a key file is
//! refused unless it belongs to the user of this process, to root, or to the owner of the
//! configuration that names it, and nobody else can write it. A group may read it, as services
//! share secrets; everybody may not.
//!
//! A file that is no regular file (a pipe, as shells make them) has no meaningful mode, and is
//! read.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::ConfigError;
use crate::sys::at::user;

const ROOT: u32 = 0;

/// The advice about a key that others may have.
const REPLACE: &str = "`chmod 600` it, and replace the key";

/// Those whose keys a configuration may name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Secrets {
    caller: u32,
    /// The owner of the configuration, if it is a file.
    author: Option<u32>,
}

impl Secrets {
    pub(super) fn of_config(path: &Path) -> Self {
        let author = std::fs::metadata(path).ok().filter(Metadata::is_file).map(|about| about.uid());
        Self { caller: user(), author }
    }

    /// Reads a file with a key; `setting` names it. The file that was judged is the one that is
    /// read.
    pub(super) fn read(self, setting: &'static str, path: &Path) -> Result<String, ConfigError> {
        let read = |file: &mut File| {
            let mut text = String::new();
            file.read_to_string(&mut text).map(|_| text)
        };
        let shown = || path.display().to_string();
        let unread =
            |error: io::Error| ConfigError::Secret { key: setting, path: shown(), why: error.to_string() };
        let mut file = File::open(path).map_err(unread)?;
        let about = file.metadata().map_err(unread)?;
        if about.is_file()
            && let Some((flaw, remedy)) = self.flaw(about.uid(), about.mode())
        {
            return Err(ConfigError::Exposed { key: setting, path: shown(), flaw, remedy });
        }
        read(&mut file).map_err(unread)
    }

    /// The flaw in a file of this owner and mode, and what to do.
    fn flaw(self, owner: u32, mode: u32) -> Option<(String, &'static str)> {
        let shown = mode & 0o777;
        let trusted = owner == self.caller || owner == ROOT || Some(owner) == self.author;
        match () {
            () if mode & 0o022 != 0 => Some((format!("others can write it (mode {shown:03o})"), REPLACE)),
            () if mode & 0o004 != 0 => Some((format!("everybody can read it (mode {shown:03o})"), REPLACE)),
            () if !trusted => Some((
                format!("it belongs to the user {owner}, who can change it"),
                "`chown` it, or run this as that user",
            )),
            () => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::Config;

    const ME: u32 = 1000;
    const OTHER: u32 = 1001;

    #[test]
    fn a_key_belongs_to_the_caller_to_root_or_to_the_owner_of_the_configuration() {
        let flaw = |owner, author| Secrets { caller: ME, author }.flaw(owner, 0o600);
        assert_eq!((flaw(ME, None), flaw(ROOT, None), flaw(OTHER, Some(OTHER))), (None, None, None));
        for author in [None, Some(ME)] {
            assert!(flaw(OTHER, author).is_some_and(|flaw| flaw.0.contains("belongs to the user 1001")));
        }
    }

    #[test]
    fn a_key_is_read_by_its_owner_perhaps_by_a_group_and_written_by_nobody_else() {
        let flaw = |mode| Secrets { caller: ME, author: None }.flaw(ME, mode);
        assert!([0o600, 0o400, 0o640, 0o100_600].into_iter().all(|mode| flaw(mode).is_none()));
        assert!([0o644, 0o604, 0o660, 0o602, 0o666].into_iter().all(|mode| flaw(mode).is_some()));
    }

    #[test]
    fn an_embedder_is_told_of_a_key_that_everybody_can_read_and_nothing_of_the_key_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let (config, key) = (folder.path().join("tenure.toml"), folder.path().join("key"));
        let secret = crate::ClusterKey::generate().reveal();
        std::fs::write(&key, &secret).unwrap();
        for (setting, text) in [
            ("key_file", "name = \"a\"\nkey_file = \"key\"\n".to_owned()),
            ("old_key_files", format!("name = \"a\"\nkey = \"{secret}\"\nold_key_files = [\"key\"]\n")),
        ] {
            std::fs::write(&config, text).unwrap();
            std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
            let error = Config::from_path(&config).unwrap_err().to_string();
            assert!(error.contains(setting) && error.contains("everybody can read it"), "{error}");
            assert!(error.contains("chmod 600") && !error.contains(&secret), "{error}");
            std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
            assert!(Config::from_path(&config).is_ok());
        }
    }
}
