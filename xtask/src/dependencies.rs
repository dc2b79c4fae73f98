//! `cargo xtask dependencies`: holds the dependency graph to `deny.toml`, from what
//! `cargo metadata` says: licences, sources, banned crates, versions that allow anything.
//!
//! cargo-deny checks the same and more, from the same file, but takes minutes to build on a new
//! machine. Advisories need a database from the network; they are the one thing that is left to it
//! (`cargo deny check advisories`, each week by `.github/workflows/advisories.yml`).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::cargo;
use crate::failure::Failure;
use crate::json::Json;
use crate::tidy::manifest;

const POLICY: &str = "deny.toml";

/// The one registry that crates may come from, by the two names that cargo has for it.
const REGISTRIES: &[&str] =
    &["registry+https://github.com/rust-lang/crates.io-index", "sparse+https://index.crates.io/"];

/// The packages run on Linux; crates that only other systems need are not in them.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// The rules of `deny.toml`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Policy {
    allowed: Vec<String>,
    banned: Vec<String>,
}

/// One crate of the graph.
#[derive(Debug)]
struct Package {
    name: String,
    version: String,
    /// `None` for crates of this workspace.
    source: Option<String>,
    license: Option<String>,
    /// Dependencies by a version that allows anything; only asked of our own crates.
    wildcards: Vec<String>,
}

/// Checks the graph; names every problem, not only the first.
pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    let policy = fs::read_to_string(root.join(POLICY));
    let policy = read_policy(&policy.map_err(|error| Failure::Error(format!("{POLICY}: {error}")))?);
    let packages = read_packages(&metadata(root)?);
    let problems: Vec<String> = packages.iter().flat_map(|package| package.problems(&policy)).collect();
    for problem in &problems {
        eprintln!("{problem}");
    }
    let doubles = doubles(&packages);
    if !doubles.is_empty() {
        eprintln!("xtask: in several versions (no failure): {}", doubles.join(", "));
    }
    match problems.len() {
        0 if packages.is_empty() => Err(Failure::Error("`cargo metadata` names no crates".to_string())),
        0 => Ok(()),
        many => Err(Failure::Broken(format!("dependencies: {many} against {POLICY}, see above"))),
    }
}

fn metadata(root: &Path) -> Result<Json, Failure> {
    let mut command = cargo(root);
    command.args(["metadata", "--format-version", "1", "--all-features", "--filter-platform", PLATFORM]);
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.map_err(|error| Failure::Error(format!("`cargo metadata`: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Json::parse(&text).ok_or_else(|| Failure::Error(format!("`cargo metadata` failed ({})", output.status)))
}

fn read_policy(text: &str) -> Policy {
    let mut policy = Policy::default();
    for entry in manifest::entries(text) {
        match entry.path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["licenses", "allow"] => policy.allowed = quoted(&entry.value).map(String::from).collect(),
            ["bans", "deny"] => policy.banned = banned(&entry.value),
            _ => {}
        }
    }
    policy
}

/// Everything between double quotes.
fn quoted(value: &str) -> impl Iterator<Item = &str> {
    value.split('"').skip(1).step_by(2)
}

/// The names in `[{ crate = "a", reason = "…" }, …]`.
fn banned(value: &str) -> Vec<String> {
    let names = value.split("crate =").skip(1).filter_map(|rest| quoted(rest).next());
    names.map(String::from).collect()
}

/// The crates of the graph: those that the resolution names.
fn read_packages(metadata: &Json) -> Vec<Package> {
    let nodes = metadata.at(&["resolve", "nodes"]).map(Json::items).unwrap_or_default();
    let resolved: Vec<&str> = nodes.iter().filter_map(|node| node.text_at("id")).collect();
    let packages = metadata.get("packages").map(Json::items).unwrap_or_default();
    let in_graph = |package: &&Json| package.text_at("id").is_some_and(|id| resolved.contains(&id));
    packages.iter().filter(in_graph).filter_map(read_package).collect()
}

fn read_package(package: &Json) -> Option<Package> {
    let text = |key: &str| package.text_at(key).map(String::from);
    let is_wildcard =
        |dependency: &&Json| dependency.text_at("req") == Some("*") && dependency.text_at("path").is_none();
    let dependencies = package.get("dependencies").map(Json::items).unwrap_or_default();
    let wildcards = dependencies.iter().filter(is_wildcard).filter_map(|found| found.text_at("name"));
    Some(Package {
        name: text("name")?,
        version: text("version")?,
        source: text("source"),
        license: text("license"),
        wildcards: wildcards.map(String::from).collect(),
    })
}

impl Package {
    fn problems(&self, policy: &Policy) -> Vec<String> {
        let mut problems = Vec::new();
        if policy.banned.contains(&self.name) {
            problems.push("is banned".to_string());
        }
        match &self.license {
            None => problems.push("names no licence".to_string()),
            Some(license) if !is_allowed(license, &policy.allowed) => {
                problems.push(format!("has the licence `{license}`, which is not allowed"));
            }
            Some(_) => {}
        }
        match &self.source {
            None => problems.extend(self.wildcards.iter().map(|name| format!("takes any version of {name}"))),
            Some(source) if !REGISTRIES.contains(&source.as_str()) => {
                problems.push(format!("comes from {source}, not from crates.io"));
            }
            Some(_) => {}
        }
        let Package { name, version, .. } = self;
        problems.into_iter().map(|problem| format!("{POLICY}: {name} {version} {problem}")).collect()
    }
}

/// Whether a licence expression can be satisfied by allowed licences: `OR` by one side, `AND` by
/// both.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    // An old way to write OR.
    let text = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut rest = words.as_slice();
    any(&mut rest, allowed) == Some(true) && rest.is_empty()
}

/// Terms joined by OR; `None` if they cannot be read.
fn any(rest: &mut &[&str], allowed: &[String]) -> Option<bool> {
    let mut satisfied = all(rest, allowed)?;
    while let ["OR", after @ ..] = rest {
        *rest = after;
        satisfied |= all(rest, allowed)?;
    }
    Some(satisfied)
}

/// Terms joined by AND, which binds more tightly.
fn all(rest: &mut &[&str], allowed: &[String]) -> Option<bool> {
    let mut satisfied = term(rest, allowed)?;
    while let ["AND", after @ ..] = rest {
        *rest = after;
        satisfied &= term(rest, allowed)?;
    }
    Some(satisfied)
}

fn term(rest: &mut &[&str], allowed: &[String]) -> Option<bool> {
    let known = |name: &str| allowed.iter().any(|license| license == name);
    match rest {
        ["(", after @ ..] => {
            *rest = after;
            let satisfied = any(rest, allowed)?;
            let [")", after @ ..] = rest else { return None };
            *rest = after;
            Some(satisfied)
        }
        [name, "WITH", exception, after @ ..] => {
            let whole = format!("{name} WITH {exception}");
            *rest = after;
            Some(known(&whole))
        }
        ["OR" | "AND" | "WITH" | ")", ..] | [] => None,
        [name, after @ ..] => {
            let satisfied = known(name);
            *rest = after;
            Some(satisfied)
        }
    }
}

/// `name 1.0.0 2.0.0` for each crate that is there more than once.
fn doubles(packages: &[Package]) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    let several = versions.into_iter().filter(|(_, versions)| versions.len() > 1);
    several.map(|(name, versions)| format!("{name} {}", versions.join(" "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> Vec<String> {
        ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "ISC"].map(String::from).to_vec()
    }

    fn package(source: Option<&str>, license: Option<&str>) -> Package {
        let (source, license) = (source.map(String::from), license.map(String::from));
        Package {
            name: "a".to_string(),
            version: "1.0.0".to_string(),
            source,
            license,
            wildcards: Vec::new(),
        }
    }

    fn problems(package: &Package) -> Vec<String> {
        package.problems(&Policy { allowed: allowed(), banned: vec!["b".to_string()] })
    }

    #[test]
    fn the_policy_is_read_from_the_file_that_cargo_deny_reads() {
        let policy = read_policy(include_str!("../../deny.toml"));
        assert!(policy.allowed.contains(&"Apache-2.0 WITH LLVM-exception".to_string()), "{policy:?}");
        assert!(!policy.allowed.contains(&"GPL-3.0".to_string()));
        assert_eq!(policy.banned, ["bincode"]);
    }

    #[test]
    fn a_licence_expression_is_satisfied_by_one_side_of_or_and_both_of_and() {
        for license in [
            "MIT",
            "MIT OR GPL-3.0",
            "GPL-3.0 OR MIT",
            "MIT/Apache-2.0",
            "(MIT OR GPL-3.0) AND ISC",
            "GPL-3.0 OR MIT AND ISC",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
        ] {
            assert!(is_allowed(license, &allowed()), "{license}");
        }
        for license in ["GPL-3.0", "MIT AND GPL-3.0", "MIT WITH x", "(MIT", "MIT OR", "", "MIT ISC", "OR MIT"]
        {
            assert!(!is_allowed(license, &allowed()), "{license}");
        }
    }

    #[test]
    fn sources_licences_bans_and_wildcards_are_judged() {
        let registry = Some(REGISTRIES[0]);
        assert_eq!(problems(&package(registry, Some("MIT"))), [""; 0]);
        assert_eq!(problems(&package(registry, None)), ["deny.toml: a 1.0.0 names no licence"]);
        let git = problems(&package(Some("git+https://example.org/a"), Some("MIT")));
        assert_eq!(git, ["deny.toml: a 1.0.0 comes from git+https://example.org/a, not from crates.io"]);
        let banned = Package { name: "b".to_string(), ..package(registry, Some("MIT")) };
        assert_eq!(problems(&banned), ["deny.toml: b 1.0.0 is banned"]);
        let any = || vec!["c".to_string()];
        let ours = Package { wildcards: any(), ..package(None, Some("MIT")) };
        assert_eq!(problems(&ours), ["deny.toml: a 1.0.0 takes any version of c"]);
        let theirs = Package { wildcards: any(), ..package(registry, Some("MIT")) };
        assert_eq!(problems(&theirs), [""; 0], "theirs is not ours to change");
    }

    #[test]
    fn only_crates_of_the_graph_are_read_and_paths_need_no_version() {
        let text = r#"{
            "packages": [
                {"id": "x", "name": "a", "version": "1.0.0", "source": null, "license": "MIT",
                 "dependencies": [{"name": "c", "req": "*"}, {"name": "d", "req": "*", "path": "/d"}]},
                {"id": "y", "name": "windows", "version": "1.0.0", "source": null, "license": null}
            ],
            "resolve": {"nodes": [{"id": "x"}]}
        }"#;
        let packages = read_packages(&Json::parse(text).unwrap());
        assert_eq!(packages.len(), 1);
        assert_eq!(packages[0].wildcards, ["c"]);
    }

    #[test]
    fn crates_in_several_versions_are_named() {
        let second = Package { version: "2.0.0".to_string(), ..package(None, None) };
        assert_eq!(doubles(&[package(None, None), second]), ["a 1.0.0 2.0.0"]);
        assert_eq!(doubles(&[package(None, None)]), [""; 0]);
    }
}
