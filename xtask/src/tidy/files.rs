//! Which files the rules look at, and their text.

use std::fs;
use std::path::Path;

use super::Problem;
use crate::failure::Failure;

/// One text file of the repository.
pub(super) struct Source {
    /// Relative to the root, with `/` on every system.
    pub(super) path: String,
    pub(super) text: String,
}

/// Kinds of file that people write here, and that the rules of `text.rs` are for.
const ENDINGS: &[&str] = &[".rs", ".md", ".toml", ".sql"];

/// Folders that hold what was made or fetched, not written. `.tenure` is where `tenure up` keeps
/// its cluster.
const NOT_OURS: &[&str] = &[".git", "target", "node_modules", ".tenure"];

/// Reads every file, in order of path. One that is not UTF-8 is a problem, not the end of the
/// check.
///
/// Walks folders rather than asking git, which a machine that only builds may not have.
pub(super) fn read(root: &Path) -> Result<(Vec<Source>, Vec<Problem>), Failure> {
    let mut paths = Vec::new();
    walk(root, "", &mut paths)?;
    paths.sort();
    let mut sources = Vec::new();
    let mut problems = Vec::new();
    for path in paths {
        let bytes = fs::read(root.join(&path)).map_err(|error| unreadable(&path, &error))?;
        match String::from_utf8(bytes) {
            Ok(text) => sources.push(Source { path, text }),
            Err(_) => problems.push(Problem::error(&path, None, "is not UTF-8")),
        }
    }
    Ok((sources, problems))
}

fn walk(folder: &Path, prefix: &str, paths: &mut Vec<String>) -> Result<(), Failure> {
    // Cargo marks its target folder by this file, wherever CARGO_TARGET_DIR puts it.
    if folder.join("CACHEDIR.TAG").exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder).map_err(|error| unreadable(prefix, &error))? {
        let entry = entry.map_err(|error| unreadable(prefix, &error))?;
        let kind = entry.file_type().map_err(|error| unreadable(prefix, &error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if kind.is_dir() && !NOT_OURS.contains(&name.as_str()) {
            walk(&entry.path(), &format!("{path}/"), paths)?;
        } else if kind.is_file() && ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            paths.push(path);
        }
    }
    Ok(())
}

fn unreadable(path: &str, error: &std::io::Error) -> Failure {
    Failure::Error(format!("tidy: cannot read `{path}`: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_what_was_made_is_not() {
        let root = std::env::temp_dir().join(format!("tenure-xtask-files-{}", std::process::id()));
        let write = |path: &str, bytes: &[u8]| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        write("b/src/lib.rs", b"// b");
        write("a.md", b"# a");
        write("bad.md", b"\xff");
        write("picture.svg", b"<svg/>");
        write("target/debug/made.rs", b"");
        write("elsewhere/CACHEDIR.TAG", b"");
        write("elsewhere/made.rs", b"");
        let (sources, problems) = read(&root).unwrap();
        fs::remove_dir_all(&root).unwrap();
        let paths: Vec<&str> = sources.iter().map(|source| source.path.as_str()).collect();
        assert_eq!(paths, ["a.md", "b/src/lib.rs"]);
        assert_eq!(problems, [Problem::error("bad.md", None, "is not UTF-8")]);
    }
}
