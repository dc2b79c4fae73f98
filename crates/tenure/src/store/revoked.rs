//! The file of revoked keys, beside the store. It also has the date by which keys expire.
//!
//! It is written whole, under another name, synced and renamed: whenever that is interrupted, one
//! of the two is there, whole. A missing file means that nothing was revoked yet. A damaged one is
//! refused: a member that forgot a revocation would let the key in again.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use aws_lc_rs::digest::{SHA256, digest};

use super::{StoreError, sync_folder};
use crate::codec::{Reader, Writer, read_list, write_list};
use crate::seal::{MAX_REVOKED, Revocation};

const FILE: &str = "revoked";
const NEW: &str = "revoked.new";
const MAGIC: &[u8; 16] = b"tenure-revoked-1";
const SUM: usize = 32;

/// The contents of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RevokedFile {
    /// The keys.
    pub(crate) keys: Vec<Revocation>,
    /// The date when it was written, in seconds since 1970.
    pub(crate) date: Option<u64>,
}

impl RevokedFile {
    /// Reads the file in the folder of a store.
    pub(crate) fn read(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        match fs::read(&path) {
            Ok(bytes) => {
                let what = "it is not as it was written";
                Self::from_bytes(&bytes).ok_or(StoreError::Damaged { file: path, what })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(StoreError::io("read", &path)(error)),
        }
    }

    /// Writes it, durably when this returns.
    pub(crate) fn write(&self, dir: &Path) -> io::Result<()> {
        let new = dir.join(NEW);
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&self.to_bytes())?;
        file.sync_all()?;
        fs::rename(&new, dir.join(FILE))?;
        sync_folder(dir)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut to = Writer::new();
        to.raw(MAGIC);
        to.option(self.date.as_ref(), |to, date| to.number(*date));
        write_list(&mut to, &self.keys);
        let mut bytes = to.into_bytes();
        let sum = digest(&SHA256, &bytes);
        bytes.extend_from_slice(sum.as_ref());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (content, sum) = bytes.split_at_checked(bytes.len().checked_sub(SUM)?)?;
        let mut from = Reader::new(content.strip_prefix(MAGIC)?);
        let date = from.option(Reader::number).ok()?;
        let keys = read_list(&mut from, MAX_REVOKED).ok()?;
        let whole = from.is_empty() && digest(&SHA256, content).as_ref() == sum;
        whole.then_some(Self { keys, date })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::{ClusterKey, Serial};

    fn file() -> RevokedFile {
        let root = ClusterKey::from_bytes([1; 32]).id();
        let key = |serial, not_after| Revocation::new(Serial(serial), not_after, &[root]);
        RevokedFile { keys: vec![key(1, None), key(2, Some(1_900_000_000))], date: Some(1_800_000_000) }
    }

    #[test]
    fn it_is_read_as_it_was_written_and_a_missing_one_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(RevokedFile::read(dir.path()).unwrap(), RevokedFile::default());
        file().write(dir.path()).unwrap();
        assert_eq!(RevokedFile::read(dir.path()).unwrap(), file());
        RevokedFile::default().write(dir.path()).unwrap();
        assert_eq!(RevokedFile::read(dir.path()).unwrap(), RevokedFile::default());
    }

    #[test]
    fn a_damaged_one_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let bytes = file().to_bytes();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(RevokedFile::from_bytes(&changed), None, "byte {at}");
            assert_eq!(RevokedFile::from_bytes(&bytes[..at]), None, "{at} bytes");
        }
        fs::write(dir.path().join(FILE), &bytes[..20]).unwrap();
        assert!(matches!(RevokedFile::read(dir.path()), Err(StoreError::Damaged { .. })));
    }
}
