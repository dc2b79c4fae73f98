//! Space-time diagrams: what a run looked like, for the eye.
//!
//! A [`Picture`] is plain data that any run can be turned into; [`svg`] draws it as one image,
//! [`html`] as one self-contained page with zoom, hover and stepping. Neither knows a protocol.
//! [`plot`] draws the numbers of many runs as lines, [`chart`] as a slide; [`ring`] draws elections
//! on a ring as a ring, and [`siege`] what an adversary did to one.

mod axes;
pub mod chart;
pub mod html;
mod look;
pub mod plot;
pub mod ring;
mod scale;
pub mod siege;
pub mod svg;
#[cfg(test)]
mod tests;

/// A run, ready to be drawn. Times are nanoseconds of real time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// The title: the run that is drawn.
    pub title: String,
    /// Its outcome, in one line.
    pub verdict: String,
    /// Whether a property was broken.
    pub broken: bool,
    /// The meanings of its symbols.
    pub words: Words,
    /// The name of each lane, from the top.
    pub lanes: Vec<String>,
    /// The role of each lane, in a word; empty where it has none.
    pub roles: Vec<String>,
    /// Where the picture begins.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// Messages.
    pub arrows: Vec<Arrow>,
    /// Things that last: grants, leases, outages.
    pub bars: Vec<Bar>,
    /// Events at an instant.
    pub marks: Vec<Mark>,
    /// Stretches of time that concern all lanes: partitions, the healing.
    pub zones: Vec<Zone>,
    /// Logical partitions: which lanes belong together for a while.
    pub shades: Vec<Shade>,
    /// The minutes: what happened, in order, for stepping through.
    pub minutes: Vec<Minute>,
}

/// The meanings of bars and marks in the protocol that was run, as the legend says them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// A bar of [`BarKind::Lease`].
    pub leads: &'static str,
    /// A bar of [`BarKind::Grant`], without whom.
    pub supports: &'static str,
    /// A bar of [`BarKind::Silent`].
    pub silent: &'static str,
    /// A mark of [`MarkKind::Elected`].
    pub elected: &'static str,
    /// A [`Zone`] that is not calm.
    pub zones: &'static str,
    /// The labels beside the two tracks of a lane: that of leases, and that of grants.
    pub tracks: [&'static str; 2],
    /// The kind of message that only shows that somebody lives: faint, so that it does not hide the
    /// others.
    pub routine: &'static str,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            leads: "leads",
            supports: "supports",
            silent: "silent after restart",
            elected: "elected",
            zones: "partition",
            tracks: ["", ""],
            routine: "",
        }
    }
}

/// A logical partition for a while: lanes that support one leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shade {
    /// The leader's lane, which gives the colour.
    pub leader: usize,
    /// All lanes that belong to it.
    pub members: Vec<usize>,
    /// From when.
    pub from: u64,
    /// Until when.
    pub until: u64,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// The sender's lane.
    pub from: usize,
    /// The receiver's lane.
    pub to: usize,
    /// When it was sent.
    pub sent: u64,
    /// When it was handled; `None` if it was lost.
    pub arrived: Option<u64>,
    /// The kind of message: names its colour.
    pub kind: String,
    /// All that it says.
    pub text: String,
}

/// Something that lasts on one lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// On which lane.
    pub lane: usize,
    /// From when.
    pub from: u64,
    /// Until when.
    pub until: u64,
    /// The kind of bar.
    pub kind: BarKind,
    /// In words.
    pub text: String,
}

/// The meaning of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarKind {
    /// This lane leads (until its E).
    Lease,
    /// This lane has granted its support to lane `to` (until its F): drawn in the colour of `to`.
    Grant {
        /// Whom the grant is for.
        to: usize,
    },
    /// The process is down.
    Down,
    /// The process is paused; its clock runs on.
    Paused,
    /// The machine is suspended.
    Suspended,
    /// The process keeps silent after a restart.
    Silent,
}

/// Something at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// On which lane; `None` concerns all.
    pub lane: Option<usize>,
    /// When.
    pub at: u64,
    /// The kind of mark.
    pub kind: MarkKind,
    /// In words.
    pub text: String,
}

/// The meaning of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// The process crashed.
    Crash,
    /// It started again.
    Start,
    /// It became leader.
    Elected,
    /// It stopped being leader.
    Lost,
    /// A property was broken here.
    Violation,
}

/// Something that concerns all lanes for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// From when.
    pub from: u64,
    /// Until when.
    pub until: u64,
    /// In words, such as `clean split: n0 n1 | n2 n3 n4`.
    pub text: String,
    /// Whether this is the calm after the faults rather than a partition.
    pub calm: bool,
}

/// One line of the minutes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minute {
    /// When.
    pub at: u64,
    /// On which lane.
    pub lane: Option<usize>,
    /// The violation in words.
    pub text: String,
    /// Its outcome.
    pub outcomes: Vec<String>,
}
