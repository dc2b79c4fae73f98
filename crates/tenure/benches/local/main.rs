//! Local leadership between real processes, measured as Fetzer and Cristian measured theirs (IEEE TSE, 1999).
//!
//! | file | measures |
//! |---|---|
//! | `holes` | how late this machine wakes a thread, and how long a datagram takes: δ and σ are chosen from that |
//! | `rounds` | from asking to leading, for 1 to 8 processes, and for 8 along a tree (figures 25, 26 and 29) |
//! | `splits` | from a split to the first request without outsiders, and to a leader (figure 27): cut by nftables between network namespaces, and by delay beyond Δ |
//! | `member` | one process of it: this program starts itself |
//!
//! `cargo xtask bench local` runs all; `rounds [COUNT]` and `splits [COUNT]` one of them, with another number than 5000 and 500.
//! What needs root (namespaces) is left out without it, and that is said. Nothing here fails because a machine is slow.

mod holes;
mod member;
#[path = "../../tests/support/net.rs"]
#[allow(dead_code, reason = "the torture of the command uses all of it")]
mod net;
#[path = "../guard/numbers.rs"]
#[allow(dead_code, reason = "the other benchmark uses all of it")]
mod numbers;
#[path = "../../tests/support/proxy.rs"]
mod proxy;
mod rounds;
mod splits;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let count = |word: &str| word.parse::<usize>().ok().filter(|count| *count > 0);
    let (rounds, splits) = match words.as_slice() {
        [member::MEMBER, rest @ ..] => {
            member::run(rest);
            return ExitCode::SUCCESS;
        }
        [] => (Some(5000), Some(500)),
        ["rounds"] => (Some(5000), None),
        ["rounds", number] if count(number).is_some() => (count(number), None),
        ["splits"] => (None, Some(500)),
        ["splits", number] if count(number).is_some() => (None, count(number)),
        _ => {
            eprintln!(
                "local: not understood: {arguments:?}. Say rounds [COUNT] or splits [COUNT], or nothing for both"
            );
            return ExitCode::from(2);
        }
    };
    let assumed = holes::measure();
    if let Some(count) = rounds {
        rounds::run(count, &assumed);
    }
    if let Some(count) = splits {
        splits::run(count, &assumed);
    }
    ExitCode::SUCCESS
}
