//! Test programs: cargo builds them and says where they are; they list their own tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::featured;
use super::options::Options;
use crate::cargo;
use crate::failure::Failure;
use crate::json::Json;

/// One test program, as `cargo test` would run it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Program {
    /// The folder of its crate, in which it runs.
    pub(super) folder: PathBuf,
    pub(super) package: String,
    pub(super) kind: Kind,
    /// The name of its target.
    pub(super) name: String,
    pub(super) path: PathBuf,
}

/// Which kind of target a program tests, in the order in which cargo runs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Lib,
    Bin,
    Example,
    Test,
}

impl Program {
    /// The arguments by which `cargo test` runs this program alone.
    pub(super) fn label(&self) -> String {
        let Program { package, name, .. } = self;
        if featured::is_needed_by(self) {
            return format!("{} --test {name}", featured::CRATE.join(" "));
        }
        match self.kind {
            Kind::Lib => format!("-p {package} --lib"),
            Kind::Bin => format!("-p {package} --bin {name}"),
            Kind::Example => format!("-p {package} --example {name}"),
            Kind::Test => format!("-p {package} --test {name}"),
        }
    }

    /// Its name in `xtask/needs.txt`: that of an integration test, or `lib`, `bin`, `example`.
    pub(super) fn short(&self) -> &str {
        match self.kind {
            Kind::Lib => "lib",
            Kind::Bin => "bin",
            Kind::Example => "example",
            Kind::Test => &self.name,
        }
    }

    /// A command that runs it, with the folder and the variable that cargo gives to a test.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder).stdin(Stdio::null());
        command
    }

    /// The names of all its tests, in the order in which it starts them.
    pub(super) fn list(&self) -> Result<Vec<String>, Failure> {
        let output = self.command().args(["--list", "--format", "terse"]).output();
        let output = output
            .map_err(|error| Failure::Error(format!("{} could not be started: {error}", self.label())))?;
        if !output.status.success() {
            return Err(Failure::Broken(format!(
                "{} cannot list its tests ({})",
                self.label(),
                output.status
            )));
        }
        Ok(listed(&String::from_utf8_lossy(&output.stdout)))
    }
}

fn listed(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.strip_suffix(": test")).map(String::from).collect()
}

/// Builds what is asked for, with cargo's messages on our standard error; gives the programs in
/// cargo's order.
pub(super) fn build(root: &Path, options: &Options, crates: &[String]) -> Result<Vec<Program>, Failure> {
    let mut built = Vec::new();
    if featured::is_not_all(options) {
        let named = featured::others(options).flat_map(|program| ["--test", program]);
        let words: Vec<&str> = crates.iter().map(String::as_str).chain(named).collect();
        built.extend(build_with(root, &words)?);
    }
    if let Some(words) = featured::program(options) {
        built.extend(build_with(root, &words)?);
    }
    built.sort();
    Ok(built)
}

fn build_with(root: &Path, words: &[&str]) -> Result<Vec<Program>, Failure> {
    let mut command = cargo(root);
    command.args(["test", "--no-run", "--message-format", "json-render-diagnostics"]).args(words);
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| Failure::Error(format!("cargo could not be started: {error}")))?;
    if !output.status.success() {
        return Err(Failure::Broken(format!("the tests cannot be built ({})", output.status)));
    }
    Ok(programs(&String::from_utf8_lossy(&output.stdout)))
}

/// The test programs among cargo's messages, one JSON object a line.
fn programs(messages: &str) -> Vec<Program> {
    let mut programs: Vec<Program> =
        messages.lines().filter_map(Json::parse).filter_map(|message| program(&message)).collect();
    programs.sort();
    programs
}

/// `None` for a message about anything else, such as an example that is built for tests to start.
fn program(message: &Json) -> Option<Program> {
    let is_test = message.at(&["profile", "test"]) == Some(&Json::Bool(true));
    let path = message.text_at("executable").filter(|_| is_test)?;
    let folder = Path::new(message.text_at("manifest_path")?).parent()?;
    let target = message.get("target")?;
    let kind = match target.get("kind")?.items().first()?.text()? {
        "test" => Kind::Test,
        "bin" => Kind::Bin,
        "example" => Kind::Example,
        _ => Kind::Lib,
    };
    Some(Program {
        folder: folder.to_path_buf(),
        // In this workspace a crate has the name of its folder.
        package: folder.file_name()?.to_string_lossy().into_owned(),
        kind,
        name: target.text_at("name")?.to_string(),
        path: PathBuf::from(path),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(kind: &str, name: &str, test: bool) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","manifest_path":"/r/crates/tenure/Cargo.toml","target":{{"kind":["{kind}"],"name":"{name}"}},"profile":{{"test":{test}}},"executable":"/t/{name}-1"}}"#
        )
    }

    #[test]
    fn test_programs_are_found_among_other_messages_in_the_order_of_cargo() {
        let messages = [
            artifact("test", "disk", true),
            artifact("example", "kv", false),
            artifact("lib", "tenure", true),
            r#"{"reason":"build-finished","success":true}"#.to_string(),
            r#"{"reason":"compiler-artifact","profile":{"test":true},"executable":null}"#.to_string(),
        ];
        let programs = programs(&messages.join("\n"));
        let labels: Vec<String> = programs.iter().map(Program::label).collect();
        assert_eq!(labels, ["-p tenure --lib", "-p tenure --test disk"]);
        assert_eq!(programs[1].folder, Path::new("/r/crates/tenure"));
        assert_eq!(programs[1].path, Path::new("/t/disk-1"));
        assert_eq!((programs[0].short(), programs[1].short()), ("lib", "disk"));
    }

    #[test]
    fn a_list_names_tests_and_not_benchmarks() {
        assert_eq!(listed("a::b: test\nc: benchmark\nd: test\n"), ["a::b", "d"]);
    }

    #[test]
    fn this_very_program_can_list_its_tests() {
        let path = std::env::current_exe().unwrap();
        let folder = std::env::temp_dir();
        let (package, name) = ("xtask".to_string(), "xtask".to_string());
        let this = Program { folder, package, kind: Kind::Bin, name, path };
        let list = this.list().unwrap();
        assert!(list.iter().any(|test| test.ends_with("this_very_program_can_list_its_tests")), "{list:?}");
    }
}
