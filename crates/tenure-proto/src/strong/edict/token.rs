//! An edict's stamp as one whole number, in the two forms that leave the product.
//!
//! ```text
//!   Token        u128        term, 64 bits                     number, 64 bits
//!   PackedToken  i64 >= 0    0 | term, 31 bits | number, 32 bits
//! ```
//!
//! Both put the term above the number, so that whole numbers compare as edicts do: by term, then by
//! number. There is one packed layout and no choice of another, so that all packed tokens compare.
//! The forms do not compare with each other: a column or a header holds one of them.

use std::fmt;
use std::str::FromStr;

use super::super::message::Term;
use super::Edict;

/// The number at which a resource is fenced: term, then number within the term.
///
/// Each edict has its own. Number 0 is nobody's edict but stands for the term as a whole:
/// [`Token::of_term`].
///
/// As text it is the decimal number, without sign or spaces: `"{token}"` and
/// `text.parse::<Token>()`.
///
/// ```
/// # use tenure_proto::strong::Term;
/// # use tenure_proto::strong::edict::Token;
/// let token = Token::new(Term(2), 5);
/// assert_eq!(token.to_string(), "36893488147419103237"); // 2 * 2^64 + 5
/// assert_eq!(token.to_string().parse(), Ok(token));
/// assert!(Token::new(Term(1), u64::MAX) < token);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    // The order of these two is the order of tokens.
    term: Term,
    number: u64,
}

impl Token {
    /// The token of edict `number` of `term`.
    pub const fn new(term: Term, number: u64) -> Self {
        Self { term, number }
    }

    /// The token of a term as a whole: smaller than that of each of its edicts, larger than all of
    /// older terms.
    pub const fn of_term(term: Term) -> Self {
        Self::new(term, 0)
    }

    /// The term.
    pub const fn term(self) -> Term {
        self.term
    }

    /// The number within the term.
    pub const fn number(self) -> u64 {
        self.number
    }

    /// `term << 64 | number`. Numbers compare as tokens do.
    pub fn as_u128(self) -> u128 {
        u128::from(self.term.0) << 64 | u128::from(self.number)
    }

    /// From `term << 64 | number`. Every number is a token.
    pub fn from_u128(bits: u128) -> Self {
        Self { term: Term(low_half(bits >> 64)), number: low_half(bits) }
    }

    /// Packs the token into a number for a signed column of 64 bits, if it fits.
    pub fn pack(self) -> Result<PackedToken, Exhausted> {
        let Ok(term) = i32::try_from(self.term.0) else { return Err(Exhausted { what: Part::Term }) };
        let Ok(number) = u32::try_from(self.number) else { return Err(Exhausted { what: Part::Counter }) };
        Ok(PackedToken(i64::from(term) << 32 | i64::from(number)))
    }
}

/// The lower 64 of 128 bits, exactly.
fn low_half(bits: u128) -> u64 {
    let [.., a, b, c, d, e, f, g, h] = bits.to_be_bytes();
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

impl From<Edict> for Token {
    fn from(edict: Edict) -> Self {
        edict.token()
    }
}

impl From<PackedToken> for Token {
    fn from(packed: PackedToken) -> Self {
        packed.token()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.term, self.number)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_u128(), f)
    }
}

impl FromStr for Token {
    type Err = TokenError;
    fn from_str(text: &str) -> Result<Self, TokenError> {
        let form = Form::Full;
        let token = Self::from_u128(decimal(text, form)?);
        if token.term == Term(0) { Err(TokenError::NoTerm { form }) } else { Ok(token) }
    }
}

/// A [`Token`] in 63 bits: never negative, so that a signed BIGINT holds it, and ordered as the
/// token is.
///
/// The price: terms end at 2^31 - 1 and numbers at 2^32 - 1. Then [`Token::pack`] says
/// [`Exhausted`]; it never wraps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackedToken(i64);

impl PackedToken {
    /// The last term that fits.
    pub const LAST_TERM: Term = Term((1 << 31) - 1);
    /// The last number of a term that fits.
    pub const LAST_NUMBER: u64 = (1 << 32) - 1;

    /// `term << 32 | number`, not negative. Numbers compare as tokens do.
    pub const fn as_i64(self) -> i64 {
        self.0
    }

    /// From a column. Every number that is not negative is a packed token; 0 is smaller than that
    /// of any edict.
    pub const fn from_i64(bits: i64) -> Result<Self, TokenError> {
        if bits < 0 { Err(TokenError::Negative) } else { Ok(Self(bits)) }
    }

    /// In the wide form, which always fits.
    pub fn token(self) -> Token {
        let [a, b, c, d, e, f, g, h] = self.0.to_be_bytes();
        let (term, number) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
        Token::new(Term(u64::from(term)), u64::from(number))
    }
}

impl TryFrom<Token> for PackedToken {
    type Error = Exhausted;
    fn try_from(token: Token) -> Result<Self, Exhausted> {
        token.pack()
    }
}

impl fmt::Debug for PackedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "packed {:?}", self.token())
    }
}

impl fmt::Display for PackedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for PackedToken {
    type Err = TokenError;
    fn from_str(text: &str) -> Result<Self, TokenError> {
        let form = Form::Packed;
        let Ok(bits) = i64::try_from(decimal(text, form)?) else { return Err(TokenError::TooLarge { form }) };
        let packed = Self(bits);
        if packed.token().term == Term(0) { Err(TokenError::NoTerm { form }) } else { Ok(packed) }
    }
}

/// Digits and nothing else: what a lenient parser takes for granted (a sign, a space) another one
/// refuses.
fn decimal(text: &str, form: Form) -> Result<u128, TokenError> {
    if text.is_empty() {
        return Err(TokenError::Empty);
    }
    if let Some(found) = text.chars().find(|found| !found.is_ascii_digit()) {
        return Err(if text.starts_with('-') {
            TokenError::Negative
        } else {
            TokenError::NotADigit { found }
        });
    }
    text.parse().map_err(|_| TokenError::TooLarge { form })
}

/// Which part of a token has no larger value left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The term: for good.
    Term,
    /// The number of edicts: until the next term.
    Counter,
}

/// There is no larger token of this form. Nothing was wrapped, cut off or handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exhausted {
    /// The part that is used up.
    pub what: Part,
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.what {
            Part::Term => {
                "the term is above the 31 bits of a packed token, and so is every later one: move to the u128 form \
                 of the token, which has 64 bits for it"
            }
            Part::Counter => {
                "this term has used up its edict numbers: campaign for a new term, or move to the u128 form of the \
                 token, which has 64 bits for them where the packed form has 32"
            }
        })
    }
}

impl std::error::Error for Exhausted {}

/// How a token is written as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// [`Token`]: 128 bits.
    Full,
    /// [`PackedToken`]: 63 bits.
    Packed,
}

/// Why something is not a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenError {
    /// There is no text. Usual cause: a variable that is not set.
    Empty,
    /// Something other than a decimal digit.
    NotADigit {
        /// The character.
        found: char,
    },
    /// Below zero. Usual cause: the upper half of another number.
    Negative,
    /// Above every token of this form.
    TooLarge {
        /// The form that was asked for.
        form: Form,
    },
    /// The term would be 0, and terms begin at 1. Usual cause: a packed token, or a term alone,
    /// where a token belongs.
    NoTerm {
        /// The form that was asked for.
        form: Form,
    },
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("no token: the text is empty"),
            Self::NotADigit { found } => {
                write!(f, "{found:?} in a token: a token is a decimal number, digits only")
            }
            Self::Negative => f.write_str("a token is never negative"),
            Self::TooLarge { form: Form::Full } => f.write_str("too large for a token, which has 128 bits"),
            Self::TooLarge { form: Form::Packed } => {
                f.write_str("too large for a packed token, which has 63 bits: is it the u128 form?")
            }
            Self::NoTerm { form: Form::Full } => f.write_str(
                "a token below 2^64 is of no term, and terms begin at 1: is it the packed form, or only a term?",
            ),
            Self::NoTerm { form: Form::Packed } => f.write_str(
                "a packed token below 2^32 is of no term, and terms begin at 1: is it only a term or a counter?",
            ),
        }
    }
}

impl std::error::Error for TokenError {}
