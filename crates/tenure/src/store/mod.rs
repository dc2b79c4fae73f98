//! The durable promise: the little that a node must never forget.
//!
//! Cluster, name, incarnation, the term ceiling of all groups, the newest charter, and what was
//! promised and accepted for the next one. A few hundred bytes, written as a whole each time.
//! Grants are not among them: those are remembered within one boot (`memory`), or waited out in
//! silence.
//!
//! # A missing store is refused
//!
//! It may be a first start, or a lost disk; to guess wrong either way is unsafe or useless. So a
//! store is made on purpose, by [`Store::found`] or [`Store::join`], and [`Store::open`] never
//! makes one.
//!
//! # Writing
//!
//! One file of four places; a generation is written to two of them, then synced, then confirmed
//! (`places` says what that survives). So an acquisition costs at most one sync, as many cells as
//! are waiting share it, and a confirmed generation is there twice. Where content outgrows its
//! place, a larger file is written beside the old one and renamed: that is for a larger cluster,
//! never for an acquisition.
//!
//! # Opening
//!
//! 1. The folder is locked: two processes on one store would each promise what the other does not
//!    know.
//! 2. The contents that are found may be in the cache of the system only: if the former life
//!    stopped because a sync failed, the disk has something older. So the newest generation is
//!    written once more, one place after the other, before anything older is overwritten
//!    (`places::judge`).
//! 3. The next generation has the incarnation of this life. It is on the disk before `open`
//!    returns: no two lives share one.
//!
//! # Errors
//!
//! Any failed write or sync ends the [`Writer`] for good: after a failed sync nobody knows what is
//! on the disk, and to sync again proves nothing. The next start finds out.
//!
//! The folder must be on a local disk, where locks, renames and syncs do what POSIX says.

mod disk;
mod error;
mod image;
mod places;
mod repair;
mod revoked;
#[cfg(test)]
pub(crate) mod tests;
mod writer;

use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest;
use tenure_proto::boot::{self, Boot, BootId};
pub use tenure_proto::strong::epoch::StoreId;
use tenure_proto::strong::epoch::{Body, Charter, Epoch, Lineage};
use tenure_proto::strong::{Cell, Term};
use tenure_proto::{Incarnation, NodeId};

use crate::chance;
use crate::codec::Wire;
use crate::contact::Contact;
use crate::lock::Lock;
use crate::name::{ClusterId, NodeName};
pub(crate) use disk::sync_folder;
use disk::{Disk, Folder};
pub use error::StoreError;
pub(crate) use error::advice;
pub(crate) use image::Image;
pub(crate) use repair::{Repaired, digest_of};
pub(crate) use revoked::RevokedFile;
pub(crate) use writer::{Durable, Writer};

/// The record that a founding writes: the same for every founding member but for `me`.
#[derive(Clone, Debug)]
pub(crate) struct Founding {
    /// Drawn at random, once for the cluster.
    pub cluster: ClusterId,
    /// Whose store this is.
    pub me: NodeName,
    /// All members, this one too.
    pub members: Vec<Contact>,
    /// The grantors and their bounds; afterwards only a change of epoch alters them.
    pub body: Body,
    /// No term up to this is ever granted. A cluster that is founded anew needs one above the terms
    /// of the old one, or fences that remember it refuse the new leaders.
    pub floor: Term,
}

impl Founding {
    /// The content of the store that it makes.
    pub(crate) fn image(&self) -> Result<Image, StoreError> {
        let Self { cluster, me, members, body, floor } = self;
        check_members(me, members, body)?;
        let draw = founding_draw(*cluster, body);
        let stores = members.iter().map(|member| (member.id(), founding_store(draw, &member.name))).collect();
        let charter = Charter {
            epoch: Epoch(0),
            lineage: Lineage::founding(draw),
            body: Body { stores, ..body.clone() },
            before: None,
            floor: *floor,
        };
        Ok(Image {
            cluster: *cluster,
            me: me.clone(),
            id: founding_store(draw, me),
            incarnation: None,
            cells: vec![Cell::Ceiling(*floor), Cell::Charter(Arc::new(charter))],
            contacts: members.clone(),
        })
    }
}

/// A store in use. Nobody else can open it before this is dropped.
pub(crate) struct Store {
    file: PathBuf,
    disk: Box<dyn Disk>,
    image: Image,
    /// The newest that is confirmed.
    generation: u64,
    /// How long the places of the file are.
    room: usize,
    /// On the folder rather than a file in it: that could be deleted and made anew while this one
    /// is in use.
    _lock: Lock,
}

/// The contents of a store when it was opened.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    /// Which cluster it belongs to.
    pub cluster: ClusterId,
    /// Which store this is: remembered grants belong to it alone.
    pub id: StoreId,
    /// The state on the disk before this start, for [`Boot::judge`].
    pub boot_store: boot::Store<Cell>,
    /// The incarnation of this start, durable already. [`Boot::judge`] says the same.
    pub incarnation: Incarnation,
    /// Those of whom names, and perhaps addresses, are known.
    pub contacts: Vec<Contact>,
    /// The newest charter that this node has adopted: it rules, whatever the configuration says of
    /// members, quorums and bounds. `None` for a node that joins and has not been told one. Such a
    /// node must not even campaign: without a charter it cannot know what a quorum is. See
    /// [`Store::join`].
    pub charter: Option<Arc<Charter>>,
}

impl Store {
    /// Makes the store of a founding member. Needs no silence afterwards: nothing was ever
    /// promised.
    pub(crate) fn found(dir: &Path, founding: &Founding) -> Result<(), StoreError> {
        make(dir, &founding.image()?)
    }

    /// Makes the store of a node that is to become a member of a cluster that exists. It knows whom
    /// to ask and nothing else: no charter, for a guessed one would let it count quorums that are
    /// none. The first charter that a member tells it is written like any other record, and with
    /// that it starts as a process that is no member. It grants nothing until a decided epoch names
    /// it.
    ///
    /// A charter that names another store under its name must be refused: either that store is
    /// lost, and its promises with it, or another process runs with it.
    pub(crate) fn join(
        dir: &Path,
        cluster: ClusterId,
        me: &NodeName,
        contacts: Vec<Contact>,
    ) -> Result<(), StoreError> {
        let id = draw();
        let me = me.clone();
        make(dir, &Image { cluster, me, id, incarnation: None, cells: Vec::new(), contacts })
    }

    /// Opens the store of `me` for this life: its incarnation is larger than any before, and
    /// durable, when this returns. `cluster` is what the configuration says, if it says anything.
    pub(crate) fn open(
        dir: &Path,
        me: &NodeName,
        cluster: Option<ClusterId>,
    ) -> Result<(Self, Opened), StoreError> {
        let lock = lock(dir)?;
        Self::open_on(dir, lock, Box::new(open_folder(dir)?), me, cluster)
    }

    fn open_on(
        dir: &Path,
        lock: Lock,
        disk: Box<dyn Disk>,
        me: &NodeName,
        cluster: Option<ClusterId>,
    ) -> Result<(Self, Opened), StoreError> {
        let (mut store, again) = Self::read_on(dir, lock, disk, me, cluster)?;
        let opened = Opened::from_image(&store.image);
        store.write_again(&again)?;
        store.image.incarnation = Some(opened.incarnation);
        store.commit()?;
        Ok((store, opened))
    }

    /// Reads a store and changes nothing. Returns the places that are to be written again before
    /// anything else is.
    fn read_on(
        dir: &Path,
        lock: Lock,
        mut disk: Box<dyn Disk>,
        me: &NodeName,
        cluster: Option<ClusterId>,
    ) -> Result<(Self, Vec<usize>), StoreError> {
        let file = dir.join(disk::FILE);
        let bytes = disk.read().map_err(StoreError::io("read", &file))?;
        let damaged = |what| StoreError::Damaged { file: file.clone(), what };
        let found = places::judge(&bytes).map_err(damaged)?;
        if found.format > places::FORMAT {
            return Err(StoreError::NewerFormat { file, found: found.format, known: places::FORMAT });
        }
        let image =
            Image::from_bytes(&found.content).map_err(|_| damaged("its content is not understood"))?;
        check_owner(dir, &image, me, cluster)?;
        let (generation, room) = (found.generation, found.room);
        Ok((Self { file, disk, image, generation, room, _lock: lock }, found.again))
    }

    /// Makes the image durable as the next generation. If it fails the generation is not counted:
    /// to try again would write to the same places, never over what is confirmed.
    fn commit(&mut self) -> Result<(), StoreError> {
        let content = self.content()?;
        let next = self.generation + 1;
        if !places::fits(&content, self.room) {
            let bytes = places::fresh(next, &content);
            self.disk.replace(&bytes).map_err(StoreError::io("enlarge", &self.file))?;
            self.room = places::room_for(&content);
            self.generation = next + 1;
            return Ok(());
        }
        for place in places::places_of(next) {
            self.write_place(next, place, &content)?;
        }
        self.sync()?;
        self.generation = next;
        Ok(())
    }

    /// Writes the generation that was found once more. One place at a time, and nothing else on its
    /// way to the disk meanwhile, so that the other place is not in danger.
    fn write_again(&mut self, places: &[usize]) -> Result<(), StoreError> {
        let content = self.content()?;
        self.sync()?;
        for place in places {
            self.write_place(self.generation, *place, &content)?;
            self.sync()?;
        }
        Ok(())
    }

    fn content(&self) -> Result<Vec<u8>, StoreError> {
        self.image.to_bytes().ok_or_else(|| StoreError::Unfit { file: self.file.clone() })
    }

    fn write_place(&mut self, generation: u64, place: usize, content: &[u8]) -> Result<(), StoreError> {
        let frame = places::frame(generation, place, self.room, content);
        let at = (place * self.room) as u64;
        self.disk.write(at, &frame).map_err(StoreError::io("write", &self.file))
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        self.disk.sync().map_err(StoreError::io("sync", &self.file))
    }
}

impl Opened {
    pub(crate) fn from_image(image: &Image) -> Self {
        // Which memory there is changes nothing about the number of this life.
        let nowhere = BootId { boot: 0, clock_offset: 0, slept: 0, marker: 0 };
        let boot_store = image.boot_store();
        Self {
            cluster: image.cluster,
            id: image.id,
            incarnation: Boot::judge(boot_store.clone(), None, nowhere).incarnation,
            boot_store,
            contacts: image.contacts.clone(),
            charter: image.charter().cloned(),
        }
    }
}

/// Locks the folder of a store.
fn lock(dir: &Path) -> Result<Lock, StoreError> {
    let folder = match File::open(dir) {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(StoreError::Missing { dir: dir.to_path_buf() });
        }
        Err(error) => return Err(StoreError::io("open", dir)(error)),
    };
    Lock::take(folder).map_err(|error| match error {
        TryLockError::WouldBlock => StoreError::InUse { dir: dir.to_path_buf() },
        TryLockError::Error(error) => StoreError::io("lock", dir)(error),
    })
}

/// Opens the file of a store.
fn open_folder(dir: &Path) -> Result<Folder, StoreError> {
    Folder::open(dir).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StoreError::Missing { dir: dir.to_path_buf() },
        _ => StoreError::io("open", &dir.join(disk::FILE))(error),
    })
}

/// Makes a store where there is none.
fn make(dir: &Path, image: &Image) -> Result<(), StoreError> {
    make_folder(dir).map_err(StoreError::io("make", dir))?;
    let _lock = lock(dir)?;
    let file = dir.join(disk::FILE);
    if file.try_exists().map_err(StoreError::io("look for", &file))? {
        return Err(StoreError::AlreadyThere { dir: dir.to_path_buf() });
    }
    let content = image.to_bytes().ok_or_else(|| StoreError::Unfit { file: file.clone() })?;
    disk::create(dir, &places::fresh(0, &content)).map_err(StoreError::io("make", &file))?;
    Ok(())
}

/// Makes a folder, and those above it, durably.
pub(crate) fn make_folder(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let above = match dir.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    make_folder(above)?;
    DirBuilder::new().mode(0o700).create(dir)?;
    disk::sync_folder(above)
}

fn check_members(me: &NodeName, members: &[Contact], body: &Body) -> Result<(), StoreError> {
    let refuse = |what: String| Err(StoreError::Founding { what });
    let sorted = |mut ids: Vec<NodeId>| {
        ids.sort_unstable();
        ids
    };
    if !members.iter().any(|member| member.name == *me) {
        return refuse(format!("'{me}' is not among the members: add it, or let it join later"));
    }
    let named = sorted(members.iter().map(Contact::id).collect());
    if named.windows(2).any(|two| two[0] == two[1]) {
        return refuse("two members have one name, or names of one number: rename one of them".into());
    }
    if named != sorted(body.quorums.members().to_vec()) {
        return refuse("the quorums are of other members than those named".into());
    }
    Ok(())
}

fn check_owner(
    dir: &Path,
    image: &Image,
    me: &NodeName,
    cluster: Option<ClusterId>,
) -> Result<(), StoreError> {
    let dir = dir.to_path_buf();
    match cluster {
        Some(wanted) if wanted != image.cluster => {
            return Err(StoreError::OtherCluster { dir, found: image.cluster, wanted });
        }
        _ => {}
    }
    if image.me != *me {
        return Err(StoreError::OtherNode { dir, found: image.me.clone(), wanted: me.clone() });
    }
    Ok(())
}

/// The number that names a founding: of the cluster's id, which is random, and of all that is
/// founded. Members that are founded one by one, on their own hosts, come to the same number if
/// they found the same; a member that founds something else under the same id comes to another, and
/// is a stranger to them (`tenure_proto::strong::epoch::lineage`).
pub(crate) fn founding_draw(cluster: ClusterId, body: &Body) -> u128 {
    let mut to = crate::codec::Writer::new();
    to.wide(cluster.0);
    body.write(&mut to);
    named_by(b"tenure lineage\0", &to.into_bytes())
}

/// The store of a founding member. All founders know it without having heard of each other. If a
/// store is founded a second time, after a lost disk, it has the same name and begins with its
/// first life: others notice that (`driver::kin`).
fn founding_store(lineage: u128, member: &NodeName) -> StoreId {
    let name = member.as_str().as_bytes();
    StoreId(named_by(b"tenure store\0", &[&lineage.to_be_bytes()[..], name].concat()))
}

/// 128 bits of a hash.
fn named_by(what: &[u8], bytes: &[u8]) -> u128 {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(what);
    context.update(bytes);
    let hash = context.finish();
    hash.as_ref().iter().take(16).fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// A new store has a new name.
fn draw() -> StoreId {
    StoreId(chance::wide())
}
