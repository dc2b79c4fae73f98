//! Where a memory lies, and whether nobody else can touch it.
//!
//! A memory that another user can write is worse than none: it could be rolled back to before a
//! grant, and the next life would believe it. So it lies in a folder that only its owner can write,
//! and both are verified on the opened descriptors, not on paths: the folder's owner and mode; the
//! file's kind, owner, mode and number of links. Anything else is an error, which means silence
//! after a restart, never belief.
//!
//! | place, the first that there is | made by |
//! |---|---|
//! | the folder that is configured | the operator |
//! | the first of `$RUNTIME_DIRECTORY` | systemd, for the service alone |
//! | `/run/tenure` | the package |
//! | `tenure` in `$XDG_RUNTIME_DIR` | this module, in the folder of the user's session |
//! | `tenure-UID` in `/dev/shm` | this module |
//!
//! In a folder that all users share (world-writable and sticky, as `/dev/shm` is) the memory lies
//! in a folder `tenure-UID`, which this module makes for its owner alone (mode 0700).

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::MemoryError;
use crate::sys::{at, map};

const SHARED: &str = "/dev/shm";

/// Permission bits.
const STICKY: u32 = 0o1000;
const WRITE_BY_OTHERS: u32 = 0o022;
const ANY_BY_OTHERS: u32 = 0o077;

/// The folder in which memories of this user lie, given what is configured. It is made if it is
/// this module's to make, and verified as a node does before it trusts a memory there.
pub fn memory_folder(configured: Option<&Path>) -> Result<PathBuf, MemoryError> {
    let folder = choose(configured, |name| std::env::var_os(name));
    open_folder(&folder, &folder).map(|_| folder)
}

/// The folder, made if need be. Not verified yet.
pub(super) fn choose(
    configured: Option<&Path>,
    variable: impl Fn(&str) -> Option<std::ffi::OsString>,
) -> PathBuf {
    if let Some(folder) = configured {
        return own_part(folder);
    }
    let absolute = |path: PathBuf| Some(path).filter(|path| path.is_absolute());
    let service =
        variable("RUNTIME_DIRECTORY").and_then(|list| std::env::split_paths(&list).next()).and_then(absolute);
    let session = variable("XDG_RUNTIME_DIR").map(PathBuf::from).and_then(absolute);
    let session = session.filter(|folder| is_private(folder)).map(|folder| made(folder.join("tenure")));
    let places = [service, Some(PathBuf::from("/run/tenure")), session];
    let found = places.into_iter().flatten().find(|folder| is_private(folder));
    found.unwrap_or_else(|| own_part(Path::new(SHARED)))
}

/// In a folder that all users share, this user's own part of it.
fn own_part(folder: &Path) -> PathBuf {
    let shared = |found: Metadata| found.mode() & WRITE_BY_OTHERS != 0 && found.mode() & STICKY != 0;
    match folder.metadata().is_ok_and(shared) {
        true => made(folder.join(format!("tenure-{}", at::user()))),
        false => folder.to_owned(),
    }
}

/// Makes a folder for this user alone. If it cannot be made, to open it says why.
fn made(folder: PathBuf) -> PathBuf {
    let _ = DirBuilder::new().mode(0o700).create(&folder);
    folder
}

/// Whether a folder could hold a memory.
fn is_private(folder: &Path) -> bool {
    open_folder(folder, folder).is_ok()
}

/// Opens a folder for the memory at `path`, if it is in memory and nobody else can write in it.
fn open_folder(folder: &Path, path: &Path) -> Result<File, MemoryError> {
    let here = || path.to_path_buf();
    let failed = |source| MemoryError::Io { path: here(), source };
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(folder);
    let opened = opened.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => MemoryError::NoFolder { path: here() },
        _ => failed(error),
    })?;
    if !map::is_in_memory(&opened).map_err(failed)? {
        return Err(MemoryError::NotInMemory { path: here() });
    }
    let found = opened.metadata().map_err(failed)?;
    let distrust = |why| MemoryError::NotPrivate { path: folder.to_path_buf(), why };
    if found.uid() != at::user() {
        return Err(distrust("the folder belongs to another user"));
    }
    if found.mode() & WRITE_BY_OTHERS != 0 {
        return Err(distrust("other users can write in the folder"));
    }
    Ok(opened)
}

/// Opens the file of a memory, or makes it.
pub(super) fn open(path: &Path) -> Result<File, MemoryError> {
    let failed = |source| MemoryError::Io { path: path.to_path_buf(), source };
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let name = path.file_name().and_then(OsStr::to_str);
    let name = name.ok_or_else(|| failed(io::Error::from(io::ErrorKind::InvalidFilename)))?;
    let opened = open_folder(folder, path)?;
    let file = at::open_own(&opened, name).map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => MemoryError::NotPrivate { path: path.to_path_buf(), why: "it is a link" },
        _ => failed(error),
    })?;
    verify(&file, path)?;
    Ok(file)
}

/// Whether an opened file is a file that its owner alone can reach, by this name alone.
pub(super) fn verify(file: &File, path: &Path) -> Result<(), MemoryError> {
    let failed = |source| MemoryError::Io { path: path.to_path_buf(), source };
    let found = file.metadata().map_err(failed)?;
    let doubts = [
        (!found.is_file(), "it is not a file"),
        (found.uid() != at::user(), "it belongs to another user"),
        (found.mode() & ANY_BY_OTHERS != 0, "other users can open it (its mode is not 0600)"),
        (found.nlink() != 1, "it has another name besides, or none"),
        (!map::is_in_memory(file).map_err(failed)?, "it is not in memory"),
    ];
    match doubts.into_iter().find(|(is_so, _)| *is_so) {
        Some((_, why)) => Err(MemoryError::NotPrivate { path: path.to_path_buf(), why }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn in_memory() -> tempfile::TempDir {
        tempfile::tempdir_in(SHARED).unwrap()
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn why(error: &MemoryError) -> &str {
        match error {
            MemoryError::NotPrivate { why, .. } => why,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn in_a_shared_folder_the_memory_lies_in_a_part_of_the_users_own() {
        let dir = in_memory();
        set_mode(dir.path(), 0o1777);
        let folder = memory_folder(Some(dir.path())).unwrap();
        assert_eq!(folder, dir.path().join(format!("tenure-{}", at::user())));
        assert_eq!(folder.metadata().unwrap().mode() & 0o7777, 0o700);
        assert_eq!(memory_folder(Some(dir.path())).unwrap(), folder, "the next start finds it");
    }

    #[test]
    fn a_folder_that_others_can_write_is_refused() {
        let dir = in_memory();
        for mode in [0o770, 0o777, 0o702] {
            set_mode(dir.path(), mode);
            assert_eq!(
                why(&memory_folder(Some(dir.path())).unwrap_err()),
                "other users can write in the folder"
            );
        }
        set_mode(dir.path(), 0o755);
        assert_eq!(memory_folder(Some(dir.path())).unwrap(), dir.path());
    }

    #[test]
    fn the_folder_of_the_service_comes_before_that_of_the_session() {
        let (service, session) = (in_memory(), in_memory());
        let of = |service: Option<&Path>, session: Option<&Path>| {
            choose(None, |name| match name {
                "RUNTIME_DIRECTORY" => service.map(|path| path.as_os_str().to_owned()),
                _ => session.map(|path| path.as_os_str().to_owned()),
            })
        };
        assert_eq!(of(Some(service.path()), Some(session.path())), service.path());
        let without = of(None, Some(session.path()));
        let package = Path::new("/run/tenure");
        assert!(without == session.path().join("tenure") || without == package, "{}", without.display());
        set_mode(service.path(), 0o777);
        let other = of(Some(service.path()), None);
        let own = Path::new(SHARED).join(format!("tenure-{}", at::user()));
        assert!(
            other == own || other == package,
            "a folder of all users is passed over: {}",
            other.display()
        );
    }

    #[test]
    fn a_file_that_others_can_open_or_that_has_two_names_is_refused() {
        let dir = in_memory();
        let path = dir.path().join("memory");
        drop(open(&path).unwrap());
        set_mode(&path, 0o640);
        assert!(why(&open(&path).unwrap_err()).contains("other users can open it"));
        set_mode(&path, 0o600);
        fs::hard_link(&path, dir.path().join("second")).unwrap();
        assert!(why(&open(&path).unwrap_err()).contains("another name"));
        fs::remove_file(dir.path().join("second")).unwrap();
        assert!(open(&path).is_ok());
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let dir = in_memory();
        let path = dir.path().join("memory");
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        assert_eq!(why(&open(&path).unwrap_err()), "it is a link");
        fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg("-m600").arg(&path).status().unwrap();
        assert!(made.success());
        assert_eq!(why(&open(&path).unwrap_err()), "it is not a file");
    }
}
