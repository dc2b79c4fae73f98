//! Every error that a command can print, once: what happened, why, and what to do.
//!
//! An entry is a function that makes the [`Failure`]: `name(values) code, what, why, what to do`.
//! There is no other way to make one. The name, with hyphens, is a contract: `-o json` prints it,
//! so that scripts can match it, and `docs/reference/messages.md` lists it. The three parts are
//! joined as `what: why; what to do`.

mod answers;
mod cluster;
mod command;
mod running;
mod settings;

pub(crate) use answers::*;
pub(crate) use cluster::*;
pub(crate) use command::*;
pub(crate) use running::*;
pub(crate) use settings::*;

/// One entry of the table. The texts have the names of their values in braces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// The name, as in the code: with underscores.
    pub(super) ident: &'static str,
    /// The exit code.
    pub(super) code: u8,
    /// The event, in a clause.
    pub(super) what: &'static str,
    /// The reason.
    pub(super) why: &'static str,
    /// The advice.
    pub(super) advice: &'static str,
}

impl Message {
    /// The name that programs match.
    pub(crate) fn name(&self) -> String {
        self.ident.replace('_', "-")
    }
}

/// Makes entries of the table: for each a function that fills in its values, and all as a list.
macro_rules! messages {
    ($($ident:ident($($value:ident),*) $code:literal, $what:literal, $why:literal, $advice:literal;)*) => {
        $(
            #[doc = $what]
            pub(crate) fn $ident($($value: impl std::fmt::Display),*) -> crate::failure::Failure {
                const MESSAGE: &crate::failure::messages::Message = &crate::failure::messages::Message {
                    ident: stringify!($ident),
                    code: $code,
                    what: $what,
                    why: $why,
                    advice: $advice,
                };
                crate::failure::Failure::of(MESSAGE, [format!($what), format!($why), format!($advice)])
            }
        )*

        /// The entries of this part of the table.
        #[cfg(test)]
        pub(super) const ENTRIES: &[crate::failure::messages::Message] = &[
            $(crate::failure::messages::Message {
                ident: stringify!($ident),
                code: $code,
                what: $what,
                why: $why,
                advice: $advice,
            }),*
        ];
    };
}
use messages;

#[cfg(test)]
mod tests;
