//! The key: whether it can be read, and what it is.

use std::path::{Path, PathBuf};

use tenure::{CandidateKey, Key};

use super::finding::Finding;
use crate::commands::key::{expiry, today};
use crate::settings::Settings;

/// The file that the configuration names.
fn file(settings: &Settings) -> Option<PathBuf> {
    let path = settings.get("key_file")?.as_str()?;
    Some(settings.resolve(Path::new(path)))
}

/// Checks the kind of the key, and shows its short name, which is no secret.
pub(super) fn key(settings: &Settings) -> Finding {
    const CHECK: &str = "key";
    let text = match (file(settings), settings.get("key").and_then(|key| key.as_str())) {
        (Some(path), _) => match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                return Finding::bad(
                    CHECK,
                    format!("{}: {error}", path.display()),
                    "run as the daemon's user, or copy the key from another member",
                );
            }
        },
        (None, Some(key)) => key.to_owned(),
        (None, None) => {
            return Finding::bad(
                CHECK,
                "the configuration names none",
                "write key_file; `tenure init` makes one",
            );
        }
    };
    let role = settings.get("role").and_then(|role| role.as_str()).unwrap_or("member");
    let grants = matches!(role, "member" | "witness");
    match text.trim().parse::<Key>() {
        Err(error) => Finding::bad(CHECK, error.to_string(), "copy it again from a member; it is one line"),
        Ok(Key::Scoped(key)) if grants => Finding::bad(
            CHECK,
            format!("it is {}'s own, but the role is {role}", key.names()),
            "a member needs the cluster's key: copy it from another member",
        ),
        Ok(Key::Scoped(key)) => {
            let scope = key.scope().map(|scope| format!(" for {scope}")).unwrap_or_default();
            let (names, id, from) = (key.names(), key.serial(), key.made_from());
            let says = format!("{names}'s own{scope}, id {id}, made from the cluster's key {from}");
            expires(&key, today(), says)
        }
        Ok(Key::Cluster(key)) => Finding::ok(CHECK, format!("the cluster's, {}", key.id())),
    }
}

/// Whether a key is good for a while.
fn expires(key: &CandidateKey, today: u64, says: String) -> Finding {
    const CHECK: &str = "key";
    const WEEK: u64 = 7 * 86_400;
    let advice = "ask for a new one: `tenure key derive`";
    match key.expires() {
        Some(last) if last < today => {
            Finding::bad(CHECK, format!("{says}; it expired on {}", expiry(key)), advice)
        }
        Some(last) if last < today.saturating_add(WEEK) => {
            Finding::warn(CHECK, format!("{says}; it expires on {}", expiry(key)), advice)
        }
        Some(_) => Finding::ok(CHECK, format!("{says}, good until {}", expiry(key))),
        None => Finding::ok(CHECK, says),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    fn judged(text: String) -> Finding {
        key(&Settings::read(Path::new("/nowhere/tenure.toml"), text).unwrap())
    }

    #[test]
    fn a_key_is_told_by_its_kind_and_short_name() {
        let cluster = tenure::ClusterKey::generate();
        let good = judged(format!("name = \"a\"\nkey = \"{}\"\n", cluster.reveal()));
        assert_eq!(good.state, State::Ok);
        assert!(good.says.contains(&cluster.id().to_string()) && !good.says.contains(&cluster.reveal()));
    }

    #[test]
    fn a_candidates_key_is_bad_for_a_member_and_good_for_a_candidate() {
        let scope = "app1/*".parse().unwrap();
        let name = tenure::NodeName::new("app1").unwrap();
        let own = tenure::ClusterKey::generate().candidate(tenure::ClusterId::draw(), name, scope).reveal();
        assert_eq!(judged(format!("name = \"app1\"\nkey = \"{own}\"\n")).state, State::Bad);
        let good = judged(format!("name = \"app1\"\nrole = \"candidate\"\nkey = \"{own}\"\n"));
        assert!(good.state == State::Ok && good.says.contains("app1/*"), "{}", good.says);
    }

    #[test]
    fn a_key_that_expires_soon_is_told_and_an_expired_one_is_bad() {
        const DAY: u64 = 86_400;
        let claims = tenure::Claims::operator(tenure::NodeName::new("op").unwrap()).not_after(100 * DAY);
        let key = tenure::ClusterKey::generate().derive(tenure::ClusterId(1), claims);
        let state = |today: u64| expires(&key, today * DAY, String::new()).state;
        assert_eq!([50, 94, 101].map(state), [State::Ok, State::Warn, State::Bad]);
    }

    #[test]
    fn a_missing_or_broken_key_is_bad() {
        assert_eq!(judged("name = \"a\"\nkey_file = \"key\"\n".to_owned()).state, State::Bad);
        assert_eq!(judged("name = \"a\"\nkey = \"abc\"\n".to_owned()).state, State::Bad);
        assert_eq!(judged("name = \"a\"\n".to_owned()).state, State::Bad);
    }
}
