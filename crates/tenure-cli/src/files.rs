//! Files are written whole or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, messages};

/// Reads a text. The failure names the file.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => messages::file_no_text(path.display()),
        io::ErrorKind::NotFound => messages::file_missing(path.display()),
        _ => messages::file_unreadable(path.display(), error),
    })
}

/// Reads a file that need not be text.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => messages::file_missing(path.display()),
        _ => messages::file_unreadable(path.display(), error),
    })
}

/// Files that will be written once their contents are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outputs(Vec<PathBuf>);

impl Outputs {
    /// Checks before the work begins that each file could be written. Leaves nothing behind.
    pub(crate) fn check<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<Self, Failure> {
        let mut outputs = Self::default();
        for path in paths {
            if outputs.0.contains(path) {
                return Err(messages::outputs_collide(path.display()));
            }
            probe(path).map_err(|error| cannot_write(path, &error))?;
            outputs.0.push(path.clone());
        }
        Ok(outputs)
    }

    /// Writes them all, in the order in which they were named.
    pub(crate) fn write(self, contents: impl IntoIterator<Item = String>) -> Result<(), Failure> {
        let mut drafts = Vec::new();
        for (path, text) in self.0.iter().zip(contents) {
            drafts.push(Draft::new(path, &text).map_err(|error| cannot_write(path, &error))?);
        }
        drafts
            .into_iter()
            .zip(&self.0)
            .try_for_each(|(draft, path)| draft.publish().map_err(|error| cannot_write(path, &error)))
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    messages::file_unwritable(path.display(), error)
}

fn probe(path: &Path) -> io::Result<()> {
    match Target::of(path)? {
        Target::Device(_) => Ok(()),
        Target::File(path) => {
            let draft = draft_path(&path);
            OpenOptions::new().write(true).create_new(true).open(&draft)?;
            fs::remove_file(&draft)
        }
    }
}

/// Where text goes.
enum Target {
    /// A file of its own, that may not exist yet.
    File(PathBuf),
    /// A pipe, a terminal, `/dev/null`: it must not be replaced by a file.
    Device(PathBuf),
}

impl Target {
    fn of(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(about) if about.is_dir() => Err(io::Error::other("it is a folder")),
            Ok(about) if about.is_file() => Ok(Self::File(fs::canonicalize(path)?)), // A link stays a link.
            Ok(_) => Ok(Self::Device(path.to_owned())),
            Err(_) if path.file_name().is_none() => Err(io::Error::other("it is no name for a file")),
            Err(_) => Ok(Self::File(path.to_owned())),
        }
    }
}

/// A hidden file beside the one that is meant, so that giving it its name is one step.
fn draft_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.draft", std::process::id()))
}

/// Text on its way to a file. Dropped before it is published, it leaves nothing.
struct Draft {
    target: Target,
    /// The text that is written in place; empty for a file, which has it in its draft.
    text: String,
    published: bool,
}

impl Draft {
    fn new(path: &Path, text: &str) -> io::Result<Self> {
        let draft = match Target::of(path)? {
            Target::Device(path) => {
                Self { target: Target::Device(path), text: text.to_owned(), published: false }
            }
            Target::File(path) => Self { target: Target::File(path), text: String::new(), published: false },
        };
        if let Target::File(path) = &draft.target {
            let mut file = fs::File::create(draft_path(path))?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
        }
        Ok(draft)
    }

    fn publish(mut self) -> io::Result<()> {
        match &self.target {
            Target::File(path) => fs::rename(draft_path(path), path)?,
            Target::Device(path) => {
                match OpenOptions::new().write(true).open(path)?.write_all(self.text.as_bytes()) {
                    Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
                    _ => {} // A reader that goes away before the end is no error.
                }
            }
        }
        self.published = true;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let (Target::File(path), false) = (&self.target, self.published) {
            let _ = fs::remove_file(draft_path(path)); // Nothing more can be done about it.
        }
    }
}
