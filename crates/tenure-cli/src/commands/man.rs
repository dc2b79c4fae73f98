//! `tenure man`: the help of every command as manual pages.
//!
//! A page says what `--help` says, from the same definition, so that the two cannot differ. The
//! text after the options there (examples, exit codes) becomes sections of its own here.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man as Page;
use clap_mangen::roff::{Roff, roman};
use serde_json::json;

use crate::arguments::{Arguments, Common};
use crate::failure::{Failure, messages};
use crate::output::{Answer, many};

/// Write the manual pages.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure man --out /usr/share/man/man1
  tenure man --out /tmp/pages && man /tmp/pages/tenure-run.1

Exit codes: 0 written, 2 the folder cannot be written.")]
pub(crate) struct Man {
    /// The folder to write them into, one page for each command; made if it is missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

impl Man {
    /// Writes them.
    pub(crate) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let cannot = |error: std::io::Error| messages::pages_unwritable(self.out.display(), error);
        fs::create_dir_all(&self.out).map_err(cannot)?;
        let pages = pages()?;
        for (name, text) in &pages {
            fs::write(self.out.join(name), text).map_err(cannot)?;
        }
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        let count = many(u64::try_from(names.len()).unwrap_or(u64::MAX), "page", "pages");
        Ok(Answer::new(
            common.output,
            || json!({ "folder": self.out, "pages": names }),
            || format!("{count} in {}\n", self.out.display()),
        ))
    }
}

/// Every page: the name of its file, and its text.
fn pages() -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut root = Arguments::command();
    root.build();
    let mut pages = Vec::new();
    collect(&root, &mut pages).map_err(messages::script_not_text)?;
    Ok(pages)
}

fn collect(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> std::io::Result<()> {
    let (name, text) = page(command)?;
    pages.push((name, text));
    let shown = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    shown.filter(|inner| inner.get_name() != "help").try_for_each(|inner| collect(inner, pages))
}

fn page(command: &Command) -> std::io::Result<(String, Vec<u8>)> {
    let after = command
        .get_after_long_help()
        .or(command.get_after_help())
        .map(ToString::to_string)
        .unwrap_or_default();
    let source = concat!("tenure ", env!("CARGO_PKG_VERSION"));
    let page = Page::new(command.clone()).source(source).manual("Tenure");
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if command.has_subcommands() {
        page.render_subcommands_section(&mut text)?;
    }
    sections(&after).to_writer(&mut text)?;
    Ok((page.get_filename(), text))
}

/// The text after the options, each heading a section. Lines stay as they are: most are commands.
fn sections(after: &str) -> Roff {
    let mut roff = Roff::new();
    let mut within = String::new();
    for line in after.lines().filter(|line| !line.trim().is_empty()) {
        let (head, text) = headed(line).unwrap_or(("", line));
        let head = match head {
            "" if within.is_empty() => "NOTES".to_owned(),
            "" => within.clone(),
            "Exit codes" => "EXIT STATUS".to_owned(),
            head => head.to_uppercase(),
        };
        if head != within {
            roff.control("SH", [head.as_str()]);
            roff.control("nf", []);
            within = head;
        }
        if !text.is_empty() {
            roff.text([roman(text)]);
        }
    }
    roff.control("fi", []);
    roff
}

/// `Exit codes: 0 …`: a heading of a word or two, and what follows it. A sentence with a colon in
/// it is none.
fn headed(line: &str) -> Option<(&str, &str)> {
    let (head, text) = line.split_once(':')?;
    let is_head = head.split(' ').count() <= 3 && head.chars().all(|c| c.is_ascii_alphabetic() || c == ' ');
    (is_head && !head.starts_with(' ')).then(|| (head, text.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_and_exit_codes_become_sections_whose_lines_stay_apart() {
        let after =
            "Examples:\n  tenure a\n  tenure b: c\n\nFaults, if any: none.\nExit codes: 0 yes,\n1 no.";
        let text = sections(after).to_roff();
        let expected = ".SH EXAMPLES\n.nf\n  tenure a\n  tenure b: c\nFaults, if any: none.\n\
                        .SH \"EXIT STATUS\"\n.nf\n0 yes,\n1 no.\n.fi\n";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn the_hidden_command_has_no_page() {
        let names: Vec<String> = pages().unwrap().into_iter().map(|(name, _)| name).collect();
        assert!(names.contains(&"tenure.1".to_owned()) && names.contains(&"tenure-lab-run.1".to_owned()));
        assert!(!names.iter().any(|name| name.contains("sentinel") || name.contains("help")), "{names:?}");
    }
}
