//! Counts that may only fall: wide lines, banned phrases, private English (`words.rs`), by area.
//!
//! `xtask/ratchet.txt` has the counts. A rise is a problem, with the places that are new. A fall
//! asks for `cargo xtask tidy --lower`, which writes the new counts. Between crates text may move:
//! there `--lower` looks at the sum. In what users read, no count may rise at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::Problem;
use super::areas::{self, Areas, FOR_USERS};
use super::files::Source;
use super::words::{self, Finding};
use crate::failure::Failure;

const PATH: &str = "xtask/ratchet.txt";

/// So many new places are named for each count.
const NAMED: usize = 40;

/// Whether the counts are held or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ratchet {
    Hold,
    Lower,
}

/// The counts of each area.
type Counts = BTreeMap<String, BTreeMap<Finding, usize>>;

/// A place with its area.
#[derive(Debug)]
struct Found {
    area: String,
    path: String,
    place: words::Place,
}

impl Found {
    fn describe(&self) -> String {
        format!("{}: `{}`", self.place.finding.name(), self.place.words)
    }
}

/// Compares what is there with the file, or writes the file.
pub(super) fn check(root: &Path, sources: &[Source], ratchet: Ratchet) -> Result<Vec<Problem>, Failure> {
    let found = find(sources);
    let now = count(&found);
    let written = fs::read_to_string(root.join(PATH)).ok();
    let before = written.as_deref().map(parse).transpose()?;
    match (ratchet, before) {
        (Ratchet::Hold, Some(before)) => {
            let added = Added::since_the_counts(root);
            Ok(judge(&before, &now, &found, &added))
        }
        (Ratchet::Hold, None) => {
            Ok(vec![Problem::error(PATH, None, "is missing: `cargo xtask tidy --lower` writes it")])
        }
        (Ratchet::Lower, before) => {
            if let Some(rise) = before.and_then(|before| rise(&before, &now)) {
                return Err(Failure::Broken(format!("{PATH}: {rise}: see `cargo xtask tidy`")));
            }
            let cannot = |error| Failure::Error(format!("{PATH}: {error}"));
            fs::write(root.join(PATH), write(&now)).map_err(cannot)?;
            Ok(Vec::new())
        }
    }
}

/// Every place of an area that counts, with its line.
pub(super) fn list(sources: &[Source], area: &str) -> Vec<Problem> {
    let of_area = find(sources).into_iter().filter(|found| found.area == area);
    of_area.map(|found| Problem::error(&found.path, found.place.line, found.describe())).collect()
}

fn find(sources: &[Source]) -> Vec<Found> {
    let public = areas::public_modules(sources);
    let mut found = Vec::new();
    for source in sources {
        let areas = Areas::of(source, &public);
        for place in words::places(&source.path, &source.text) {
            let area = areas.area(place.origin, place.line).to_string();
            found.push(Found { area, path: source.path.clone(), place });
        }
    }
    found
}

fn count(found: &[Found]) -> Counts {
    let mut counts = Counts::new();
    // Areas that users read are always listed: a line of zeros there is the aim.
    for area in FOR_USERS {
        counts.entry(area.to_string()).or_default();
    }
    for Found { area, place, .. } in found {
        *counts.entry(area.clone()).or_default().entry(place.finding).or_default() += 1;
    }
    counts
}

fn of(counts: &Counts, area: &str, finding: Finding) -> usize {
    counts.get(area).and_then(|counts| counts.get(&finding)).copied().unwrap_or_default()
}

/// A problem for each new place of a count that has risen, and a request if one has fallen.
fn judge(before: &Counts, now: &Counts, found: &[Found], added: &Added) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut fallen = 0;
    let areas: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    for area in areas {
        for finding in Finding::ALL {
            let (was, is) = (of(before, area, finding), of(now, area, finding));
            fallen += was.saturating_sub(is);
            if is > was {
                problems.extend(risen(area, finding, (was, is), found, added));
            }
        }
    }
    if fallen > 0 {
        let what = format!("{fallen} fewer than written: `cargo xtask tidy --lower` keeps it so");
        problems.push(Problem::warning(PATH, what));
    }
    problems
}

fn risen(
    area: &str,
    finding: Finding,
    (was, is): (usize, usize),
    found: &[Found],
    added: &Added,
) -> Vec<Problem> {
    let mut problems = vec![Problem::error(
        PATH,
        None,
        format!(
            "{area}: {} rose from {was} to {is}; if text moved here from another crate, `cargo xtask tidy --lower`",
            finding.name()
        ),
    )];
    let here = |found: &&Found| found.area == area && found.place.finding == finding;
    let new = |found: &&Found| added.has(&found.path, found.place.line);
    problems.extend(
        found
            .iter()
            .filter(here)
            .filter(new)
            .take(NAMED)
            .map(|found| Problem::error(&found.path, found.place.line, found.describe())),
    );
    problems
}

/// A count that has risen and must not: any in what users read, the sum of all other areas
/// elsewhere.
fn rise(before: &Counts, now: &Counts) -> Option<String> {
    let users = |area: &&String| FOR_USERS.contains(&area.as_str());
    let sum = |counts: &Counts, finding| -> usize {
        counts.keys().filter(|area| !users(area)).map(|area| of(counts, area, finding)).sum()
    };
    for finding in Finding::ALL {
        for area in now.keys().filter(users) {
            let (was, is) = (of(before, area, finding), of(now, area, finding));
            if is > was {
                return Some(format!("{area}: {} rose from {was} to {is}", finding.name()));
            }
        }
        let (was, is) = (sum(before, finding), sum(now, finding));
        if is > was {
            return Some(format!("{} rose from {was} to {is} outside of what users read", finding.name()));
        }
    }
    None
}

fn parse(text: &str) -> Result<Counts, Failure> {
    let mut counts = Counts::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let area = words.next().unwrap_or_default().to_string();
        let numbers: Option<Vec<usize>> = words.map(|word| word.parse().ok()).collect();
        let numbers = numbers.filter(|numbers| numbers.len() == Finding::ALL.len());
        let numbers = numbers.ok_or_else(|| {
            Failure::Error(format!("{PATH}:{}: a line has a name and four numbers", index + 1))
        })?;
        counts.insert(area, Finding::ALL.into_iter().zip(numbers).collect());
    }
    Ok(counts)
}

fn write(counts: &Counts) -> String {
    let mut text = "# Counts that may only fall. `cargo xtask tidy` holds them, `cargo xtask tidy --lower` writes them.\n\
                    # width: comments and Markdown beyond 100 columns. phrase: those of xtask/banned.txt.\n\
                    # who, what: sentences that begin with the word and ask nothing.\n"
        .to_string();
    let _ = write!(text, "# {:<12}", "area"); // Writing to a string cannot fail.
    for finding in Finding::ALL {
        let _ = write!(text, " {:>6}", finding.name());
    }
    text.push('\n');
    for area in counts.keys() {
        let _ = write!(text, "{area:<14}");
        for finding in Finding::ALL {
            let _ = write!(text, " {:>6}", of(counts, area, finding));
        }
        text.push('\n');
    }
    text
}

/// Lines that were added since the counts were written; all lines, where git does not know.
struct Added(Option<BTreeMap<String, Vec<(usize, usize)>>>);

impl Added {
    fn since_the_counts(root: &Path) -> Added {
        let git = |arguments: &[&str]| {
            let output = Command::new("git").current_dir(root).args(arguments).output().ok()?;
            output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let commit = git(&["log", "-1", "--format=%H", "--", PATH]).unwrap_or_default();
        if commit.trim().is_empty() {
            return Added(None);
        }
        let Some(diff) = git(&["diff", "--unified=0", "--no-color", commit.trim()]) else {
            return Added(None);
        };
        let mut added = parse_diff(&diff);
        let unknown = git(&["ls-files", "--others", "--exclude-standard"]).unwrap_or_default();
        added.extend(unknown.lines().map(|path| (path.to_string(), vec![(0, usize::MAX)])));
        Added(Some(added))
    }

    fn has(&self, path: &str, line: usize) -> bool {
        let Some(files) = &self.0 else { return true };
        files.get(path).is_some_and(|ranges| ranges.iter().any(|(from, end)| (*from..*end).contains(&line)))
    }
}

/// For each file the ranges of lines that a diff without context adds.
fn parse_diff(diff: &str) -> BTreeMap<String, Vec<(usize, usize)>> {
    let mut files: BTreeMap<String, Vec<(usize, usize)>> = BTreeMap::new();
    let mut path = String::new();
    for line in diff.lines() {
        if let Some(name) = line.strip_prefix("+++ b/") {
            path = name.to_string();
        } else if let Some(range) = line.strip_prefix("@@ ").and_then(added_range) {
            files.entry(path.clone()).or_default().push(range);
        }
    }
    files
}

/// `-1,2 +3,4 @@` adds lines 3 to 6.
fn added_range(hunk: &str) -> Option<(usize, usize)> {
    let range = hunk.split(' ').find_map(|word| word.strip_prefix('+'))?;
    let (from, count) = range.split_once(',').unwrap_or((range, "1"));
    let from: usize = from.parse().ok()?;
    Some((from, from + count.parse::<usize>().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::prose::Origin;

    fn counts(areas: &[(&str, [usize; 4])]) -> Counts {
        let counts = |numbers: [usize; 4]| Finding::ALL.into_iter().zip(numbers).collect();
        areas.iter().map(|(area, numbers)| (area.to_string(), counts(*numbers))).collect()
    }

    fn found(area: &str, line: usize) -> Found {
        let words = "Who".to_string();
        let place = words::Place { finding: Finding::Who, origin: Origin::Comment, line, words };
        Found { area: area.to_string(), path: "a.rs".to_string(), place }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let some = counts(&[("README", [0, 0, 0, 0]), ("tenure-proto", [1000, 2, 30, 4])]);
        assert_eq!(parse(&write(&some)), Ok(some));
        assert!(parse("tenure 1 2 3\n").is_err());
        assert!(parse("tenure 1 2 3 x\n").is_err());
    }

    #[test]
    fn a_rise_names_the_places_that_are_new() {
        let (before, now) = (counts(&[("tenure", [0, 0, 1, 0])]), counts(&[("tenure", [0, 0, 2, 0])]));
        let places = [found("tenure", 3), found("tenure", 7), found("xtask", 7)];
        let added = Added(Some(parse_diff("+++ b/a.rs\n@@ -6,0 +7,2 @@ fn x()\n")));
        let problems = judge(&before, &now, &places, &added);
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts[0].starts_with("xtask/ratchet.txt: tenure: who rose from 1 to 2"), "{texts:?}");
        assert_eq!(texts[1], "a.rs:7: who: `Who`");
        assert_eq!(judge(&before, &now, &places, &Added(None)).len(), 3, "without git, all places");
    }

    #[test]
    fn a_fall_is_no_failure_but_asks_to_be_kept() {
        let (before, now) = (counts(&[("docs", [5, 0, 0, 0])]), counts(&[("docs", [3, 0, 0, 0])]));
        let problems = judge(&before, &now, &[], &Added(None));
        assert_eq!(problems.len(), 1);
        let text = problems[0].to_string();
        assert!(text.contains("warning: 2 fewer") && text.contains("--lower"), "{text}");
        assert_eq!(judge(&now, &now, &[], &Added(None)), []);
    }

    #[test]
    fn text_may_move_between_crates_but_not_to_what_users_read() {
        let before = counts(&[("docs", [1, 0, 0, 0]), ("tenure", [9, 0, 0, 0])]);
        let moved = counts(&[("docs", [1, 0, 0, 0]), ("tenure", [4, 0, 0, 0]), ("testkit", [5, 0, 0, 0])]);
        assert_eq!(rise(&before, &moved), None);
        let more = counts(&[("docs", [1, 0, 0, 0]), ("tenure", [4, 0, 0, 0]), ("testkit", [6, 0, 0, 0])]);
        assert!(rise(&before, &more).is_some());
        let published = counts(&[("docs", [2, 0, 0, 0]), ("tenure", [0, 0, 0, 0])]);
        assert_eq!(rise(&before, &published).unwrap(), "docs: width rose from 1 to 2");
    }

    #[test]
    fn the_file_is_written_held_and_lowered() {
        let root = std::env::temp_dir().join(format!("tenure-xtask-ratchet-{}", std::process::id()));
        fs::create_dir_all(root.join("xtask")).unwrap();
        let source = |text: &str| [Source { path: "docs/a.md".to_string(), text: text.to_string() }];
        let one = concat!("W", "ho leads, decides. ");
        let (worse, bad, good) =
            (source(&one.repeat(3)), source(&one.repeat(2)), source("A leader decides."));
        let problems = |sources: &[Source], ratchet| check(&root, sources, ratchet).map(|found| found.len());
        let results = [
            problems(&bad, Ratchet::Hold),
            problems(&bad, Ratchet::Lower),
            problems(&bad, Ratchet::Hold),
            problems(&worse, Ratchet::Hold),
            problems(&good, Ratchet::Lower),
            problems(&good, Ratchet::Hold),
        ];
        let refused = problems(&bad, Ratchet::Lower);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(results, [Ok(1), Ok(0), Ok(0), Ok(4), Ok(0), Ok(0)]);
        assert!(refused.is_err(), "it may only fall");
    }
}
