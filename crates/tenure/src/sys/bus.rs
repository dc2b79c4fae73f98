//! A mapped file that somebody cuts does not end the process.
//!
//! The kernel answers a load or store beyond the end of a file with SIGBUS, whose default ends the
//! process. A check of the length before each store would be racy, and a system call for each store
//! would slow every grant down. So one handler for the whole process knows the mappings of this
//! module: a fault in one of them puts an anonymous page of zeros in its place and notes the loss.
//! The instruction is then repeated and succeeds. The owner of the mapping asks
//! [`Watched::is_lost`] before it believes or relies on anything in it.
//!
//! A fault anywhere else goes to the handler that was installed before this one, or to the default.

#![allow(unsafe_code, reason = "a signal handler, and a mapping put over another")]

use std::io;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// A range of addresses whose faults are survived. Entries are never freed, only used again.
struct Range {
    /// Zero while nobody uses the entry.
    start: AtomicUsize,
    bytes: AtomicUsize,
    lost: AtomicBool,
    next: AtomicPtr<Range>,
}

/// The newest entry. The handler walks the list without a lock.
static NEWEST: AtomicPtr<Range> = AtomicPtr::new(ptr::null_mut());

/// The handler that was installed before ours: it gets every fault that is not in a range. Null
/// until ours is installed.
static FORMER: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// How many mappings were lost.
static LOSSES: AtomicUsize = AtomicUsize::new(0);

/// Writers of the list, and the installation of the handler, take turns.
static TURN: Mutex<()> = Mutex::new(());

/// A mapping that is watched until this is dropped.
pub(crate) struct Watched {
    range: &'static Range,
}

impl Watched {
    /// Watches `bytes` bytes from `start`, which is the start of a mapping of that length.
    pub(crate) fn new(start: NonNull<u8>, bytes: usize) -> io::Result<Self> {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        install()?;
        let range = free_entry();
        range.lost.store(false, Ordering::Relaxed);
        range.bytes.store(bytes, Ordering::Relaxed);
        range.start.store(start.as_ptr().addr(), Ordering::Release);
        Ok(Self { range })
    }

    /// Whether the file was cut: from then on this mapping is memory of this process alone.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        self.range.lost.load(Ordering::Acquire)
    }
}

impl Watched {
    /// Watches no more. To be called before the mapping goes, and once: the entry is somebody
    /// else's afterwards.
    pub(crate) fn forget(&self) {
        self.range.start.store(0, Ordering::Release);
    }
}

/// How many mappings of this process have been lost so far.
#[inline]
pub(crate) fn losses() -> usize {
    LOSSES.load(Ordering::Acquire)
}

/// An entry that nobody uses. To be called by one thread at a time.
fn free_entry() -> &'static Range {
    let newest = NEWEST.load(Ordering::Acquire);
    let mut at = newest;
    // SAFETY: entries are leaked boxes: valid forever.
    while let Some(range) = unsafe { at.as_ref() } {
        if range.start.load(Ordering::Acquire) == 0 {
            return range;
        }
        at = range.next.load(Ordering::Acquire);
    }
    let range = Box::leak(Box::new(Range {
        start: AtomicUsize::new(0),
        bytes: AtomicUsize::new(0),
        lost: AtomicBool::new(false),
        next: AtomicPtr::new(newest),
    }));
    NEWEST.store(range, Ordering::Release);
    range
}

/// Installs the handler, once. The former one is known before ours can be called.
fn install() -> io::Result<()> {
    if !FORMER.load(Ordering::Acquire).is_null() {
        return Ok(());
    }
    let mut former = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks for the present action; there is room for it.
    if unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), former.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, and all of it may be zero besides.
    let former = Box::leak(Box::new(unsafe { former.assume_init() }));
    FORMER.store(former, Ordering::Release);
    // SAFETY: all of a sigaction may be zero: no flags, an empty mask.
    let mut ours = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_fault;
    ours.sa_sigaction = handler as libc::sighandler_t;
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler touches atomics, leaked memory and system calls alone, whatever it
    // interrupts.
    if unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, ptr::null_mut()) } != 0 {
        FORMER.store(ptr::null_mut(), Ordering::Release);
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

extern "C" fn on_fault(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands over a valid siginfo to a handler that asked for one.
    let address = unsafe { (*info).si_addr() }.addr();
    // SAFETY: the location of errno of this thread, which the calls below may change.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    let survived = replace(address);
    // SAFETY: as above.
    unsafe { *errno = before };
    if !survived {
        pass_on(signal, info, context);
    }
}

/// Puts zeros in the place of the mapping in which `address` is. Says whether there is one.
fn replace(address: usize) -> bool {
    let mut at = NEWEST.load(Ordering::Acquire);
    // SAFETY: entries are leaked boxes: valid forever.
    while let Some(range) = unsafe { at.as_ref() } {
        let (start, bytes) = (range.start.load(Ordering::Acquire), range.bytes.load(Ordering::Relaxed));
        if start != 0 && (start..start + bytes).contains(&address) {
            range.lost.store(true, Ordering::Release);
            LOSSES.fetch_add(1, Ordering::Release);
            // SAFETY: the range is a mapping of ours, which its owner unmaps only after the entry
            // is given back, and which is seen through atomics alone.
            let put = unsafe {
                libc::mmap(
                    ptr::with_exposed_provenance_mut(start),
                    bytes,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                    -1,
                    0,
                )
            };
            return put != libc::MAP_FAILED;
        }
        at = range.next.load(Ordering::Acquire);
    }
    false
}

/// Does what would have happened without our handler.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: set before this handler was installed, and never freed.
    let former = unsafe { FORMER.load(Ordering::Acquire).as_ref() };
    let default = [libc::SIG_DFL, libc::SIG_IGN];
    match former.filter(|former| !default.contains(&former.sa_sigaction)) {
        None => {
            // SAFETY: all of a sigaction may be zero: the default action. The instruction is
            // repeated and ends the process.
            unsafe {
                let default = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
                libc::sigaction(signal, &raw const default, ptr::null_mut());
            }
        }
        Some(former) if former.sa_flags & libc::SA_SIGINFO != 0 => {
            type Full = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
            // SAFETY: the program that installed it said by the flag that it takes these three.
            let call = unsafe { std::mem::transmute::<libc::sighandler_t, Full>(former.sa_sigaction) };
            call(signal, info, context);
        }
        Some(former) => {
            type Plain = extern "C" fn(libc::c_int);
            // SAFETY: without the flag it takes the number alone.
            let call = unsafe { std::mem::transmute::<libc::sighandler_t, Plain>(former.sa_sigaction) };
            call(signal);
        }
    }
}
