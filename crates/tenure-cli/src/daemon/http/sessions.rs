//! Sessions of browsers.
//!
//! A link has a one-time code in its fragment, which browsers send to nobody. The page exchanges it
//! for a session: a cookie, and a second secret that the page keeps for its own origin and sends as
//! a header with every order.
//!
//! Both are needed. The cookie alone would do for another program on this machine: browsers send
//! cookies to every port of a host, so that a page of another user's server would get it. The
//! header alone could be read by a script; the cookie cannot. A page from elsewhere can send
//! neither (`SameSite=Strict`, and no header without a preflight), which makes forged requests
//! (CSRF) fail.
//!
//! Everything here is in memory: sessions end with the daemon.

use std::time::Duration;

use crate::tokens::{Hash, hex, random};

/// How long a code can be used, once.
pub(super) const CODE_FOR: Duration = Duration::from_secs(3_600);

/// How long a session lasts.
pub(super) const SESSION_FOR: Duration = Duration::from_secs(3_600);

/// The most codes and the most sessions at a time: the oldest makes room.
const MOST: usize = 32;

/// The header by which a page proves that it is the one that opened the session.
pub(super) const PROOF: &str = "x-tenure-session";

/// Codes that wait, and sessions that are open. Times are those of the boot clock.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    codes: Vec<Code>,
    open: Vec<Session>,
}

#[derive(Debug)]
struct Code {
    hash: Hash,
    by: String,
    until: Duration,
}

#[derive(Debug)]
struct Session {
    who: String,
    cookie: Hash,
    proof: Hash,
    until: Duration,
}

/// A session that was opened: both secrets, shown once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Opened {
    pub(super) who: String,
    pub(super) cookie: String,
    pub(super) proof: String,
}

/// A session that was found by its cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// For the log.
    pub(super) who: String,
    /// Whether the proof was shown too. Without, it may only read.
    pub(super) is_proved: bool,
}

impl Sessions {
    /// A new code, for a link that `by` asked for. Twenty digits: easy to copy, and 66 bits are not
    /// guessed in an hour.
    pub(super) fn offer(&mut self, by: &str, now: Duration) -> String {
        let number = u128::from_be_bytes(random::<16>()) % 100_000_000_000_000_000_000;
        let code = format!("{number:020}");
        self.codes.retain(|code| code.until > now);
        make_room(&mut self.codes);
        self.codes.push(Code { hash: Hash::of(&code), by: by.to_owned(), until: now + CODE_FOR });
        code
    }

    /// Opens a session by a code, which is used up.
    pub(super) fn open(&mut self, code: &str, now: Duration) -> Option<Opened> {
        self.codes.retain(|code| code.until > now);
        let hash = Hash::of(code);
        let at = self.codes.iter().position(|code| code.hash == hash)?;
        let Code { by, .. } = self.codes.swap_remove(at);
        let (cookie, proof, id) = (hex(&random::<16>()), hex(&random::<16>()), hex(&random::<4>()));
        let who = format!("session:{id} ({by})");
        self.open.retain(|session| session.until > now);
        make_room(&mut self.open);
        let (until, hashes) = (now + SESSION_FOR, (Hash::of(&cookie), Hash::of(&proof)));
        self.open.push(Session { who: who.clone(), cookie: hashes.0, proof: hashes.1, until });
        Some(Opened { who, cookie, proof })
    }

    /// The session of a cookie, if it is open.
    pub(super) fn find(&self, cookie: &str, proof: Option<&str>, now: Duration) -> Option<Found> {
        let hash = Hash::of(cookie);
        let session = self.open.iter().find(|session| session.until > now && session.cookie == hash)?;
        let is_proved = proof.is_some_and(|proof| session.proof == Hash::of(proof));
        Some(Found { who: session.who.clone(), is_proved })
    }
}

fn make_room<T>(list: &mut Vec<T>) {
    if list.len() >= MOST {
        list.remove(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    #[test]
    fn a_code_opens_one_session_once() {
        let mut sessions = Sessions::default();
        let code = sessions.offer("uid:7", NOW);
        assert!(code.len() == 20 && code.bytes().all(|byte| byte.is_ascii_digit()), "{code}");
        assert_eq!(sessions.open("00000000000000000000", NOW), None);
        let opened = sessions.open(&code, NOW).unwrap();
        assert!(opened.who.ends_with("(uid:7)"), "{}", opened.who);
        assert_eq!(sessions.open(&code, NOW), None, "it is used up");
    }

    #[test]
    fn without_the_proof_of_its_page_a_cookie_proves_nothing() {
        let mut sessions = Sessions::default();
        let code = sessions.offer("uid:7", NOW);
        let Opened { cookie, proof, .. } = sessions.open(&code, NOW).unwrap();
        let proved = |proof: Option<&str>| sessions.find(&cookie, proof, NOW).unwrap().is_proved;
        assert!(proved(Some(&proof)) && !proved(None) && !proved(Some(&cookie)) && !proved(Some("")));
        assert_eq!(sessions.find(&proof, Some(&proof), NOW), None);
    }

    #[test]
    fn codes_and_sessions_end() {
        let mut sessions = Sessions::default();
        let code = sessions.offer("uid:7", NOW);
        assert_eq!(sessions.open(&code, NOW + CODE_FOR), None);
        let code = sessions.offer("uid:7", NOW);
        let Opened { cookie, proof, .. } = sessions.open(&code, NOW).unwrap();
        assert_eq!(sessions.find(&cookie, Some(&proof), NOW + SESSION_FOR), None);
    }

    #[test]
    fn there_are_never_many() {
        let mut sessions = Sessions::default();
        let codes: Vec<String> = (0..3 * MOST).map(|_| sessions.offer("x", NOW)).collect();
        assert_eq!(sessions.codes.len(), MOST);
        assert!(
            sessions.open(&codes[0], NOW).is_none() && sessions.open(&codes[3 * MOST - 1], NOW).is_some()
        );
    }
}
