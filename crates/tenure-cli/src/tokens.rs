//! Bearer tokens of the HTTP interface: what they look like, which role they carry, and the file
//! that lists them.
//!
//! A token is drawn once and shown once. Daemons keep its SHA-256 and never the token itself, so
//! that a copy of their file opens nothing. A line of the file is one token:
//!
//! ```text
//! # id     role    SHA-256 of the token   not after              note
//! 7f3a9c21 admin   9f86d081884c7d65…      -                      for the commands of this cluster
//! 0b1c2d3e operate 2c26b46b68ffc68f…      2027-01-31T00:00:00Z   nightly job
//! ```
//!
//! To revoke a token is to remove its line: a daemon notices within a second.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::clock::{date, unix};

/// How every token begins: scanners for leaked secrets find it by this.
const PREFIX: &str = "tenure-token-1:";

/// The most characters of a note.
const LONGEST_NOTE: usize = 64;

/// The rights of a token. Each role may do all that the ones before it may.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// Ask: status, leader, metrics, probes
    Read,
    /// Ask leaders for something: resign, transfer, proclaim
    Operate,
    /// Change the cluster: members, tokens
    Admin,
}

impl Role {
    /// As it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }
}

impl FromStr for Role {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Read, Self::Operate, Self::Admin]
            .into_iter()
            .find(|role| role.name() == text)
            .ok_or_else(|| format!("'{text}' is no role: there are read, operate and admin"))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A token as its owner has it. `Debug` does not show the secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token {
    text: String,
}

impl Token {
    /// A new one.
    pub(crate) fn draw() -> Self {
        let (id, secret) = (hex(&random::<4>()), hex(&random::<32>()));
        Self { text: format!("{PREFIX}{id}:{secret}") }
    }

    /// From its text; `None` if that is no token.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once(':')?;
        (is_hex(id, 8) && is_hex(secret, 64)).then(|| Self { text: text.to_owned() })
    }

    /// The name by which it is listed, logged and revoked.
    pub(crate) fn id(&self) -> &str {
        let start = PREFIX.len();
        self.text.get(start..start + 8).unwrap_or_default()
    }

    /// The text of a request after `Bearer`.
    pub(crate) fn reveal(&self) -> &str {
        &self.text
    }

    /// The hash that a daemon keeps of it.
    pub(crate) fn hash(&self) -> Hash {
        Hash::of(&self.text)
    }

    /// A line for a daemon's list.
    pub(crate) fn listed(&self, role: Role, not_after: Option<u64>, note: &str) -> Listed {
        Listed { id: self.id().to_owned(), role, hash: self.hash(), not_after, note: tidy(note) }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Token").field(&self.id()).finish()
    }
}

/// The SHA-256 of a secret. Compared in a time that tells nothing of where two differ.
#[derive(Clone, Copy)]
pub(crate) struct Hash([u8; 32]);

impl Hash {
    /// Of a secret.
    pub(crate) fn of(secret: &str) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, secret.as_bytes()).as_ref());
        Self(bytes)
    }
}

impl PartialEq for Hash {
    fn eq(&self, other: &Self) -> bool {
        verify_slices_are_equal(&self.0, &other.0).is_ok()
    }
}

impl Eq for Hash {}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash")
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl FromStr for Hash {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "a SHA-256 has 64 digits of 0-9 and a-f".to_owned();
        if !is_hex(text, 64) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

/// A token as a daemon knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Its name.
    pub(crate) id: String,
    /// Its use.
    pub(crate) role: Role,
    /// By which it is recognised.
    pub(crate) hash: Hash,
    /// In seconds since 1970; `None` if it does not expire.
    pub(crate) not_after: Option<u64>,
    /// For people.
    pub(crate) note: String,
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = self.not_after.map_or_else(|| "-".to_owned(), date);
        let line = format!("{} {:<7} {} {until:<20} {}", self.id, self.role, self.hash, self.note);
        f.write_str(line.trim_end())
    }
}

impl FromStr for Listed {
    type Err = String;
    fn from_str(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let mut next = |what: &str| words.next().ok_or_else(|| format!("{what} is missing"));
        let id = id(next("the id")?)?;
        let role = next("the role")?.parse()?;
        let hash = next("the SHA-256")?.parse()?;
        let not_after = match next("'-' or the time after which it is over")? {
            "-" => None,
            text => Some(unix(text).ok_or_else(|| {
                format!("'{text}' is no time: write it as 2027-01-31T00:00:00Z, or - for none")
            })?),
        };
        let note = words.collect::<Vec<_>>().join(" ");
        Ok(Self { id, role, hash, not_after, note: tidy(&note) })
    }
}

/// The id of a token, if it is one.
pub(crate) fn id(text: &str) -> Result<String, String> {
    match is_hex(text, 8) {
        true => Ok(text.to_owned()),
        false => Err(format!("'{text}' is no id of a token: it has 8 digits of 0-9 and a-f")),
    }
}

/// The tokens of a daemon, as they are in its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct List(pub(crate) Vec<Listed>);

impl List {
    /// From the text of a file. The error names the line.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut list = Self::default();
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            let wrong = |what: &dyn fmt::Display| format!("line {}: {what}", number + 1);
            let listed: Listed = line.parse().map_err(|error: String| wrong(&error))?;
            if list.find(&listed.id).is_some() {
                return Err(wrong(&format_args!("the id {} is there twice", listed.id)));
            }
            list.0.push(listed);
        }
        Ok(list)
    }

    /// By its id.
    pub(crate) fn find(&self, id: &str) -> Option<&Listed> {
        self.0.iter().find(|listed| listed.id == id)
    }

    /// As a file has it.
    pub(crate) fn file(&self) -> String {
        let mut text = "# Bearer tokens that this daemon accepts: id, role (read, operate, admin), SHA-256, not after,\n\
                        # note. Change it with `tenure token`; a removed line is a revoked token, within a second.\n"
            .to_owned();
        for listed in &self.0 {
            let _ = writeln!(text, "{listed}");
        }
        text
    }
}

/// A note without what would break a line or a terminal.
fn tidy(note: &str) -> String {
    let plain = note.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain
        .collect::<String>()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(LONGEST_NOTE)
        .collect()
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let mut drawn = 0;
    while drawn < N {
        match rustix::rand::getrandom(&mut bytes[drawn..], rustix::rand::GetRandomFlags::empty()) {
            Ok(more) => drawn += more,
            Err(rustix::io::Errno::INTR) => {}
            // Rather no process than one that can be predicted.
            Err(_) => std::process::abort(),
        }
    }
    bytes
}

/// Bytes as text.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_recognised_by_its_hash_and_no_other_is() {
        let (one, other) = (Token::draw(), Token::draw());
        let listed = one.listed(Role::Operate, None, "");
        assert!(listed.hash == one.hash() && listed.hash != other.hash());
        assert_eq!(Token::parse(one.reveal()), Some(one.clone()));
        assert!(!format!("{one:?}").contains(&one.reveal()[30..]), "the secret is not shown");
        for wrong in ["", "let-me-in", "tenure-token-1:abc:def", "tenure-token-2:00000000:00"] {
            assert_eq!(Token::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_list_is_read_back_as_it_was_written() {
        let tokens = [Token::draw(), Token::draw()];
        let list = List(vec![
            tokens[0].listed(Role::Admin, None, "for the commands\nof this \u{1b}[2Jcluster"),
            tokens[1].listed(Role::Read, Some(1_800_000_000), ""),
        ]);
        assert_eq!(List::parse(&list.file()), Ok(list.clone()));
        assert_eq!(list.0[0].note, "for the commands of this [2Jcluster");
        assert!(!list.file().contains(&tokens[0].reveal()[24..]), "only the hash is kept");
    }

    #[test]
    fn a_wrong_line_is_named() {
        let line = Token::draw().listed(Role::Read, None, "").to_string();
        for (text, what) in [
            ("abc", "line 1: 'abc' is no id"),
            ("\n0000000a", "line 2: the role is missing"),
            ("0000000a root", "'root' is no role"),
            ("0000000a read 00 -", "64 digits"),
            (&format!("{line}\n{line}"), "line 2: the id"),
            (&line.replace(" -", " tomorrow"), "'tomorrow' is no time"),
        ] {
            let error = List::parse(text).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn each_role_may_do_what_the_ones_before_it_may() {
        assert!(Role::Read < Role::Operate && Role::Operate < Role::Admin);
        for role in [Role::Read, Role::Operate, Role::Admin] {
            assert_eq!(role.name().parse(), Ok(role));
        }
    }
}
