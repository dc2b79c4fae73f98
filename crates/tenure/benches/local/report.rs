//! The report: tables in Markdown, printed as they are made, and figures to draw plots from.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::PathBuf;

use tenure_testkit::numbers::Numbers;

use crate::holes::now;

/// In nanoseconds.
const TELL_EVERY: u64 = 10_000_000_000;

/// Everything that was told so far, and where it is kept.
pub(crate) struct Report {
    tables: String,
    figures: String,
    folder: Option<PathBuf>,
}

impl Report {
    /// Kept in `folder`, if there is one; a folder that cannot be made is an error now and not
    /// after half an hour.
    pub(crate) fn new(folder: Option<PathBuf>) -> io::Result<Self> {
        folder.as_ref().map(fs::create_dir_all).transpose()?;
        Ok(Self { tables: String::new(), figures: String::new(), folder })
    }

    /// Tells people something.
    pub(crate) fn say(&mut self, text: &str) {
        println!("{text}");
        self.tables.push_str(text);
        self.tables.push('\n');
    }

    /// Notes figures for the drawing: a line of words.
    pub(crate) fn note(&mut self, words: &str) {
        self.figures.push_str(words);
        self.figures.push('\n');
    }

    /// Notes a whole distribution.
    pub(crate) fn note_all(&mut self, words: &str, values: &[f64]) {
        let mut line = words.to_owned();
        values.iter().for_each(|value| _ = write!(line, " {value:.3}"));
        self.note(&line);
    }

    /// Writes `tables.md` and `figures.txt` into the folder.
    pub(crate) fn keep(&self) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        fs::write(folder.join("tables.md"), &self.tables)?;
        fs::write(folder.join("figures.txt"), &self.figures)
    }
}

/// Mean, median, 99 %.
#[allow(clippy::cast_precision_loss, reason = "for people to read")]
pub(crate) fn summary(values: &[f64]) -> [f64; 3] {
    let numbers = Numbers::new(values.to_vec());
    [values.iter().sum::<f64>() / values.len() as f64, numbers.median(), numbers.at(99)]
}

/// How far a long measurement is, now and then, for those who wait.
pub(crate) struct Progress {
    what: String,
    of: usize,
    /// When it was last told, on the boot clock.
    told: u64,
}

impl Progress {
    pub(crate) fn new(what: String, of: usize) -> Self {
        Self { what, of, told: now() }
    }

    /// So many are done.
    pub(crate) fn at(&mut self, done: usize) {
        if now() - self.told >= TELL_EVERY {
            eprintln!("{}: {done} of {}", self.what, self.of);
            self.told = now();
        }
    }
}
