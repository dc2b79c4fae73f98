//! Random bytes from the kernel.
//!
//! The cipher library has a generator of its own. It keeps 128 KiB for each process and measures
//! the jitter of the processor at the start. The kernel's costs no memory, and it does not repeat
//! itself in a forked child or in a virtual machine that was restored.

#![allow(unsafe_code, reason = "the standard library draws no random bytes")]

use std::io;

/// Fills `bytes`. Waits if the kernel has not gathered enough chance since boot.
pub(crate) fn fill(mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        // SAFETY: the kernel writes at most so many bytes to where they are.
        let drawn = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        match usize::try_from(drawn) {
            Ok(drawn) => bytes = &mut bytes[drawn..],
            Err(_) => {
                let error = io::Error::last_os_error();
                // A signal came while the kernel waited.
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_long_request_is_drawn() {
        // More than the kernel gives without looking at signals in between.
        let mut bytes = vec![0; 4096];
        fill(&mut bytes).unwrap();
        assert!(bytes.chunks(64).all(|part| part.iter().any(|byte| *byte != 0)));
    }

    #[test]
    fn nothing_is_drawn_for_an_empty_request() {
        fill(&mut []).unwrap();
    }
}
