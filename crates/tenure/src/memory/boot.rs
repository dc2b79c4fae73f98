//! The identity of this boot of this machine, and its clock.

use std::fs;

use tenure_proto::boot::BootId;

use super::MemoryError;

const BOOT: &str = "/proc/sys/kernel/random/boot_id";
const OFFSETS: &str = "/proc/self/timens_offsets";

/// The boot id of this process, without what [`Steady`](crate::steady::Steady) adds to it. Where it
/// cannot be known nothing can be remembered.
pub(crate) fn here() -> Result<BootId, MemoryError> {
    let unknown = |what: &'static str| MemoryError::NoBootId { what };
    let boot = fs::read_to_string(BOOT).ok().and_then(|text| boot_of(&text)).ok_or(unknown(BOOT))?;
    // The file tells of the namespace of children. They have another only if this very process has
    // asked for it.
    let namespace = |name: &str| fs::read_link(format!("/proc/self/ns/{name}")).ok();
    if namespace("time") != namespace("time_for_children") {
        return Err(unknown("/proc/self/ns/time"));
    }
    let clock_offset = match fs::read_to_string(OFFSETS) {
        Ok(text) => offset_of(&text).ok_or(unknown(OFFSETS))?,
        Err(_) => 0, // A kernel without time namespaces.
    };
    Ok(BootId { boot, clock_offset, slept: 0, marker: 0 })
}

/// The number of a boot: 32 hexadecimal digits and four hyphens.
fn boot_of(text: &str) -> Option<u128> {
    let digits: String = text.trim().chars().filter(|char| *char != '-').collect();
    let plain = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u128::from_str_radix(&digits, 16).ok().filter(|_| plain)
}

/// How far the boot clock of this time namespace is ahead, in nanoseconds: a line of its own, in
/// seconds and nanoseconds.
fn offset_of(text: &str) -> Option<i64> {
    let words = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    for line in words {
        // Linux 5.6 said the number of the clock, later kernels say its name.
        if let ["boottime" | "7", seconds, nanos] = line[..] {
            let seconds: i64 = seconds.parse().ok()?;
            return seconds.checked_mul(1_000_000_000)?.checked_add(nanos.parse().ok()?);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_id_is_read() {
        assert_eq!(boot_of("00000000-0000-0000-0000-0000000000ff\n"), Some(255));
        assert_eq!(boot_of("ff\n"), None);
        assert_eq!(boot_of(""), None);
    }

    #[test]
    fn the_offset_of_the_boot_clock_is_read() {
        let text = "monotonic           5         0\nboottime       -1000       500\n";
        assert_eq!(offset_of(text), Some(-999_999_999_500));
        assert_eq!(offset_of("monotonic 5 0\n"), None);
        assert_eq!(offset_of("boottime 99999999999 0\n"), None, "no such offset can be meant");
    }

    #[test]
    fn this_boot_has_one_id() {
        assert_eq!(here().unwrap(), here().unwrap());
    }
}
