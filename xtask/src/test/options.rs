//! The arguments of `cargo xtask test`: everything, or a part for a developer who waits for it.

use crate::failure::Failure;

/// Which tests are asked for. Empty lists ask for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Crates, as `-p` names them.
    pub(super) packages: Vec<String>,
    /// Integration tests, as `--test` names them.
    pub(super) programs: Vec<String>,
    /// A test runs if its name contains one of these.
    pub(super) filters: Vec<String>,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Options, Failure> {
        let mut options = Options::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let list = match argument.as_str() {
                "-p" | "--package" => &mut options.packages,
                "--test" => &mut options.programs,
                option if option.starts_with('-') => return Err(unknown(option)),
                filter => {
                    options.filters.push(filter.to_string());
                    continue;
                }
            };
            let missing = || Failure::Error(format!("`test {argument}` lacks a name after it"));
            list.push(rest.next().ok_or_else(missing)?.clone());
        }
        Ok(options)
    }

    /// Whether this is the complete run: set-up, every check, every test.
    pub(super) fn are_empty(&self) -> bool {
        *self == Options::default()
    }

    /// Whether a test of this name is asked for.
    pub(super) fn want(&self, test: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| test.contains(filter))
    }
}

fn unknown(option: &str) -> Failure {
    Failure::Error(format!(
        "`test` has no option `{option}`: it takes -p CRATE, --test NAME and names of tests"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, Failure> {
        Options::parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn nothing_asks_for_everything() {
        let options = parse("").unwrap();
        assert!(options.are_empty() && options.want("any"));
    }

    #[test]
    fn crates_programs_and_names_narrow_the_run() {
        let options = parse("-p tenure --package xtask --test disk a_full b").unwrap();
        assert_eq!(options.packages, ["tenure", "xtask"]);
        assert_eq!(options.programs, ["disk"]);
        assert!(!options.are_empty());
        assert!(options.want("that_is_a_full_disk") && !options.want("c"));
    }

    #[test]
    fn an_unknown_option_and_a_missing_name_are_errors() {
        for line in ["--fast", "-p", "-p tenure --test"] {
            let failure = parse(line).unwrap_err();
            assert_eq!(failure.code(), 2, "{line}");
        }
    }
}
