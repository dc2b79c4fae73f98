//! The findings that the ratchet counts: wide lines, banned phrases, and sentences that begin with
//! "Who" or "What" and ask nothing.

use super::prose::{Origin, Paragraph, paragraphs};

/// Comments and Markdown have at most so many columns.
const COLUMNS: usize = 100;

/// So many words of a sentence are shown.
const SHOWN: usize = 6;

const BANNED: &str = include_str!("../../banned.txt");

/// One kind of finding; each has its own count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Finding {
    Width,
    Phrase,
    Who,
    What,
}

impl Finding {
    pub(super) const ALL: [Finding; 4] = [Finding::Width, Finding::Phrase, Finding::Who, Finding::What];

    pub(super) fn name(self) -> &'static str {
        match self {
            Finding::Width => "width",
            Finding::Phrase => "phrase",
            Finding::Who => "who",
            Finding::What => "what",
        }
    }
}

/// One place that counts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) finding: Finding,
    pub(super) origin: Origin,
    /// From 1.
    pub(super) line: usize,
    /// The words that count.
    pub(super) words: String,
}

/// Every place of a file that counts.
pub(super) fn places(path: &str, text: &str) -> Vec<Place> {
    let banned = banned(BANNED);
    let mut places = wide_lines(path, text);
    for paragraph in paragraphs(path, text) {
        let joined = Joined::new(&paragraph);
        places.extend(joined.phrases(&banned));
        places.extend(joined.openings());
    }
    places
}

fn banned(list: &str) -> Vec<&str> {
    list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// Lines of comments and of Markdown that are too wide. Rows of tables and code cannot be broken.
fn wide_lines(path: &str, text: &str) -> Vec<Place> {
    let mut fenced = false;
    let mut places = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let begun = line.trim_start();
        let origin = match begun.get(..3) {
            _ if path.ends_with(".md") => Origin::Markdown,
            Some("//!") => Origin::Header,
            Some("///") => Origin::Doc,
            _ => Origin::Comment,
        };
        let body = begun.trim_start_matches(['/', '!']).trim_start();
        fenced ^= body.starts_with("```") && (path.ends_with(".md") || begun.starts_with("//"));
        let mark = if path.ends_with(".rs") { "//" } else { "#" };
        let counts = path.ends_with(".md") || begun.starts_with(mark);
        if counts && !fenced && !body.starts_with('|') && line.chars().count() > COLUMNS {
            let words = format!("{} columns", line.chars().count());
            places.push(Place { finding: Finding::Width, origin, line: index + 1, words });
        }
    }
    places
}

/// A paragraph as one text, in which sentences and phrases may go over line ends.
struct Joined {
    origin: Origin,
    text: String,
    /// Where each line begins in the text, and its number.
    starts: Vec<(usize, usize)>,
}

impl Joined {
    fn new(paragraph: &Paragraph) -> Joined {
        let (mut text, mut starts) = (String::new(), Vec::new());
        for (number, line) in &paragraph.lines {
            starts.push((text.len(), *number));
            // A literal may go on with a backslash at the end of its line.
            text.push_str(line.trim_end_matches('\\').trim_end());
            text.push(' ');
        }
        Joined { origin: paragraph.origin, text, starts }
    }

    fn place(&self, finding: Finding, at: usize, words: &str) -> Place {
        let line = self.starts.iter().rev().find(|(start, _)| *start <= at).map_or(0, |(_, number)| *number);
        Place { finding, origin: self.origin, line, words: words.to_string() }
    }

    /// Banned phrases, as whole words, in any case.
    fn phrases(&self, banned: &[&str]) -> Vec<Place> {
        let text = self.text.to_ascii_lowercase();
        let is_word =
            |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
        let mut places = Vec::new();
        for phrase in banned {
            for (at, _) in text.match_indices(phrase) {
                let (before, after) =
                    (text[..at].chars().next_back(), text[at + phrase.len()..].chars().next());
                if !is_word(before) && !is_word(after) {
                    places.push(self.place(Finding::Phrase, at, phrase));
                }
            }
        }
        places
    }

    /// Sentences that begin with one of three words and do not end with a question mark.
    fn openings(&self) -> Vec<Place> {
        let mut places = Vec::new();
        let mut begin = 0;
        for (at, letter) in self.text.char_indices() {
            let ends =
                matches!(letter, '.' | '!' | '?') && self.text[at + 1..].starts_with([' ', ')', '"', '*']);
            if ends || at + letter.len_utf8() == self.text.len() {
                let sentence = &self.text[begin..=at];
                if letter != '?' {
                    places.extend(opening(sentence).map(|finding| {
                        let skipped = sentence.len() - begun(sentence).len();
                        let words: Vec<&str> = begun(sentence).split_whitespace().take(SHOWN).collect();
                        self.place(finding, begin + skipped, &words.join(" "))
                    }));
                }
                begin = at + 1;
            }
        }
        places
    }
}

/// A sentence from its first letter on.
fn begun(sentence: &str) -> &str {
    sentence.trim_start_matches([' ', ')', '(', '"', '*', '_'])
}

fn opening(sentence: &str) -> Option<Finding> {
    // A word alone is no sentence.
    let is_opened = |rest: &str| rest.starts_with([' ', '\'', ',']) && rest.contains(char::is_alphabetic);
    let starts = |word: &str| begun(sentence).strip_prefix(word).is_some_and(is_opened);
    if starts(concat!("Who", "ever")) || starts("Who") {
        Some(Finding::Who)
    } else {
        starts("What").then_some(Finding::What)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(Finding, usize, String)> {
        places(path, text).into_iter().map(|place| (place.finding, place.line, place.words)).collect()
    }

    fn openings(text: &str) -> Vec<(Finding, usize)> {
        let openings = places("a.md", text).into_iter().filter(|place| place.finding != Finding::Phrase);
        openings.map(|place| (place.finding, place.line)).collect()
    }

    #[test]
    fn comments_and_markdown_are_wide_beyond_a_hundred_columns() {
        let wide = |before: &str, columns: usize| format!("{before}{}\n", "é".repeat(columns - before.len()));
        for (path, before) in [("a.rs", "// "), ("a.rs", "    /// "), ("a.md", ""), ("a.toml", "# ")] {
            assert_eq!(found(path, &wide(before, 100)), [], "{path} {before}");
            let expected = (Finding::Width, 1, "101 columns".to_string());
            assert_eq!(found(path, &wide(before, 101)), [expected], "{path} {before}");
        }
        assert_eq!(found("a.rs", &wide("let x = ", 105)), [], "rustfmt cares for code");
        assert_eq!(found("a.md", &wide("| ", 105)), [], "a row cannot be broken");
        assert_eq!(found("a.md", &format!("```\n{}```\n", wide("x", 105))), []);
    }

    #[test]
    fn phrases_are_found_as_whole_words_over_line_ends_and_in_any_case() {
        let (phrase, first, second) = (concat!("of ", "which"), concat!("O", "f"), concat!("whi", "ch"));
        let text = format!("// A list {first}\n// {second} one counts.\n");
        assert_eq!(found("a.rs", &text), [(Finding::Phrase, 1, phrase.to_string())]);
        assert_eq!(found("a.rs", "// proof whichever\n"), []);
        let text = format!("let {second} = \"{first} {second}\";\n");
        assert_eq!(found("a.rs", &text).len(), 1, "a message is prose, a name is not");
    }

    #[test]
    fn a_sentence_that_begins_with_who_or_what_counts_unless_it_asks() {
        let (who, ever, what) = (concat!("W", "ho"), concat!("W", "hoever"), concat!("W", "hat"));
        assert_eq!(openings(&format!("{who} leads, decides.")), [(Finding::Who, 1)]);
        assert_eq!(openings(&format!("{who} leads?")), []);
        assert_eq!(
            openings(&format!("A leads. {ever} asks\nis told. {what} is\nthis? {what} it is.")),
            [(Finding::Who, 1), (Finding::What, 3)]
        );
        assert_eq!(openings(&format!("## {what} is promised")), [(Finding::What, 1)]);
        assert_eq!(openings(&format!("Whose? {what}ever, whom. {what}.")), []);
    }

    #[test]
    fn a_literal_that_goes_on_is_one_text() {
        let text = format!("f(\"A. \\\n   {} leads.\");\n", concat!("W", "ho"));
        assert_eq!(found("a.rs", &text), [(Finding::Who, 2, format!("{} leads.", concat!("W", "ho")))]);
    }

    #[test]
    fn the_list_of_phrases_is_lower_case_and_has_no_blanks_at_its_ends() {
        let banned = banned(BANNED);
        assert!(banned.len() >= 6);
        for phrase in banned {
            assert_eq!(phrase, phrase.to_lowercase());
        }
    }
}
