//! The rights of a peer: everything for holders of the cluster's key, for others what their key was
//! made for.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::name::GroupName;

/// The longest scope, in bytes. It travels in every greeting.
pub const MAX_SCOPE: usize = 200;

/// The groups that a key is for: names and patterns with commas between them, such as
/// `app1/*,shared/clock`.
///
/// `*` stands for any run of characters, also for none and also across `/`: `app1/*` has `app1/a/b`
/// in it, and `*` has every group. All else stands for itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(Box<str>);

impl Scope {
    /// Reads a list of names and patterns.
    pub fn new(text: &str) -> Result<Self, ScopeError> {
        if text.len() > MAX_SCOPE {
            return Err(ScopeError::TooLong { length: text.len() });
        }
        match text.split(',').find(|pattern| !is_pattern(pattern)) {
            Some(pattern) => Err(ScopeError::Pattern { pattern: pattern.to_owned() }),
            None => Ok(Self(text.into())),
        }
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a group is in it.
    pub fn has(&self, group: &GroupName) -> bool {
        self.0.split(',').any(|pattern| matches(pattern.as_bytes(), group.as_str().as_bytes()))
    }
}

/// Characters of a group's name, and `*`.
fn is_pattern(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b':' | b'/' | b'*'))
}

/// Goes through both at once; where they part, the last `*` takes one character more.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p + 1, n));
            p += 1;
        } else if pattern.get(p) == Some(&name[n]) {
            p += 1;
            n += 1;
        } else if let Some((after, taken)) = star {
            star = Some((after, taken + 1));
            (p, n) = (after, taken + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Scope {
    type Err = ScopeError;
    fn from_str(text: &str) -> Result<Self, ScopeError> {
        Self::new(text)
    }
}

/// Why a scope was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScopeError {
    /// One of its patterns could never be the name of a group.
    #[error(
        "'{pattern}' is no pattern for groups: use letters, digits, '.', '_', '-', ':', '/' and '*', with commas \
         between patterns and no blanks"
    )]
    Pattern {
        /// The first such pattern.
        pattern: String,
    },
    /// It does not fit a greeting.
    #[error("a scope has at most {MAX_SCOPE} bytes, this one has {length}: use '*', or several keys")]
    TooLong {
        /// How long it is.
        length: usize,
    },
}

/// The rights that the key of a peer gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    /// The peer holds the cluster's key. Whether it is a member is for the epoch to say.
    Member,
    /// It may campaign for these groups, and watch them.
    Candidate(Scope),
    /// It may watch these groups.
    Observer(Scope),
    /// It may watch all groups and change the members; it never leads.
    Operator,
}

impl Rights {
    /// Whether the peer holds the cluster's own key.
    pub(crate) fn is_cluster(&self) -> bool {
        matches!(self, Self::Member)
    }

    pub(crate) fn may_campaign(&self, group: &GroupName) -> bool {
        match self {
            Self::Member => true,
            Self::Candidate(scope) => scope.has(group),
            Self::Observer(_) | Self::Operator => false,
        }
    }

    /// Whether it may lead some group.
    pub(crate) fn may_lead(&self) -> bool {
        matches!(self, Self::Member | Self::Candidate(_))
    }

    pub(crate) fn may_watch(&self, group: &GroupName) -> bool {
        match self {
            Self::Member | Self::Operator => true,
            Self::Candidate(scope) | Self::Observer(scope) => scope.has(group),
        }
    }

    /// Whether it may make requests, to any leader.
    pub(crate) fn may_operate(&self) -> bool {
        matches!(self, Self::Member | Self::Operator)
    }
}
