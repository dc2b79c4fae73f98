//! As much of a `Cargo.toml` as the rules need, read line by line.
//!
//! Reads tables, dotted keys, comments, and values that go on over several lines. Does not read
//! strings in triple quotes, and dependencies must be in a table of their own, as they are written
//! everywhere.

use std::collections::BTreeMap;

/// One key of the manifest with its whole path: `[a.b]` and `c.d = 1` give `a`, `b`, `c`, `d`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) path: Vec<String>,
    pub(crate) value: String,
    /// Counted from 1.
    pub(crate) line: usize,
}

/// One dependency, under the name it has in the registry or the workspace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Of the tests only: not seen by anyone who uses the crate.
    pub(crate) dev: bool,
    pub(crate) line: usize,
}

/// Name in the manifests of the workspace, and the name of the package behind it where that
/// differs.
pub(crate) type Aliases = BTreeMap<String, String>;

/// Every key of a manifest, in order.
pub(crate) fn entries(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut table: Vec<String> = Vec::new();
    let mut depth = 0;
    for (index, line) in text.lines().enumerate() {
        let code = without_comment(line).trim();
        if depth > 0 {
            let last = entries.last_mut().expect("a value that goes on has begun");
            last.value = format!("{} {code}", last.value);
            depth += depth_change(code);
        } else if code.starts_with('[') {
            table = segments(code.trim_matches(['[', ']']));
        } else if let Some((key, value)) = code.split_once('=') {
            let path = table.iter().cloned().chain(segments(key)).collect();
            entries.push(Entry { path, value: value.trim().to_string(), line: index + 1 });
            depth += depth_change(value);
        }
    }
    entries
}

/// Every dependency of a package: normal, of the build script, of the tests, and for one target
/// only.
pub(crate) fn dependencies(entries: &[Entry], aliases: &Aliases) -> Vec<Dependency> {
    let mut found: BTreeMap<(bool, String), Dependency> = BTreeMap::new();
    for entry in entries {
        let path = match entry.path.as_slice() {
            [target, _, rest @ ..] if target == "target" => rest,
            path => path,
        };
        let [kind, local, attribute @ ..] = path else { continue };
        let dev = match kind.as_str() {
            "dependencies" | "build-dependencies" => false,
            "dev-dependencies" => true,
            _ => continue,
        };
        let dependency = found.entry((dev, local.clone())).or_insert_with(|| Dependency {
            name: aliases.get(local).unwrap_or(local).clone(),
            dev,
            line: entry.line,
        });
        if let Some(package) = package_of(attribute, &entry.value) {
            dependency.name = package;
        }
    }
    found.into_values().collect()
}

/// The dependencies of the workspace that are known by another name than their package's.
pub(crate) fn aliases(entries: &[Entry]) -> Aliases {
    let alias = |entry: &Entry| match entry.path.as_slice() {
        [workspace, dependencies, local, attribute @ ..]
            if workspace == "workspace" && dependencies == "dependencies" =>
        {
            Some((local.clone(), package_of(attribute, &entry.value)?))
        }
        _ => None,
    };
    entries.iter().filter_map(alias).collect()
}

/// The package that `x = { package = "…" }` or `x.package = "…"` stands for.
fn package_of(attribute: &[String], value: &str) -> Option<String> {
    let written = match attribute {
        [] => value
            .split([',', '{'])
            .find_map(|field| field.trim().strip_prefix("package")?.trim_start().strip_prefix('='))?,
        [name] if name == "package" => value,
        _ => return None,
    };
    Some(written.trim_matches([' ', '"', '\'', '}']).to_string())
}

/// `target.'cfg(unix)'.dependencies` in its three parts; a dot inside quotes divides nothing.
fn segments(key: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, letter) in unquoted(key) {
        if letter == '.' {
            parts.push(&key[start..at]);
            start = at + 1;
        }
    }
    parts.push(&key[start..]);
    parts.iter().map(|part| part.trim().trim_matches(['"', '\'']).to_string()).collect()
}

fn without_comment(line: &str) -> &str {
    match unquoted(line).into_iter().find(|(_, letter)| *letter == '#') {
        Some((at, _)) => &line[..at],
        None => line,
    }
}

/// How many brackets more are opened than closed.
fn depth_change(code: &str) -> i32 {
    let change = |(_, letter)| match letter {
        '[' | '{' => 1,
        ']' | '}' => -1,
        _ => 0,
    };
    unquoted(code).into_iter().map(change).sum()
}

/// The letters outside of quoted strings, with their positions.
fn unquoted(code: &str) -> Vec<(usize, char)> {
    let mut outside = Vec::new();
    let mut quote = None;
    let mut escaped = false;
    for (at, letter) in code.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some('"') if letter == '\\' => escaped = true,
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if letter == '"' || letter == '\'' => quote = Some(letter),
            None => outside.push((at, letter)),
        }
    }
    outside
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        dependencies(&entries(text), &Aliases::new()).into_iter().map(|found| found.name).collect()
    }

    #[test]
    fn an_empty_table_has_no_dependencies() {
        assert_eq!(
            names("[package]\nname = \"x\"\n\n# None.\n[dependencies]\n\n[lints]\nworkspace = true\n"),
            [""; 0]
        );
    }

    #[test]
    fn every_way_to_write_a_dependency_is_read() {
        assert_eq!(names("[dependencies]\ntokio = \"1\"\n"), ["tokio"]);
        assert_eq!(names("[dependencies]\ntokio.workspace = true\n"), ["tokio"]);
        assert_eq!(names("[dependencies.tokio]\nversion = \"1\"\nfeatures = []\n"), ["tokio"]);
        assert_eq!(names("dependencies.tokio = \"1\"\n"), ["tokio"]);
        assert_eq!(names("[build-dependencies]\ncc = \"1\"\n"), ["cc"]);
        assert_eq!(names("[target.'cfg(not(a.b))'.dependencies]\nlibc = \"0.2\"\n"), ["libc"]);
        assert_eq!(
            names("[target.x86_64-unknown-linux-gnu.dependencies.libc]\nversion = \"0.2\"\n"),
            ["libc"]
        );
    }

    #[test]
    fn a_dependency_of_the_tests_is_told_apart() {
        let text = "[dev-dependencies]\nproptest = \"1\"\n";
        let found = dependencies(&entries(text), &Aliases::new());
        assert_eq!(found, [Dependency { name: "proptest".to_string(), dev: true, line: 2 }]);
    }

    #[test]
    fn a_renamed_dependency_is_known_by_its_package() {
        assert_eq!(names("[dependencies]\nrt = { version = \"1\", package = \"tokio\" }\n"), ["tokio"]);
        assert_eq!(names("[dependencies.rt]\nversion = \"1\"\npackage = \"tokio\"\n"), ["tokio"]);
        let aliases =
            aliases(&entries("[workspace.dependencies]\nrt = { package = \"tokio\", version = \"1\" }\n"));
        let found = dependencies(&entries("[dependencies]\nrt.workspace = true\n"), &aliases);
        assert_eq!(found[0].name, "tokio");
    }

    #[test]
    fn a_value_over_several_lines_hides_nothing_and_adds_nothing() {
        let text = "[dependencies]\na = { version = \"1\", features = [\n  \"x\", # = ]\n] }\nb = \"2\"\n";
        assert_eq!(names(text), ["a", "b"]);
    }

    #[test]
    fn comments_and_other_tables_are_not_dependencies() {
        assert_eq!(
            names("[dependencies]\n# tokio = \"1\"\n[features]\ntokio = []\n[[bin]]\nname = \"x\"\n"),
            [""; 0]
        );
        assert_eq!(names("[package]\ndescription = \"a # b = [\"\n[dependencies]\na = \"1\"\n"), ["a"]);
    }
}
