//! The name that was probably meant, for messages that answer a misspelt one.

/// Of the known names, the one that is most like `name`; nothing if none is like it.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (far, near) = known.map(|known| (distance(name, known), known)).min()?;
    (far <= 2 + name.len() / 3).then_some(near)
}

/// How many letters must be changed, added or left out to get from one name to the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, candidate) in other.bytes().enumerate() {
            let replaced = diagonal + usize::from(letter != candidate);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_group_is_answered_with_the_one_that_was_meant() {
        let led = ["jobs", "app/mail", "nightly"];
        assert_eq!(nearest("job", led.into_iter()), Some("jobs"));
        assert_eq!(nearest("app/mial", led.into_iter()), Some("app/mail"));
        assert_eq!(nearest("zebra-crossing", led.into_iter()), None);
        assert_eq!(nearest("x", std::iter::empty()), None);
    }
}
