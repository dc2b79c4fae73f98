//! Numbers and texts of an SVG document, for every layer, and how a document opens.

use crate::draw::look::escape;

/// Appends formatted text; writing to a `String` cannot fail.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($text)*);
    }};
}
pub(in crate::draw) use put;

/// The paper on which a document is drawn.
#[derive(Clone, Copy, Debug)]
pub(in crate::draw) struct Paper<'a> {
    /// How wide, and how high.
    pub size: (f64, f64),
    /// The size of most text.
    pub font: u32,
    /// The size of the title.
    pub heading: u32,
    /// Rules besides those of light paper.
    pub style: &'a str,
}

/// Opens a document on light paper, with its title and a line below that.
pub(in crate::draw) fn open(out: &mut String, paper: Paper<'_>, title: &str, note: &str) {
    let Paper { size: (wide, high), font, heading, style } = paper;
    root(out, (wide, high), font, title);
    put!(
        out,
        "<style>.ground{{fill:#fff}}.ink{{fill:#1f2933}}.faint{{fill:#596673}}.grid{{stroke:#e1e5e9}}.axis{{stroke:#66727f}}{style}</style>\n\
         <rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n\
         <text class=\"ink\" x=\"24\" y=\"{}\" font-size=\"{heading}\" font-weight=\"600\">{}</text>\n\
         <text class=\"faint\" x=\"24\" y=\"{}\">{}</text>\n",
        heading + 15,
        escape(title),
        heading + font + 25,
        escape(note),
    );
}

/// The first tag of a document, and its title for those who cannot see.
pub(in crate::draw) fn root(out: &mut String, (wide, high): (f64, f64), font: u32, title: &str) {
    put!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
         font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif\" font-size=\"{font}\" fill=\"#1f2933\" \
         role=\"img\">\n<title>{}</title>\n",
        escape(title),
        w = num(wide),
        h = num(high),
    );
}

/// The words in lines that are at most so wide.
pub(in crate::draw) fn wrapped(text: &str, room: f64, size: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut().filter(|line| width(line, size) + width(word, size) + size < room) {
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// About how wide a text is: nobody can ask the font.
pub(in crate::draw) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(|letter| if letter.is_ascii() { 0.58 } else { 0.95 }).sum::<f64>() * size
}

/// As much of the text as fits.
pub(in crate::draw) fn fitting(text: &str, room: f64, size: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut short = String::new();
    for letter in text.chars() {
        if width(&short, size) + 1.6 * size > room {
            break;
        }
        short.push(letter);
    }
    short.push('…');
    short
}

pub(in crate::draw) fn float(nanos: u64) -> f64 {
    nanos as f64
}

pub(in crate::draw) fn small(count: usize) -> f64 {
    count as f64
}

/// A length, to one decimal and without a sign on zero.
pub(in crate::draw) fn num(length: f64) -> String {
    let text = format!("{length:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}
