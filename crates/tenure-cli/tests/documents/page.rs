//! A page of the documents: its needs, and its blocks of commands with their marks.
//!
//! `docs/README.md` says how blocks are marked. A mark that means nothing is an error here: a typo
//! would otherwise change what runs.

use std::fs;
use std::path::{Path, PathBuf};

/// The languages of blocks. Commands are `sh`; a transcript of commands is `console`.
const LANGUAGES: &[&str] = &["sh", "console", "text", "ini", "json", "python", "rust", "sql", "toml", "yaml"];

/// How a block runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// To its end, before the next.
    Run,
    /// Until the page ends.
    Background,
    /// Not at all.
    NotRun,
}

/// One `sh` block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The line of its first command, counted from 1.
    pub(crate) line: usize,
    pub(crate) mark: Mark,
    pub(crate) commands: Vec<String>,
}

/// A page that was read.
pub(crate) struct Page {
    /// Its path in the repository.
    pub(crate) name: String,
    pub(crate) needs: Vec<String>,
    pub(crate) blocks: Vec<Block>,
}

impl Page {
    /// Reads a page, named by its path in the repository.
    pub(crate) fn read(name: &str) -> Self {
        let text = fs::read_to_string(repository().join(name));
        Self::parse(name, &text.unwrap_or_else(|error| panic!("{name}: {error}")))
    }

    /// README and every page under `docs/`.
    pub(crate) fn all() -> Vec<Self> {
        let mut names = vec!["README.md".to_owned()];
        collect("docs", &mut names);
        names.iter().map(|name| Self::read(name)).collect()
    }

    /// Takes a page apart; panics at the line that it does not understand.
    pub(crate) fn parse(name: &str, text: &str) -> Self {
        let mut page = Self { name: name.to_owned(), needs: Vec::new(), blocks: Vec::new() };
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        let mut mark = None;
        while let Some((line, text)) = lines.next() {
            let at = format!("{name}:{line}");
            if let Some(language) = text.trim_start().strip_prefix("```") {
                assert!(LANGUAGES.contains(&language), "{at}: a block of '{language}': commands are 'sh'");
                assert!(language == "sh" || mark.is_none(), "{at}: only blocks of 'sh' have such a mark");
                let commands = take_block(&mut lines, text.len() - text.trim_start().len());
                let mark = mark.take().unwrap_or(Mark::Run);
                if language == "sh" {
                    page.blocks.push(Block { line: line + 1, mark, commands });
                }
                continue;
            }
            assert!(mark.is_none(), "{at}: a mark stands in the line above, and no block follows it");
            if let Some(needs) = comment(text).and_then(|text| text.strip_prefix("needs:")) {
                page.needs.extend(needs.split(',').map(|need| need.trim().to_owned()));
            }
            mark = comment(text).and_then(|text| mark_of(&at, text));
        }
        page
    }

    /// The number of blocks with this mark.
    pub(crate) fn count(&self, mark: Mark) -> usize {
        self.blocks.iter().filter(|block| block.mark == mark).count()
    }
}

/// The lines of a block up to its closing fence, without the indentation of the list it stands in.
fn take_block<'a>(lines: &mut impl Iterator<Item = (usize, &'a str)>, indent: usize) -> Vec<String> {
    let body = lines.map(|(_, line)| line).take_while(|line| line.trim() != "```");
    body.map(|line| line.get(indent..).unwrap_or_default().to_owned()).collect()
}

/// The text of a comment that is a line of its own.
fn comment(line: &str) -> Option<&str> {
    line.trim().strip_prefix("<!--")?.strip_suffix("-->").map(str::trim)
}

/// How a comment says that the block below it runs; `None` for a comment on other things.
fn mark_of(at: &str, comment: &str) -> Option<Mark> {
    let word = comment.split([' ', ':']).next().unwrap_or_default();
    match (comment, word) {
        ("background", _) => Some(Mark::Background),
        (_, "not") => {
            let reason = comment.strip_prefix("not run:").map(str::trim).unwrap_or_default();
            assert!(!reason.is_empty(), "{at}: '<!-- not run: REASON -->'");
            Some(Mark::NotRun)
        }
        // Comments that other tests read, or that pages have for their writers.
        (_, "needs" | "schema" | "transcript" | "end" | "tables.md") => None,
        _ => panic!("{at}: '{comment}' is no mark: see docs/README.md"),
    }
}

/// The pages in a folder and those within it, in the order of their names.
fn collect(folder: &str, names: &mut Vec<String>) {
    let entries = fs::read_dir(repository().join(folder)).expect("the documents are there");
    let mut entries: Vec<_> = entries.map(|entry| entry.expect("it can be listed")).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            collect(&name, names);
        } else if name.ends_with(".md") {
            names.push(name);
        }
    }
}

/// The folder of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("it is there")
}
