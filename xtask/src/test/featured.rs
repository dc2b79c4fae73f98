//! Checks and tests that need a Cargo feature of the library. They are built by themselves:
//! everything else has the library as it ships.

use super::options::Options;
use super::program::{Kind, Program};

const PACKAGE: &str = "tenure";
const FEATURE: &str = "test-util";

/// The one test program that needs it.
const PROGRAM: &str = "testing";

/// The arguments of cargo that name the crate with its feature.
pub(super) const CRATE: [&str; 4] = ["--package", PACKAGE, "--features", FEATURE];

/// Whether this machine can build it.
pub(super) fn builds() -> bool {
    !super::LINUX_ONLY.contains(&PACKAGE) || cfg!(target_os = "linux")
}

/// Whether anything besides it is asked for.
pub(super) fn is_not_all(options: &Options) -> bool {
    options.programs.is_empty() || options.programs.iter().any(|name| name != PROGRAM)
}

/// The test programs that are asked for and need no feature.
pub(super) fn others(options: &Options) -> impl Iterator<Item = &String> {
    options.programs.iter().filter(|name| *name != PROGRAM)
}

/// The arguments of `cargo test` that build the program, if it is asked for.
pub(super) fn program(options: &Options) -> Option<Vec<&'static str>> {
    let has = |list: &[String], name| list.is_empty() || list.iter().any(|one| one == name);
    let wanted = builds() && has(&options.packages, PACKAGE) && has(&options.programs, PROGRAM);
    wanted.then(|| [&CRATE[..], &["--test", PROGRAM]].concat())
}

/// Whether `cargo test` must be told of the feature to run this program.
pub(super) fn is_needed_by(program: &Program) -> bool {
    (program.package.as_str(), program.kind, program.name.as_str()) == (PACKAGE, Kind::Test, PROGRAM)
}

/// The arguments of cargo for documentation tests of these crates.
pub(super) fn of_libraries(libraries: &[String]) -> Vec<String> {
    let has_it = libraries.iter().any(|name| name == PACKAGE);
    let words = has_it.then(|| ["--features".to_owned(), format!("{PACKAGE}/{FEATURE}")]);
    words.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(packages: &[&str], programs: &[&str]) -> Options {
        let strings = |words: &[&str]| words.iter().map(ToString::to_string).collect();
        Options { packages: strings(packages), programs: strings(programs), filters: Vec::new() }
    }

    #[test]
    fn the_program_is_built_with_its_feature_and_the_others_without() {
        let all = options(&[], &[]);
        assert_eq!(program(&all).is_some(), builds());
        assert!(is_not_all(&all) && others(&all).next().is_none());
        let both = options(&["tenure"], &["disk", PROGRAM]);
        assert!(is_not_all(&both) && others(&both).eq(["disk"]));
        assert_eq!(program(&both).is_some(), builds());
        let alone = options(&[], &[PROGRAM]);
        assert!(!is_not_all(&alone) && program(&alone).is_some() == builds());
        assert_eq!(program(&options(&["tenure-cli"], &[])), None);
        assert_eq!(program(&options(&[], &["disk"])), None);
    }

    #[test]
    fn documentation_of_the_library_is_tested_with_the_feature() {
        assert_eq!(of_libraries(&["tenure".to_owned()]), ["--features", "tenure/test-util"]);
        assert!(of_libraries(&["tenure-proto".to_owned()]).is_empty());
    }
}
