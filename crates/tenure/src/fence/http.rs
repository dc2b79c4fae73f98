//! Fencing over HTTP: the token travels in a header, the receiver answers 412 to what is stale.
//!
//! ```text
//!   PUT /price HTTP/1.1
//!   Tenure-Token: 36893488147419103237
//! ```
//!
//! The value is the [`Token`] as a decimal number, digits only. It is always the wide form. A
//! packed token is told apart (it is below 2^64) and refused, since the two do not compare. The
//! header does not name the election: the address says which resource, and one resource has one
//! election. Nor does it name the writer, whom a fence [in order](super::Fence::in_order) asks for:
//! the server takes the name that it has authenticated.
//!
//! No HTTP library is needed or chosen here: a server hands the value of the header to
//! [`admit_header`], and turns the [`Rejection`] into its answer.
//!
//! | status | when | the sender should |
//! |---|---|---|
//! | 400 Bad Request | the header is no token, or there are two | mend its program |
//! | 412 Precondition Failed | the token is stale | stop: somebody else leads, or the write was overtaken |
//! | 428 Precondition Required | there is no header | send one: a fence with a way around it is none |
//! | 503 Service Unavailable | the fence cannot decide | try again |
//!
//! Why 412 and not 409 Conflict: the token *is* a condition in a header, on which the request
//! depends, as `If-Match` is, and the condition is false. 409 invites the sender to resolve the
//! conflict and to send again; nothing that an old leader could change makes its token newer.

use std::str;

use super::{FileError, Refused, Stale, Token, TokenError};

/// The name of the header. HTTP/2 libraries want it in lower case; names compare without regard to
/// case.
pub const HEADER: &str = "Tenure-Token";

/// Returns the value of [`HEADER`] that a leader sends.
pub fn print(token: Token) -> String {
    token.to_string()
}

/// Reads the value of [`HEADER`], given as the bytes that HTTP libraries hold.
///
/// Blanks around the value are ignored.
///
/// # Errors
/// If the value is not a wide token in decimal digits.
pub fn parse(value: &[u8]) -> Result<Token, TokenError> {
    match str::from_utf8(value) {
        Ok(text) => text.trim_matches([' ', '\t']).parse(),
        Err(_) => Err(TokenError::NotADigit { found: char::REPLACEMENT_CHARACTER }),
    }
}

/// Decides on a request by its header, `None` if it has none.
///
/// `admit` is the fence, or better: the whole write under it. It is called only with a token.
///
/// # Errors
/// A [`Rejection`], whose [status](Rejection::status) is the answer to send.
///
/// ```
/// use tenure::fence::{Fence, Term, Token, http};
///
/// let mut fence = Fence::by_term();
/// let mut put = |value: Option<&[u8]>| match http::admit_header(value, |token| fence.admit(token, "alpha")) {
///     Ok(_) => 204, // and the write is made
///     Err(rejection) => rejection.status(),
/// };
/// let (old, new) = (Token::new(Term(1), 1), Token::new(Term(2), 1));
/// assert_eq!(put(Some(http::print(new).as_bytes())), 204);
/// assert_eq!(put(Some(http::print(old).as_bytes())), 412);
/// assert_eq!(put(None), 428);
/// assert_eq!(put(Some(b"2")), 400);
/// ```
pub fn admit_header<T, E: Into<Refused>>(
    value: Option<&[u8]>,
    admit: impl FnOnce(Token) -> Result<T, E>,
) -> Result<T, Rejection> {
    let value = value.ok_or(Rejection::Missing)?;
    let token = parse(value).map_err(Rejection::NotAToken)?;
    admit(token).map_err(|refused| match refused.into() {
        Refused::Stale(stale) => Rejection::Stale(stale),
        Refused::Failed(error) => Rejection::Failed(error),
    })
}

/// The reason why a request is not carried out. Its text is a body that helps the sender.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The request has no token.
    #[error("no {HEADER} header: this resource takes writes of a leader only")]
    Missing,
    /// The header's value is not a token.
    #[error("{HEADER}: {0}")]
    NotAToken(#[source] TokenError),
    /// Something newer was admitted.
    #[error(transparent)]
    Stale(Stale),
    /// The fence itself is broken or out of order; see its text. The sender did nothing wrong.
    #[error(transparent)]
    Failed(FileError),
}

impl Rejection {
    /// Returns the HTTP status code to answer with; the table of the module has the reasons.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Missing => 428,
            Self::NotAToken(_) => 400,
            Self::Stale(_) => 412,
            Self::Failed(_) => 503,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fence::{Admitted, Fence, Form, Term};

    fn token(term: u64, number: u64) -> Token {
        Token::new(Term(term), number)
    }

    #[test]
    fn every_token_is_read_back_as_it_was_printed() {
        for token in [token(1, 0), token(7, 3), token(u64::MAX, u64::MAX)] {
            assert_eq!(parse(print(token).as_bytes()), Ok(token));
        }
    }

    #[test]
    fn blanks_around_the_value_are_no_part_of_it() {
        assert_eq!(parse(b" \t36893488147419103237\t "), Ok(token(2, 5)));
    }

    #[test]
    fn what_is_no_token_is_refused_and_says_why() {
        let no_digit = |found| Err(TokenError::NotADigit { found });
        assert_eq!(parse(b""), Err(TokenError::Empty));
        assert_eq!(parse(b"-1"), Err(TokenError::Negative));
        assert_eq!(parse(b"+36893488147419103237"), no_digit('+'));
        assert_eq!(parse(b"0x20000000000000005"), no_digit('x'));
        assert_eq!(parse(b"36893488147419103237\n"), no_digit('\n'));
        assert_eq!(parse(b"\xff\xfe"), no_digit(char::REPLACEMENT_CHARACTER));
        let too_large = b"340282366920938463463374607431768211456"; // 2^128
        assert_eq!(parse(too_large), Err(TokenError::TooLarge { form: Form::Full }));
    }

    #[test]
    fn a_repeated_header_is_refused_rather_than_read_in_part() {
        let joined = b"36893488147419103237, 36893488147419103238";
        assert_eq!(parse(joined), Err(TokenError::NotADigit { found: ',' }));
    }

    #[test]
    fn a_packed_token_is_not_taken_for_a_wide_one() {
        let packed = token(2, 5).pack().unwrap().to_string();
        assert_eq!(parse(packed.as_bytes()), Err(TokenError::NoTerm { form: Form::Full }));
    }

    #[test]
    fn the_fence_is_not_asked_without_a_token() {
        let admit = |_| -> Result<(), Stale> { panic!("it was asked") };
        assert_eq!(admit_header(None, admit).unwrap_err().status(), 428);
        assert_eq!(admit_header(Some(b"seven"), admit).unwrap_err().status(), 400);
    }

    #[test]
    fn a_stale_token_is_answered_by_412_and_the_body_names_the_newest() {
        let mut fence = Fence::in_order();
        let mut put =
            |token| admit_header(Some(print(token).as_bytes()), |token| fence.admit(token, "alpha"));
        assert_eq!(put(token(2, 5)).unwrap(), Admitted::Newer);
        assert_eq!(put(token(2, 5)).unwrap(), Admitted::Again);
        let rejection = put(token(2, 4)).unwrap_err();
        assert_eq!(rejection.status(), 412);
        assert!(rejection.to_string().contains("edict 5 of term 2"), "{rejection}");
    }

    #[test]
    fn a_broken_fence_is_not_the_senders_fault() {
        let broken = |_| Err::<(), _>(FileError::Missing { path: "price.fence".into() });
        let rejection = admit_header(Some(b"36893488147419103237"), broken).unwrap_err();
        assert_eq!(rejection.status(), 503);
        assert!(rejection.to_string().contains("price.fence"), "{rejection}");
    }
}
