//! README and ARCHITECTURE name only what exists: a document that sends its reader to a file that
//! is gone is worse than none.

use super::Problem;
use super::files::Source;

/// The documents that describe the repository, and must be there.
const DOCUMENTS: &[&str] = &["README.md", "ARCHITECTURE.md"];

/// How a path of this repository begins.
const FOLDERS: &[&str] = &["crates/", "xtask/", "scenarios/", "docs/", "fuzz/", ".ci/"];

/// Judges the documents; `exists` answers for a path relative to the root.
pub(super) fn check(sources: &[Source], exists: impl Fn(&str) -> bool) -> Vec<Problem> {
    let mut problems = Vec::new();
    for document in DOCUMENTS {
        match sources.iter().find(|source| source.path == *document) {
            None => problems.push(Problem::error(document, None, "is missing")),
            Some(source) => problems.extend(check_document(document, &source.text, &exists)),
        }
    }
    problems
}

fn check_document(document: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (line, token) in mentions(text) {
        let path = checkable(token);
        if !exists(path) {
            problems.push(Problem::error(document, line, format!("`{token}` does not exist")));
        }
    }
    problems
}

/// The words in `code spans` and the targets of links that begin like a path, with their lines.
///
/// Fenced blocks are left alone: they show commands, and a command may name a file that it will
/// make.
fn mentions(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let spans = line.split('`').skip(1).step_by(2).flat_map(str::split_whitespace);
            let links = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
            let paths = spans.chain(links).map(|word| word.trim_start_matches("./"));
            found.extend(paths.filter(|word| begins_like_a_path(word)).map(|word| (index + 1, word)));
        }
    }
    found
}

fn begins_like_a_path(word: &str) -> bool {
    FOLDERS.iter().any(|folder| word.starts_with(folder))
}

/// The part of a mention that must exist: without a line number, an anchor or a full stop, and up
/// to the first part that stands for many (`*`, `<name>`, `{a,b}`, `…`, `NAME`).
fn checkable(token: &str) -> &str {
    let path = token.split(['#', ':']).next().unwrap_or(token).trim_end_matches(['.', ',', ';']);
    let mut end = 0;
    for part in path.split_inclusive('/') {
        if part.contains(['*', '<', '{', '…']) || part.split('.').next() == Some("NAME") {
            return &path[..end];
        }
        end += part.len();
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    const THERE: &[&str] =
        &["crates/", "crates/tenure/", "crates/tenure/src/lib.rs", "scenarios/", "xtask/", ".ci/run"];

    fn whats(text: &str) -> Vec<String> {
        let exists = |path: &str| THERE.contains(&path);
        check_document("README.md", text, exists).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_path_that_exists_is_fine_in_every_form() {
        for text in [
            "See `crates/tenure/src/lib.rs`.",
            "See `crates/tenure/src/lib.rs:12`, `./crates/tenure/` and `crates/`.",
            "[the library](crates/tenure/src/lib.rs#L1), [CI](.ci/run \"what runs\")",
            "Run `bash .ci/run` first.",
        ] {
            assert_eq!(whats(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_path_that_is_gone_is_named_with_its_line() {
        assert_eq!(
            whats("one\n`xtask/` and `crates/gone/src`"),
            ["README.md:2: `crates/gone/src` does not exist"]
        );
        assert_eq!(whats("[it](docs/gone.md)"), ["README.md:1: `docs/gone.md` does not exist"]);
        assert_eq!(whats("`tenure lab replay scenarios/gone.txt`").len(), 1);
    }

    #[test]
    fn a_placeholder_is_checked_up_to_where_it_stands_for_many() {
        for text in
            ["`scenarios/NAME.scenario`", "`crates/*/src`", "`crates/tenure/{a,b}.rs`", "`scenarios/<name>`"]
        {
            assert_eq!(whats(text), [""; 0], "{text}");
        }
        assert_eq!(whats("`docs/*.md`").len(), 1, "the folder itself is gone");
    }

    #[test]
    fn other_code_and_fenced_blocks_are_left_alone() {
        assert_eq!(whats("`src/lib.rs` `target/doc` crates/gone `https://example.org/docs/x`"), [""; 0]);
        assert_eq!(whats("```\n`crates/gone`\n```\n"), [""; 0]);
        assert_eq!(whats("```\n```\n`crates/gone`\n").len(), 1);
    }

    #[test]
    fn a_missing_document_is_a_problem() {
        let readme = Source { path: "README.md".to_string(), text: "# Tenure".to_string() };
        let problems = check(&[readme], |_| true);
        assert_eq!(problems, [Problem::error("ARCHITECTURE.md", None, "is missing")]);
        assert_eq!(check(&[], |_| true).len(), 2);
    }
}
