//! Rules about the crates: who may know whom, and that all obey the lints of the workspace.
//!
//! ```text
//!          tenure-cli
//!           │      │
//!    tenure-lab   tenure      these two do not know each other
//!           └──┬───┘
//!         tenure-proto        knows nobody
//! ```
//!
//! `tenure-testkit` knows `tenure` and `tenure-proto`; only the tests of `tenure` and `tenure-cli`
//! know it.

use std::collections::BTreeMap;

use super::Problem;
use super::files::Source;
use super::manifest::{self, Dependency, Entry};

/// The dependencies that one crate may have.
struct Rule {
    name: &'static str,
    manifest: &'static str,
    /// The crates of this workspace that it may use; also in its tests, since an arrow is an arrow.
    ours: &'static [&'static str],
    others: Others,
}

/// Foreign crates that a crate may use.
#[derive(PartialEq, Eq)]
enum Others {
    Any,
    /// Nothing, except in its tests.
    Nothing,
    /// No tokio, not in its tests either: a runtime has timers of its own, and they would not be
    /// simulated.
    NoTokio,
}

/// The crate that tests share: what is published must not need it.
const KIT: &str = "tenure-testkit";

const RULES: &[Rule] = &[
    Rule {
        name: "tenure-proto",
        manifest: "crates/tenure-proto/Cargo.toml",
        ours: &[],
        others: Others::Nothing,
    },
    Rule {
        name: "tenure-lab",
        manifest: "crates/tenure-lab/Cargo.toml",
        ours: &["tenure-proto"],
        others: Others::NoTokio,
    },
    Rule {
        name: "tenure",
        manifest: "crates/tenure/Cargo.toml",
        ours: &["tenure-proto", KIT],
        others: Others::Any,
    },
    Rule {
        name: "tenure-cli",
        manifest: "crates/tenure-cli/Cargo.toml",
        ours: &["tenure-proto", "tenure-lab", "tenure", KIT],
        others: Others::Any,
    },
    Rule {
        name: KIT,
        manifest: "crates/tenure-testkit/Cargo.toml",
        ours: &["tenure-proto", "tenure"],
        others: Others::Any,
    },
    Rule { name: "xtask", manifest: "xtask/Cargo.toml", ours: &[], others: Others::Any },
];

/// The one crate with a module that needs `unsafe`: it cannot inherit lints that forbid it, and
/// repeats the others.
const UNSAFE_IN_ONE_MODULE: &str = "crates/tenure/Cargo.toml";

/// Judges the manifests of all crates.
pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    let root = sources.iter().find(|source| source.path == "Cargo.toml");
    let root = root.map(|root| manifest::entries(&root.text)).unwrap_or_default();
    let mut problems: Vec<Problem> = RULES
        .iter()
        .filter(|rule| !sources.iter().any(|source| source.path == rule.manifest))
        .map(|rule| Problem::error(rule.manifest, None, format!("is missing, but {} has a rule", rule.name)))
        .collect();
    for source in sources.iter().filter(|source| is_member(&source.path)) {
        problems.extend(check_manifest(&source.path, &source.text, &root));
    }
    problems
}

/// `crates/*/Cargo.toml` and our own.
fn is_member(path: &str) -> bool {
    match path.split('/').collect::<Vec<_>>().as_slice() {
        ["crates", _, file] => *file == "Cargo.toml",
        ["xtask", file] => *file == "Cargo.toml",
        _ => false,
    }
}

/// `root` is the manifest of the workspace.
fn check_manifest(path: &str, text: &str, root: &[Entry]) -> Vec<Problem> {
    let entries = manifest::entries(text);
    let mut problems = Vec::new();
    if path == UNSAFE_IN_ONE_MODULE {
        if lints(&entries, &["lints"]) != but_for_unsafe(lints(root, &["workspace", "lints"])) {
            let what = "must repeat the lints of the workspace, with `unsafe_code = \"deny\"`";
            problems.push(Problem::error(path, None, what));
        }
    } else if !inherits_lints(&entries) {
        problems.push(Problem::error(path, None, "lacks `[lints]` with `workspace = true`"));
    }
    for entry in entries.iter().filter(|entry| is_unreadable(entry)) {
        let what = "dependencies in braces are not read: give them a table of their own";
        problems.push(Problem::error(path, entry.line, what));
    }
    let Some(rule) = RULES.iter().find(|rule| rule.manifest == path) else {
        let what = "a new crate: say in xtask/src/tidy/arrows.rs what it may depend on";
        problems.push(Problem::error(path, None, what));
        return problems;
    };
    for dependency in manifest::dependencies(&entries, &manifest::aliases(root)) {
        problems.extend(judge(rule, &dependency).map(|what| Problem::error(path, dependency.line, what)));
    }
    problems
}

fn inherits_lints(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| entry.path == ["lints", "workspace"] && entry.value == "true")
}

/// Every lint below `table`, with its level.
fn lints(entries: &[Entry], table: &[&str]) -> BTreeMap<Vec<String>, String> {
    let inside = |entry: &Entry| {
        let (head, lint) = entry.path.split_at_checked(table.len())?;
        (head == table).then(|| (lint.to_vec(), entry.value.clone()))
    };
    entries.iter().filter_map(inside).collect()
}

/// A forbidden lint can be allowed nowhere; a denied one in the module that says so.
fn but_for_unsafe(mut lints: BTreeMap<Vec<String>, String>) -> BTreeMap<Vec<String>, String> {
    lints.insert(vec!["rust".to_string(), "unsafe_code".to_string()], "\"deny\"".to_string());
    lints
}

/// `dependencies = { … }`: legal, but then this check would see nothing.
fn is_unreadable(entry: &Entry) -> bool {
    let last = entry.path.last().map_or("", String::as_str);
    matches!(last, "dependencies" | "dev-dependencies" | "build-dependencies") && entry.value.starts_with('{')
        || entry.path == ["target"]
}

/// Why a dependency is not allowed, or `None` if it is.
fn judge(rule: &Rule, dependency: &Dependency) -> Option<String> {
    let Rule { name, ours, others, .. } = rule;
    let wanted = dependency.name.as_str();
    if wanted == KIT && !dependency.dev {
        return Some(format!("only tests may know {KIT}: name it in `[dev-dependencies]`"));
    }
    if is_ours(wanted) {
        let known = ours.contains(&wanted);
        return (!known)
            .then(|| format!("{name} must not know {wanted}: the arrows of the crates forbid it"));
    }
    match others {
        Others::Nothing if !dependency.dev => Some(format!(
            "{name} has no dependencies, so that nobody reaches a clock, a socket or a generator: remove {wanted}"
        )),
        Others::NoTokio if is_tokio(wanted) => {
            Some(format!("{name} must not see {wanted}: its timers would escape the simulated clock"))
        }
        _ => None,
    }
}

fn is_ours(name: &str) -> bool {
    name == "tenure" || name.starts_with("tenure-") || name == "xtask"
}

fn is_tokio(name: &str) -> bool {
    name == "tokio" || name.starts_with("tokio-")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINTS: &str = "\n[lints]\nworkspace = true\n";
    const ROOT: &str = "[workspace.lints.rust]\nunsafe_code = \"forbid\"\nmissing_docs = \"warn\"\n";
    const REPEATED: &str = "\n[lints.rust]\nunsafe_code = \"deny\"\nmissing_docs = \"warn\"\n";

    fn whats(name: &str, manifest: &str) -> Vec<String> {
        let path = RULES.iter().find(|rule| rule.name == name).unwrap().manifest;
        let lints = if path == UNSAFE_IN_ONE_MODULE { REPEATED } else { LINTS };
        check_manifest(path, &format!("{manifest}{lints}"), &manifest::entries(ROOT))
            .into_iter()
            .map(|problem| problem.what)
            .collect()
    }

    fn allows(name: &str, manifest: &str) -> bool {
        whats(name, manifest).is_empty()
    }

    #[test]
    fn the_protocols_depend_on_nothing_but_may_be_tested_with_anything() {
        assert!(allows("tenure-proto", "[dependencies]\n"));
        assert!(allows("tenure-proto", "[dev-dependencies]\nproptest = \"1\"\n"));
        assert!(!allows("tenure-proto", "[dependencies]\nthiserror = \"2\"\n"));
        assert!(!allows("tenure-proto", "[build-dependencies]\ncc = \"1\"\n"));
        assert!(!allows("tenure-proto", "[target.'cfg(unix)'.dependencies]\nlibc = \"0.2\"\n"));
        assert!(!allows("tenure-proto", "[dev-dependencies]\ntenure-lab.workspace = true\n"));
    }

    #[test]
    fn the_laboratory_knows_the_protocols_and_never_tokio() {
        assert!(allows("tenure-lab", "[dependencies]\ntenure-proto.workspace = true\nrayon = \"1\"\n"));
        assert!(!allows("tenure-lab", "[dependencies]\ntenure.workspace = true\n"));
        assert!(!allows("tenure-lab", "[dependencies]\ntokio = { version = \"1\" }\n"));
        assert!(!allows("tenure-lab", "[dependencies]\ntokio-util = \"0.7\"\n"));
        assert!(!allows("tenure-lab", "[dev-dependencies]\ntokio = \"1\"\n"));
        assert!(!allows("tenure-lab", "[dependencies]\nrt = { package = \"tokio\", version = \"1\" }\n"));
    }

    #[test]
    fn the_library_never_knows_the_laboratory() {
        assert!(allows("tenure", "[dependencies]\ntenure-proto.workspace = true\ntokio = \"1\"\n"));
        assert!(!allows("tenure", "[dependencies]\ntenure-lab.workspace = true\n"));
        assert!(!allows("tenure", "[dev-dependencies.tenure-lab]\nworkspace = true\n"));
        assert!(!allows("tenure", "[dependencies]\ntenure-cli = \"0.1\"\n"));
    }

    #[test]
    fn the_program_knows_all_three() {
        let all = "[dependencies]\ntenure.workspace = true\ntenure-lab.workspace = true\n\
                   tenure-proto.workspace = true\nclap = \"4\"\n";
        assert!(allows("tenure-cli", all));
    }

    #[test]
    fn only_tests_know_the_kit() {
        for name in ["tenure", "tenure-cli"] {
            assert!(allows(name, "[dev-dependencies]\ntenure-testkit.workspace = true\n"));
            assert!(!allows(name, "[dependencies]\ntenure-testkit.workspace = true\n"));
            assert!(!allows(name, "[build-dependencies]\ntenure-testkit.workspace = true\n"));
        }
        assert!(!allows("tenure-lab", "[dev-dependencies]\ntenure-testkit.workspace = true\n"));
        assert!(!allows("tenure-proto", "[dev-dependencies]\ntenure-testkit.workspace = true\n"));
        assert!(!allows("xtask", "[dev-dependencies]\ntenure-testkit.workspace = true\n"));
        assert!(allows("tenure-testkit", "[dependencies]\ntenure.workspace = true\n"));
        assert!(!allows("tenure-testkit", "[dependencies]\ntenure-cli = \"0.1\"\n"));
    }

    #[test]
    fn a_message_names_both_ends_of_the_forbidden_arrow() {
        let whats = whats("tenure", "[dependencies]\ntenure-lab.workspace = true\n");
        assert_eq!(whats, ["tenure must not know tenure-lab: the arrows of the crates forbid it"]);
    }

    #[test]
    fn a_crate_without_the_lints_of_the_workspace_is_found() {
        let check = |text| check_manifest("xtask/Cargo.toml", text, &manifest::entries(ROOT));
        assert_eq!(check("[lints]\nworkspace = true\n"), []);
        assert_eq!(check("lints.workspace = true\n"), []);
        for text in ["", "[lints]\n", "[lints]\nworkspace = false\n", "[lints.rust]\nworkspace = true\n"] {
            assert_eq!(check(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn the_crate_with_one_unsafe_module_repeats_every_other_lint() {
        let check = |text: &str| check_manifest(UNSAFE_IN_ONE_MODULE, text, &manifest::entries(ROOT));
        assert_eq!(check(REPEATED), []);
        for text in [LINTS, "", &REPEATED.replace("deny", "warn"), "[lints.rust]\nunsafe_code = \"deny\"\n"] {
            assert_eq!(check(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn dependencies_that_cannot_be_read_are_refused() {
        assert!(!allows("tenure-proto", "dependencies = { tokio = \"1\" }\n"));
        assert!(!allows("tenure-proto", "[target]\n'cfg(unix)'.dependencies = { libc = \"0.2\" }\n"));
    }

    #[test]
    fn a_crate_without_a_rule_is_found_and_so_is_a_rule_without_a_crate() {
        let source = |path: &str| {
            let text = if path == UNSAFE_IN_ONE_MODULE { REPEATED } else { LINTS };
            Source { path: path.to_string(), text: text.to_string() }
        };
        let mut sources: Vec<Source> = RULES.iter().map(|rule| source(rule.manifest)).collect();
        sources.push(Source { path: "Cargo.toml".to_string(), text: ROOT.to_string() });
        assert_eq!(check(&sources), []);
        sources.push(source("crates/tenure-common/Cargo.toml"));
        sources.push(source("crates/tenure/fuzz/Cargo.toml")); // Not a member of the workspace.
        assert_eq!(check(&sources).len(), 1);
        sources.remove(0);
        let problems = check(&sources);
        assert_eq!(problems.len(), 2);
        assert!(problems[0].what.contains("tenure-proto"), "{problems:?}");
    }
}
