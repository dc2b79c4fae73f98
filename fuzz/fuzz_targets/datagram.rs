//! Any bytes as a datagram: reading them never panics, and what is understood can be said again.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tenure::fuzzing::datagram(bytes);
});
