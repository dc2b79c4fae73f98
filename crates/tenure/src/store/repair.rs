//! Reading a store that nobody uses, and putting another in its place: for a repair of terms
//! (`tenure_proto::strong::epoch::repair`).
//!
//! A repaired store is one more generation of the file, written and confirmed as any other: killed
//! anywhere in between, the store is as it was or as it is to be, and the repair can be applied
//! again. Its life is one above the last that used it. So the memory of grants, which that life
//! left, is not believed by the next one ([`Boot::judge`]): the member is silent for a longest
//! lease, and no second file has to be changed for it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use tenure_proto::Incarnation;
use tenure_proto::strong::epoch::{Charter, repair};

use super::disk::{Disk, FILE};
use super::{Image, Store, StoreError, lock, open_folder};
use crate::lock::Lock;
use crate::name::{ClusterId, NodeName};
use crate::sys::at;

#[allow(unused_imports, reason = "named in the documentation above")]
use tenure_proto::boot::Boot;

/// The outcome of a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repaired {
    /// The store was replaced, durably.
    Now,
    /// It had been replaced before, by this very plan.
    Before,
}

impl Store {
    /// Reads all of a store that no process uses, and changes nothing.
    pub(crate) fn examine(
        dir: &Path,
        me: &NodeName,
        cluster: Option<ClusterId>,
    ) -> Result<Image, StoreError> {
        let lock = lock(dir)?;
        let (store, _) = Self::read_on(dir, lock, Box::new(open_folder(dir)?), me, cluster)?;
        Ok(store.image)
    }

    /// Puts a repaired store in the place of one that still is `reported`.
    pub(crate) fn repair(
        dir: &Path,
        me: &NodeName,
        reported: &[u8],
        charter: &Arc<Charter>,
    ) -> Result<Repaired, StoreError> {
        let lock = lock(dir)?;
        let disk = Box::new(open_folder(dir)?);
        check_user(&dir.join(FILE))?;
        Self::repair_on(dir, lock, disk, me, (reported, charter))
    }

    pub(super) fn repair_on(
        dir: &Path,
        lock: Lock,
        disk: Box<dyn Disk>,
        me: &NodeName,
        (reported, charter): (&[u8], &Arc<Charter>),
    ) -> Result<Repaired, StoreError> {
        let (mut store, again) = Self::read_on(dir, lock, disk, me, None)?;
        if store.image.charter().is_some_and(|here| here.lineage == charter.lineage) {
            // Perhaps only in the cache of the system.
            store.write_again(&again)?;
            return Ok(Repaired::Before);
        }
        if digest_of(&store.content()?) != reported {
            return Err(StoreError::Changed { dir: dir.to_path_buf() });
        }
        store.write_again(&again)?;
        let life = store.image.incarnation.map_or(0, |life| life.0);
        store.image.incarnation = Some(Incarnation(life + 1));
        store.image.cells = repair::applied(&store.image.cells, charter);
        store.commit()?;
        Ok(Repaired::Now)
    }
}

/// A file that another user writes anew may be one that the node cannot open any more.
fn check_user(file: &Path) -> Result<(), StoreError> {
    let found = fs::metadata(file).map_err(StoreError::io("look at", file))?;
    if found.uid() == at::user() {
        return Ok(());
    }
    let why = "it belongs to another user, so run this as the user of the node";
    Err(StoreError::io("replace", file)(io::Error::new(io::ErrorKind::PermissionDenied, why)))
}

/// Tells the content of a store from any other.
pub(crate) fn digest_of(content: &[u8]) -> Vec<u8> {
    aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, content).as_ref().to_vec()
}
