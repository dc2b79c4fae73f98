//! `cargo xtask package`: the Debian package, from nothing: the command, then what the command
//! itself writes (manual pages, completions), then all of it by cargo-deb. The symbols are beside
//! it, in `target/release/package/tenure.debug`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::{cargo, finish, target};

/// Shells, and what their completions are called.
const SHELLS: &[(&str, &str)] = &[("bash", "tenure"), ("zsh", "_tenure"), ("fish", "tenure.fish")];

pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    if !has_cargo_deb(root) {
        return Err(Failure::Error("cargo-deb is not here: `cargo install cargo-deb --locked`".to_owned()));
    }
    let mut build = cargo(root);
    build.args(["build", "--profile", "symbols", "--package", "tenure-cli"]);
    finish(build, "the build")?;
    let target = target(root)?;
    let with_symbols = target.join("symbols").join("tenure");
    let release = target.join("release");
    let tenure = release.join("tenure");
    let made = release.join("package");
    match fs::remove_dir_all(&made) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(cannot(&made, &error)),
        _ => {} // Pages of commands that are gone must not be shipped.
    }
    fs::create_dir_all(&made).map_err(|error| cannot(&made, &error))?;
    split_symbols(&with_symbols, &tenure, &made.join("tenure.debug"))?;
    let mut man = Command::new(&tenure);
    man.args(["man", "--out"]).arg(made.join("man"));
    finish(man, "`tenure man`")?;
    compress(&made.join("man"))?;
    let completions = made.join("completions");
    fs::create_dir_all(&completions).map_err(|error| cannot(&completions, &error))?;
    for (shell, file) in SHELLS {
        let path = completions.join(file);
        let out = fs::File::create(&path).map_err(|error| cannot(&path, &error))?;
        let mut command = Command::new(&tenure);
        command.args(["completions", shell]).stdout(out);
        finish(command, &format!("`tenure completions {shell}`"))?;
    }
    let mut deb = cargo(root);
    deb.args(["deb", "--package", "tenure-cli", "--no-build", "--no-strip"]);
    finish(deb, "`cargo deb`")
}

/// Puts the symbols of a program into a file of their own, for the reader of a backtrace, and the
/// program without them where cargo-deb looks. The program names the file, so that debuggers find
/// it beside the program or under `/usr/lib/debug`.
fn split_symbols(whole: &Path, program: &Path, symbols: &Path) -> Result<(), Failure> {
    let mut keep = Command::new("objcopy");
    keep.arg("--only-keep-debug").arg(whole).arg(symbols);
    finish(keep, "`objcopy --only-keep-debug`")?;
    let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
    link.push(symbols);
    let mut strip = Command::new("objcopy");
    strip.arg("--strip-all").arg(link).arg(whole).arg(program);
    finish(strip, "`objcopy --strip-all`")
}

/// As Debian has manual pages; without a time stamp, so that the same pages make the same bytes.
fn compress(folder: &Path) -> Result<(), Failure> {
    let pages = fs::read_dir(folder).map_err(|error| cannot(folder, &error))?;
    let pages = pages.map(|page| page.map(|page| page.path())).collect::<Result<Vec<_>, _>>();
    let mut gzip = Command::new("gzip");
    gzip.args(["--best", "--no-name"]).args(pages.map_err(|error| cannot(folder, &error))?);
    finish(gzip, "`gzip`")
}

fn has_cargo_deb(root: &Path) -> bool {
    let mut command = cargo(root);
    command.args(["deb", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn cannot(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Error(format!("{}: {error}", path.display()))
}
