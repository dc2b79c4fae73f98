//! Memory that was freed and that the allocator has not returned to the system.

#![allow(unsafe_code, reason = "the standard library has no word for it")]

/// Returns what is free to the system.
///
/// The allocator of glibc returns memory from the end of its heap only. A flood of groups leaves
/// long-lived records between short-lived ones, so that without this call nothing is ever returned.
/// Threads that allocate meanwhile wait: about 0.15 ms for each MB that was freed since the last
/// call.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it may be called at any time, by any thread; it moves nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    /// In bytes.
    fn resident() -> usize {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap() * 4096
    }

    #[test]
    fn memory_between_records_that_stay_is_returned() {
        const RECORDS: usize = 100_000;
        let mut records: Vec<Option<Box<[u8; 600]>>> =
            (0..RECORDS).map(|_| Some(Box::new([7; 600]))).collect();
        let full = resident();
        for (index, record) in records.iter_mut().enumerate() {
            if index % 500 != 0 {
                *record = None;
            }
        }
        give_back();
        let after = resident();
        // Other tests of this process take some meanwhile.
        assert!(after + RECORDS * 600 / 2 < full, "{full} bytes, then {after}");
        assert_eq!(records.iter().flatten().map(|record| usize::from(record[0])).sum::<usize>(), 200 * 7);
    }
}
