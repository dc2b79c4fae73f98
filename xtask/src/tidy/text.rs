//! Rules about one file at a time: length, white space, unfinished code, paths of one machine.

use super::Problem;

/// A file of code is split before it gets this long.
const LINES_MAX: usize = 700;

/// From here on, the next thing to add is a second file.
const LINES_WARN: usize = 500;

/// Text that no file may contain, and why. Each is put together from two halves, so that this file
/// may be checked too.
const FORBIDDEN: &[(&str, &str)] = &[
    (concat!("to", "do!("), "unfinished: write it, or leave it out"),
    (concat!("unimple", "mented!("), "unfinished: write it, or leave it out"),
    (concat!("#[ig", "nore"), "a test that does not run protects nothing: repair it, or delete it"),
    (concat!("/wo", "rk/"), "a path of one machine: name things relative to the repository"),
    (concat!("/ro", "ot/"), "a path of one machine: name things relative to the repository"),
];

/// Judges one file.
pub(super) fn check(path: &str, text: &str) -> Vec<Problem> {
    let mut problems: Vec<Problem> = check_length(path, text).into_iter().collect();
    for (index, line) in text.split('\n').enumerate() {
        problems.extend(check_line(line).map(|what| Problem::error(path, index + 1, what)));
    }
    problems
}

fn check_length(path: &str, text: &str) -> Option<Problem> {
    let lines = text.lines().count();
    if !path.ends_with(".rs") || lines <= LINES_WARN {
        None
    } else if lines <= LINES_MAX {
        Some(Problem::warning(path, format!("{lines} lines; past {LINES_MAX} it must be split")))
    } else {
        Some(Problem::error(path, None, format!("{lines} lines, but at most {LINES_MAX}: split it")))
    }
}

fn check_line(line: &str) -> impl Iterator<Item = String> {
    let without_return = line.trim_end_matches('\r');
    let white_space = [
        (without_return.len() < line.len()).then_some("Windows line end: use LF"),
        without_return.ends_with(char::is_whitespace).then_some("white space at the end of the line"),
        line.contains('\t').then_some("tab: use spaces, or \\t in a string"),
    ];
    let forbidden = FORBIDDEN
        .iter()
        .filter(|(needle, _)| line.contains(needle))
        .map(|(needle, why)| format!("`{needle}`: {why}"));
    white_space.into_iter().flatten().map(String::from).chain(forbidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(text: &str) -> Vec<String> {
        check("a.rs", text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_clean_file_has_no_problem() {
        assert_eq!(whats("//! A file.\n\nfn main() {}\n"), Vec::<String>::new());
        assert_eq!(whats(""), Vec::<String>::new());
    }

    #[test]
    fn white_space_is_named_with_its_line() {
        assert_eq!(whats("a\nb \n"), ["a.rs:2: white space at the end of the line"]);
        assert_eq!(whats("a\r\nb\n"), ["a.rs:1: Windows line end: use LF"]);
        assert_eq!(whats("\tb\n"), ["a.rs:1: tab: use spaces, or \\t in a string"]);
        assert_eq!(whats("a \r").len(), 2, "both a blank and a Windows line end");
    }

    #[test]
    fn every_forbidden_text_is_found_inside_a_line() {
        for (needle, why) in FORBIDDEN {
            let found = whats(&format!("fine\nlet x = {needle}\"\");\n"));
            assert_eq!(found, [format!("a.rs:2: `{needle}`: {why}")]);
        }
    }

    #[test]
    fn words_that_only_resemble_a_forbidden_text_are_fine() {
        assert_eq!(whats("// a todo list, work/life, the root, ignored\n"), Vec::<String>::new());
    }

    #[test]
    fn this_checker_does_not_find_itself() {
        assert_eq!(check("text.rs", include_str!("text.rs")), []);
    }

    #[test]
    fn a_long_file_warns_and_a_longer_one_fails() {
        let lines = |count: usize| "x\n".repeat(count);
        assert_eq!(whats(&lines(500)), Vec::<String>::new());
        assert_eq!(whats(&lines(501)), ["a.rs: warning: 501 lines; past 700 it must be split"]);
        assert_eq!(whats(&lines(700)), ["a.rs: warning: 700 lines; past 700 it must be split"]);
        assert_eq!(whats(&lines(701)), ["a.rs: 701 lines, but at most 700: split it"]);
    }

    #[test]
    fn a_long_document_is_no_problem() {
        assert_eq!(check("CHANGELOG.md", &"x\n".repeat(5000)), []);
    }
}
