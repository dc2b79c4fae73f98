//! Rules about the crates that are published: `cargo package` needs them, and so do the people who
//! find a crate without its repository.

use super::Problem;
use super::files::Source;
use super::manifest::{self, Entry};

/// The fields that all published crates have from the workspace.
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license", "repository", "readme"];

/// Files that a package carries beside its code; links to those at the root.
const LICENCES: &[&str] = &["LICENSE-MIT", "LICENSE-APACHE"];

/// The most keywords and categories that the registry takes.
const MOST: usize = 5;

/// Judges every crate under `crates/` that does not say `publish = false`.
pub(super) fn check(sources: &[Source], exists: impl Fn(&str) -> bool) -> Vec<Problem> {
    let mut problems = Vec::new();
    for source in sources {
        let ["crates", name, "Cargo.toml"] = source.path.split('/').collect::<Vec<_>>()[..] else { continue };
        let entries = manifest::entries(&source.text);
        if value(&entries, &["package", "publish"]) == Some("false") {
            continue;
        }
        let mut missing = fields(&entries);
        let lib = format!("crates/{name}/src/lib.rs");
        if exists(&lib) && value(&entries, &["package", "metadata", "docs", "rs", "all-features"]).is_none() {
            missing.push("lacks `[package.metadata.docs.rs]` with `all-features`".to_string());
        }
        let links = LICENCES.iter().filter(|file| !exists(&format!("crates/{name}/{file}")));
        missing.extend(links.map(|file| format!("has no `{file}` beside it: `ln -s ../../{file}`")));
        problems.extend(missing.into_iter().map(|what| Problem::error(&source.path, None, what)));
    }
    problems
}

fn value<'a>(entries: &'a [Entry], path: &[&str]) -> Option<&'a str> {
    entries.iter().find(|entry| entry.path == path).map(|entry| entry.value.as_str())
}

/// The fields of `[package]` that are missing or wrong.
fn fields(entries: &[Entry]) -> Vec<String> {
    let inherited = |field: &&&str| value(entries, &["package", field, "workspace"]) != Some("true");
    let mut missing: Vec<String> = INHERITED
        .iter()
        .filter(inherited)
        .map(|field| format!("is published and lacks `{field}.workspace = true`"))
        .collect();
    if value(entries, &["package", "description"]).is_none_or(|text| text.len() < 3) {
        missing.push("is published and lacks a `description`".to_string());
    }
    for field in ["keywords", "categories"] {
        let words = value(entries, &["package", field]).map_or(0, |list| list.matches('"').count() / 2);
        if !(1..=MOST).contains(&words) {
            missing.push(format!("is published and has {words} `{field}`: write 1 to {MOST}"));
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "[package]\nname = \"x\"\ndescription = \"An x.\"\nversion.workspace = true\n\
        edition.workspace = true\nrust-version.workspace = true\nlicense.workspace = true\n\
        repository.workspace = true\nreadme.workspace = true\nkeywords = [\"a\", \"b\"]\n\
        categories = [\"c\"]\n[package.metadata.docs.rs]\nall-features = true\n";

    fn problems(text: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
        let source = Source { path: "crates/x/Cargo.toml".to_string(), text: text.to_string() };
        check(&[source], exists).into_iter().map(|problem| problem.what).collect()
    }

    #[test]
    fn a_whole_manifest_passes_and_each_line_of_it_is_needed() {
        assert_eq!(problems(WHOLE, |_| true), [""; 0]);
        for line in WHOLE.lines().filter(|line| !line.starts_with('[') && !line.starts_with("name")) {
            let rest: Vec<&str> = WHOLE.lines().filter(|other| *other != line).collect();
            assert_eq!(problems(&rest.join("\n"), |_| true).len(), 1, "{line}");
        }
    }

    #[test]
    fn a_program_needs_no_pages_and_every_package_needs_both_licences() {
        let program = WHOLE.replace("all-features = true", "");
        assert_eq!(problems(&program, |path| !path.ends_with("lib.rs")), [""; 0]);
        let without = problems(WHOLE, |path| path != "crates/x/LICENSE-MIT");
        assert_eq!(without, ["has no `LICENSE-MIT` beside it: `ln -s ../../LICENSE-MIT`"]);
    }

    #[test]
    fn six_keywords_are_too_many_and_an_unpublished_crate_needs_nothing() {
        let many = WHOLE.replace("[\"a\", \"b\"]", "[\"a\", \"b\", \"c\", \"d\", \"e\", \"f\"]");
        assert_eq!(problems(&many, |_| true).len(), 1);
        assert_eq!(problems("[package]\nname = \"x\"\npublish = false\n", |_| false), [""; 0]);
    }
}
