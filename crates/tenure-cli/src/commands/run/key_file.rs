//! The file of the runner's key: read again when it changes, so that a rotation or a new key needs
//! no restart.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tenure::Key;

use crate::arguments::Common;
use crate::failure::{Failure, messages};
use crate::settings::Settings;

/// Tells one content of a file from another, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    file: u64,
    size: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let about = fs::metadata(path).ok()?;
        let changed = (about.ctime(), about.ctime_nsec());
        Some(Self { file: about.ino(), size: about.size(), changed })
    }
}

/// Where the key comes from.
#[derive(Debug)]
pub(super) struct KeyFile {
    common: Common,
    /// As the configuration has it: relative to the folder of that file.
    written: PathBuf,
    path: PathBuf,
    seen: Option<Stamp>,
}

impl KeyFile {
    /// The one that the configuration names; `None` where the key stands elsewhere.
    pub(super) fn of(settings: &Settings, common: &Common) -> Option<Self> {
        let written = PathBuf::from(settings.text("key_file")?);
        let path = settings.resolve(&written);
        let seen = Stamp::of(&path);
        Some(Self { common: common.clone(), written, path, seen })
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The key in the file, if the file has changed since the last look. While it is replaced it
    /// may be missing: the next look finds it.
    pub(super) fn changed(&mut self) -> Option<Result<Key, Failure>> {
        let stamp = Stamp::of(&self.path)?;
        if self.seen.replace(stamp) == Some(stamp) {
            return None;
        }
        Some(self.read())
    }

    /// Reads it as at the start, with the same checks of owner and mode.
    fn read(&self) -> Result<Key, Failure> {
        let settings = self.common.settings()?;
        let text = settings.read_secret("key_file", &self.written)?;
        text.trim()
            .parse()
            .map_err(|flaw: tenure::KeyError| messages::key_file_malformed(self.path.display(), flaw))
    }
}
