//! The name that was probably meant, for messages that answer a misspelt one.

use tenure_lab::catalogue::distance;

/// Of the known names, the one that is most like `name`; nothing if none is like it.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (far, near) = known.map(|known| (distance(name, known), known)).min()?;
    (far <= 2 + name.len() / 3).then_some(near)
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
