//! What every layer writes with: numbers and texts of an SVG document.

/// Appends formatted text; writing to a `String` cannot fail.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($text)*);
    }};
}
pub(in crate::draw) use put;

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
