//! The little that a store asks of a disk. Tests put a failing one in its place.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::places::PLACES;

/// The file of a store.
pub(super) const FILE: &str = "store";

/// A new file before it has its name. One that is found was interrupted, and means nothing.
const NEW: &str = "store.new";

pub(super) trait Disk: Send {
    /// All of the file. Unreadable parts are zeros: that is no content, so it counts as spoilt.
    fn read(&mut self) -> io::Result<Vec<u8>>;
    /// Writes into the file; durable after the next [`Disk::sync`].
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;
    /// Returns when all that was written is on the disk.
    fn sync(&mut self) -> io::Result<()>;
    /// Puts another file in the place of this one, in one step and durably: whenever it stops, one
    /// of them is there, whole.
    fn replace(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// A real file in a real folder.
pub(super) struct Folder {
    dir: PathBuf,
    file: File,
}

impl Folder {
    /// Opens the file that is there.
    pub(super) fn open(dir: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(dir.join(FILE))?;
        Ok(Self { dir: dir.to_path_buf(), file })
    }
}

impl Disk for Folder {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.file.metadata()?.len()).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        let room = length.div_ceil(PLACES).max(1);
        for (place, bytes) in bytes.chunks_mut(room).enumerate() {
            if self.file.read_exact_at(bytes, (place * room) as u64).is_err() {
                bytes.fill(0);
            }
        }
        Ok(bytes)
    }
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }
    /// The length does not change, so the data are enough.
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file = create(&self.dir, bytes)?;
        Ok(())
    }
}

/// Writes a whole new file and gives it its name.
pub(super) fn create(dir: &Path, bytes: &[u8]) -> io::Result<File> {
    let new = dir.join(NEW);
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all_at(bytes, 0)?;
    file.sync_all()?;
    fs::rename(&new, dir.join(FILE))?;
    sync_folder(dir)?;
    Ok(file)
}

/// Makes names in a folder durable.
pub(crate) fn sync_folder(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
