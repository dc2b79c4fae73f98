//! A folder for the socket of `tenure run`: its own, with a name that nobody can guess, gone when
//! all is over.
//!
//! It is made in the runtime folder of the user or the service (`XDG_RUNTIME_DIR`,
//! `RUNTIME_DIRECTORY`, `/run/user/UID`), where no other user can write. Where there is none, it is
//! made in the temporary directory, where others can write too: its name is drawn at random, so
//! that nobody can be there first, and what a killed runner left behind never stands in the way of
//! the next.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use tenure::ClusterId;

use crate::trust;

/// The longest path: the address of a socket has room for 107 bytes, `/socket` and the final zero
/// included.
const LONGEST: usize = 99;

/// How often a name is drawn. The first is free, unless the system's chance is broken.
const TRIES: u32 = 8;

/// A folder that is removed with this value.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// A new one that nobody else can enter.
    pub(crate) fn make() -> io::Result<Self> {
        let mut refused = io::Error::from(io::ErrorKind::NotFound);
        for place in places(|name| std::env::var_os(name), trust::caller()) {
            match make_in(&place) {
                Ok(path) => return Ok(Self(path)),
                Err(error) => refused = io::Error::new(error.kind(), format!("{}: {error}", place.display())),
            }
        }
        Err(refused)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Where to try, in this order: private folders of `user`, then those for everybody's temporary
/// files.
fn places(variable: impl Fn(&str) -> Option<OsString>, user: u32) -> Vec<PathBuf> {
    let first = |list: OsString| std::env::split_paths(&list).next();
    let runtime = [
        variable("XDG_RUNTIME_DIR").map(PathBuf::from),
        variable("RUNTIME_DIRECTORY").and_then(first), // A service may have several.
        Some(PathBuf::from(format!("/run/user/{user}"))),
    ];
    let private =
        runtime.into_iter().flatten().filter(|place| place.is_absolute() && is_private(place, user));
    private.chain([std::env::temp_dir(), PathBuf::from("/tmp")]).collect()
}

/// Whether only `user` can write there: what another user named in the environment (`sudo -E`) is
/// passed over.
fn is_private(place: &Path, user: u32) -> bool {
    fs::metadata(place).is_ok_and(|about| about.is_dir() && about.uid() == user && about.mode() & 0o022 == 0)
}

fn make_in(place: &Path) -> io::Result<PathBuf> {
    for _ in 0..TRIES {
        let chance = ClusterId::draw().to_string();
        let folder = place.join(format!("tenure-run-{}", &chance[..16]));
        if folder.as_os_str().len() > LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidFilename, "the path is too long for a socket"));
        }
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_is_the_owners_alone_has_a_name_of_its_own_and_is_removed() {
        let (one, two) = (Scratch::make().unwrap(), Scratch::make().unwrap());
        assert_ne!(one.path(), two.path());
        assert_eq!(fs::metadata(one.path()).unwrap().mode() & 0o777, 0o700);
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists());
    }

    #[test]
    fn the_runtime_folder_comes_first_if_it_is_the_users_own_and_nobody_else_can_write_there() {
        let folder = tempfile::tempdir().unwrap();
        let named = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| folder.path().into());
        let user = trust::caller();
        assert_eq!(places(named, user)[0], folder.path());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert_ne!(places(named, user)[0], folder.path());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert_ne!(places(named, user + 1)[0], folder.path(), "it is another user's");
    }

    #[test]
    fn a_place_whose_path_is_too_long_for_a_socket_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("x".repeat(80));
        fs::create_dir(&long).unwrap();
        assert!(make_in(&long).is_err());
        assert_eq!(fs::read_dir(&long).unwrap().count(), 0);
    }
}
