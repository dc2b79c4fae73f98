//! Writes that fenced resources admitted and refused, in the order in which they decided.

use std::collections::BTreeMap;

use tenure_proto::fence::Rule;
use tenure_proto::strong::Token;
use tenure_proto::trace::Decision;

use super::record::Record;
use super::{ADMITTED, Findings};
use crate::property::Mark;

type Decided<'a> = (&'a Decision, Mark);

/// Judges each resource by itself.
pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let mut resources: BTreeMap<&str, Vec<Decided<'_>>> = BTreeMap::new();
    for (mark, decision) in &record.admitted {
        resources.entry(&decision.resource).or_default().push((decision, *mark));
    }
    for admitted in resources.values_mut() {
        admitted.sort_by_key(|(decision, mark)| (decision.at, *mark));
        judge_admitted(admitted, findings);
    }
    for (mark, decision) in &record.refused {
        let admitted = resources.get(decision.resource.as_str()).map_or(&[][..], Vec::as_slice);
        judge_refused((decision, *mark), admitted, findings);
    }
}

/// Admitted tokens never go back.
fn judge_admitted(admitted: &[Decided<'_>], findings: &mut Findings) {
    let mut newest: Option<Decided<'_>> = None;
    let mut last: Option<Decided<'_>> = None;
    for (decision, mark) in admitted.iter().copied() {
        let Decision { resource, rule, token, at } = decision;
        if let Some((_, other)) = last.replace((decision, mark)).filter(|(last, _)| last.at == *at) {
            findings
                .add(ADMITTED, [mark, other], || format!("{resource} admitted two writes as number {at}"));
        }
        if let Some((before, other)) = newest.filter(|(newest, _)| is_older(*rule, *token, newest.token)) {
            findings.add(ADMITTED, [mark, other], || {
                format!("{resource} admitted token {token:?} after {:?}", before.token)
            });
        }
        if newest.is_none_or(|(newest, _)| *token > newest.token) {
            newest = Some((decision, mark));
        }
    }
}

/// A token is refused only if something newer was admitted. Judged where the fence had admitted
/// something older, or of the same leader, since before the first admission nobody knows what it
/// has seen.
fn judge_refused((refused, mark): Decided<'_>, admitted: &[Decided<'_>], findings: &mut Findings) {
    let Decision { resource, rule, token, at } = refused;
    let before = &admitted[..admitted.partition_point(|(decision, _)| decision.at <= *at)];
    let Some((newest, other)) = before.iter().max_by_key(|(decision, _)| decision.token) else { return };
    let right = match rule {
        Rule::ByTerm => token.term() < newest.token.term(),
        Rule::InOrder => *token <= newest.token,
    };
    if !right {
        findings.add(ADMITTED, [mark, *other], || {
            format!(
                "{resource} refused token {token:?}, though nothing newer than {:?} was admitted",
                newest.token
            )
        });
    }
}

/// The newest token once more is a retry.
fn is_older(rule: Rule, token: Token, newest: Token) -> bool {
    match rule {
        Rule::ByTerm => token.term() < newest.term(),
        Rule::InOrder => token < newest,
    }
}
