//! The page of `/dev/vmclock0`: the host of a virtual machine tells its guest about clocks.
//!
//! Its layout is public (Linux, `include/uapi/linux/vmclock-abi.h`), all of it little-endian:
//!
//! | bytes | holds |
//! |---|---|
//! | 0..4 | the magic number, "VCLK" |
//! | 8..10 | the version of the layout, 1 |
//! | 12..16 | a sequence count: odd while the host writes |
//! | 16..24 | the *disruption marker*: another value once the guest's clocks were disrupted, for example by a live migration |
//! | 24..32 | flags; bit 8 says that there is a generation counter |
//! | 104..112 | the *generation counter*: another value once the guest was restored from a snapshot |
//!
//! The guest never writes here. Of the values nothing is known but whether they are what they were.
//!
//! Linux tells programs nothing else: the generation id of older hosts (vmgenid) goes to the
//! kernel's own generator alone.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::sys::map::View;

/// Where Linux shows the page.
pub const VMCLOCK: &str = "/dev/vmclock0";

/// Whether the host of this virtual machine tells by the page at `path` when it disrupts the
/// clocks: for those who look for faults. An error says why a page that is there cannot be read.
pub fn tells_disruptions(path: &Path) -> io::Result<bool> {
    VmClock::open(path).map(|page| page.is_some())
}

const WORDS: usize = 14;
const MAGIC: u32 = u32::from_le_bytes(*b"VCLK");
const VERSION: u64 = 1;
const HAS_GENERATION: u64 = 1 << 8;

/// Positions of 64-bit words.
const FIRST: usize = 0;
const COUNT: usize = 1;
const DISRUPTION: usize = 2;
const FLAGS: usize = 3;
const GENERATION: usize = 13;

/// How often the page is read until the host does not write meanwhile.
const TRIES: usize = 1000;

/// The page.
#[derive(Debug)]
pub(crate) struct VmClock {
    view: View,
    has_generation: bool,
}

/// A marker that changes when the clocks were disrupted. Only equality means anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    disruption: u64,
    generation: u64,
}

impl Marker {
    /// As one number, for a file.
    pub(crate) fn as_number(self) -> u128 {
        u128::from(self.disruption) << 64 | u128::from(self.generation)
    }
}

impl VmClock {
    /// Opens the page; `None` if there is none.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let view = View::new(&file, WORDS)?;
        let word = |at| u64::from_le(view.load(at));
        let (magic, version) = (word(FIRST) & 0xffff_ffff, word(COUNT) & 0xffff);
        if magic != u64::from(MAGIC) || version != VERSION {
            let what =
                format!("it is no page of a virtual machine's clock, or of another version ({version})");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let has_generation = word(FLAGS) & HAS_GENERATION != 0;
        Ok(Some(Self { view, has_generation }))
    }

    /// Whether the page was taken away.
    pub(crate) fn is_lost(&self) -> bool {
        self.view.is_lost()
    }

    /// Whether the host says now what it said then, and does not write at this instant.
    #[inline]
    pub(crate) fn still_says(&self, marker: Marker) -> bool {
        let writes = self.count() & 1 != 0;
        !writes && self.load() == marker && !self.is_lost()
    }

    /// The host's marker when it does not write. A host that never stops writing is believed as it
    /// is: a caller that asks whether it [still says](Self::still_says) so is refused until it has
    /// stopped.
    pub(crate) fn settled(&self) -> Marker {
        for _ in 0..TRIES {
            let before = self.count();
            let marker = self.load();
            if before & 1 == 0 && before == self.count() {
                return marker;
            }
            std::thread::yield_now();
        }
        self.load()
    }

    #[inline]
    fn count(&self) -> u64 {
        u64::from_le(self.view.load(COUNT)) >> 32
    }

    #[inline]
    fn load(&self) -> Marker {
        let disruption = self.view.load(DISRUPTION);
        let generation = if self.has_generation { self.view.load(GENERATION) } else { 0 };
        Marker { disruption, generation }
    }
}

/// A page of our own with the public layout, for tests.
#[cfg(test)]
pub(crate) mod page {
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::path::{Path, PathBuf};

    pub(crate) struct Page {
        file: File,
        dir: tempfile::TempDir,
    }

    impl Page {
        pub(crate) fn new(disruption: u64) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let options = &mut File::options();
            let file = options
                .create(true)
                .truncate(true)
                .read(true)
                .write(true)
                .open(dir.path().join("vmclock"))
                .unwrap();
            let mut bytes = [0; 4096];
            bytes[0..4].copy_from_slice(b"VCLK");
            bytes[4..8].copy_from_slice(&4096u32.to_le_bytes());
            bytes[8..10].copy_from_slice(&1u16.to_le_bytes());
            bytes[24..32].copy_from_slice(&(1u64 << 8).to_le_bytes());
            file.write_all_at(&bytes, 0).unwrap();
            let page = Self { file, dir };
            page.disrupt(disruption);
            page
        }

        pub(crate) fn path(&self) -> PathBuf {
            self.dir.path().join("vmclock")
        }

        pub(crate) fn folder(&self) -> &Path {
            self.dir.path()
        }

        pub(crate) fn disrupt(&self, marker: u64) {
            self.file.write_all_at(&marker.to_le_bytes(), 16).unwrap();
        }

        pub(crate) fn restore(&self, generation: u64) {
            self.file.write_all_at(&generation.to_le_bytes(), 104).unwrap();
        }

        pub(crate) fn count(&self, count: u32) {
            self.file.write_all_at(&count.to_le_bytes(), 12).unwrap();
        }

        pub(crate) fn cut(&self) {
            self.file.set_len(0).unwrap();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::page::Page;
    use super::*;

    #[test]
    fn a_page_that_stays_as_it_is_says_the_same() {
        let page = Page::new(7);
        let clock = VmClock::open(&page.path()).unwrap().expect("it is there");
        let marker = clock.settled();
        assert!(clock.still_says(marker));
        page.count(2);
        assert!(clock.still_says(marker), "the host adjusts its clock now and then");
    }

    #[test]
    fn a_disruption_a_restored_snapshot_and_a_host_that_writes_are_seen() {
        let page = Page::new(7);
        let clock = VmClock::open(&page.path()).unwrap().expect("it is there");
        let marker = clock.settled();
        page.disrupt(8);
        assert!(!clock.still_says(marker));
        page.disrupt(7);
        assert!(clock.still_says(marker));
        page.restore(1);
        assert!(!clock.still_says(marker));
        page.restore(0);
        page.count(3);
        assert!(!clock.still_says(marker), "what the host is about to say is not known");
    }

    #[test]
    fn a_page_that_is_taken_away_says_nothing_and_ends_nobody() {
        let page = Page::new(0);
        let clock = VmClock::open(&page.path()).unwrap().expect("it is there");
        let marker = clock.settled();
        page.cut();
        assert!(!clock.still_says(marker) && clock.is_lost());
    }

    #[test]
    fn what_is_not_there_is_none_and_what_is_no_page_is_an_error() {
        let page = Page::new(1);
        assert!(VmClock::open(&page.folder().join("nothing")).unwrap().is_none());
        std::fs::write(page.folder().join("other"), [1; 4096]).unwrap();
        assert!(VmClock::open(&page.folder().join("other")).is_err());
        std::fs::write(page.folder().join("short"), b"VCLK").unwrap();
        assert!(VmClock::open(&page.folder().join("short")).is_err());
    }
}
