//! The daemons: whether they answer over HTTP, are ready, and are of one version.

use std::time::Duration;

use super::finding::Finding;
use crate::api::{DoubtedTerm, Packed, Status};
use crate::commands::asked::Asked;

/// The daemons that answered.
pub(super) fn answering(asked: &[Asked]) -> Vec<String> {
    asked.iter().filter_map(|one| Some(one.status.as_ref().ok()?.name.clone())).collect()
}

/// The slowest round trip between members, as the daemons measured it.
pub(super) fn slowest_trip(asked: &[Asked]) -> Option<Duration> {
    let members = asked.iter().filter_map(|one| one.status.as_ref().ok()).flat_map(|status| &status.members);
    members.filter_map(|member| member.round_trip_us).max().map(Duration::from_micros)
}

/// One line for each daemon.
pub(super) fn ready(asked: &[Asked]) -> Vec<Finding> {
    const CHECK: &str = "daemon";
    let judge = |one: &Asked| match &one.status {
        Err(failure) => Finding::bad(
            CHECK,
            format!("{} does not answer: {failure}", one.endpoint),
            "start it with `tenure node`, or take it out of [client] endpoints",
        ),
        Ok(status) if status.not_ready.iter().any(|why| why.starts_with("split brain")) => Finding::bad(
            "lineage",
            format!("{} at {} has stopped: {}", status.name, one.endpoint, status.not_ready.join("; ")),
            "docs/guides/members.md, \"Two clusters of one id\": end one, then `tenure members accept-lineage` at the other",
        ),
        // Nothing is wrong with a node that was removed, or is not added yet.
        Ok(status) if status.role == "member" && status.epoch.is_some() && !status.is_member => {
            Finding::warn(
                CHECK,
                format!("{} at {} is no member", status.name, one.endpoint),
                "add it with `tenure members add`; or stop it, and take it out of [client] endpoints",
            )
        }
        Ok(status) if !status.ready => Finding::bad(
            CHECK,
            format!("{} at {} is not ready: {}", status.name, one.endpoint, status.not_ready.join("; ")),
            "see its log; READY comes when it reaches a quorum",
        ),
        Ok(status) => Finding::ok(CHECK, format!("{} at {} is ready", status.name, one.endpoint)),
    };
    asked.iter().map(judge).collect()
}

/// The findings about terms: none, unless they are absurdly high or packed tokens run out.
pub(super) fn terms(asked: &[Asked]) -> Vec<Finding> {
    const CHECK: &str = "terms";
    let answers = asked.iter().filter_map(|one| one.status.as_ref().ok());
    let judge = |status: &Status| {
        let text = format!("{}: {}", status.name, crate::commands::status::terms(&status.terms)?);
        let doubted = status.terms.doubted.as_ref();
        Some(match (doubted, status.terms.packed) {
            (Some(DoubtedTerm { term, .. }), _) => Finding::bad(
                CHECK,
                text,
                format!(
                    "find out who granted it; if it is right, `tenure members confirm-term {term}` there"
                ),
            ),
            (None, Packed::Exhausted) => {
                Finding::bad(CHECK, text, "fence with wide tokens, which do not end")
            }
            (None, _) => Finding::warn(CHECK, text, "move fences from packed tokens to wide ones in time"),
        })
    };
    answers.filter_map(judge).collect()
}

/// The groups that are barred since terms were repaired: one line, of the daemon that names most.
pub(super) fn barred(asked: &[Asked]) -> Option<Finding> {
    let answers = asked.iter().filter_map(|one| one.status.as_ref().ok());
    let named = |status: &&Status| {
        let known = status.terms.barred.iter().filter(|group| !group.starts_with("id=")).count();
        (status.terms.barred.len(), known)
    };
    let text = crate::commands::status::barred(&answers.max_by_key(named)?.terms)?;
    let advice = "reset the fences of their resources, then `tenure members repair-terms lift GROUP`";
    Some(Finding::warn("barred", text, advice))
}

/// Whether all are of one version, and of this command's.
pub(super) fn versions(asked: &[Asked], own: &str) -> Option<Finding> {
    const CHECK: &str = "versions";
    let answers = asked.iter().filter_map(|one| one.status.as_ref().ok());
    let mut versions: Vec<(String, &str)> =
        answers.map(|status| (status.version.clone(), status.name.as_str())).collect();
    versions.sort();
    let (first, _) = versions.first()?;
    if versions.iter().all(|(version, _)| version == first) && first == own {
        return Some(Finding::ok(CHECK, format!("{own}, all of them and this command")));
    }
    let all: Vec<String> = versions.iter().map(|(version, name)| format!("{name} {version}")).collect();
    Some(Finding::warn(
        CHECK,
        format!("{}; this command {own}", all.join(", ")),
        "fine during an upgrade; bring all to one version, one after another, waiting for READY each time",
    ))
}
