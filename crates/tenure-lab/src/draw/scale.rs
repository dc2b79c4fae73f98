//! From time to place.
//!
//! A long run is drawn true to scale. A scenario of ten lines is not readable that way: a few
//! microseconds matter next to a wait of a hundred milliseconds. There each instant at which
//! something happens gets one step.

use super::Picture;
use super::look::beyond;

/// More instants than this are never drawn in steps.
const MOST: usize = 40;
/// Instants that are closer than this share of the width cannot be told apart.
const CLOSE: f64 = 0.025;

/// How times become places between 0 and 1.
pub(super) struct Scale {
    /// Times and their places, both ascending, at least two.
    knots: Vec<(u64, f64)>,
    /// Whether each instant has one step rather than its true place.
    pub stepped: bool,
}

impl Scale {
    /// The scale that suits a picture.
    pub(super) fn new(picture: &Picture) -> Self {
        let start = picture.start.min(u64::MAX - 1);
        let end = beyond(picture).max(start + 1);
        let instants = instants(picture);
        let near = float(end - start) * CLOSE;
        let crowded = instants.windows(2).any(|pair| float(pair[1] - pair[0]) < near);
        if instants.len() > MOST || !crowded {
            return Scale { knots: vec![(start, 0.0), (end, 1.0)], stepped: false };
        }
        let mut times = instants;
        times.extend([start, picture.end, end]);
        times.sort_unstable();
        times.dedup();
        let last = (times.len() - 1) as f64;
        let knots = times.iter().enumerate().map(|(step, &time)| (time, step as f64 / last)).collect();
        Scale { knots, stepped: true }
    }

    /// The place of a time; beyond both ends the scale goes on for as much again.
    pub(super) fn place(&self, at: u64) -> f64 {
        let (first, last) = (self.knots[0].0, self.knots[self.knots.len() - 1].0);
        let span = last - first;
        let at = at.clamp(first.saturating_sub(span), last.saturating_add(span));
        let next = self.knots.partition_point(|knot| knot.0 <= at).clamp(1, self.knots.len() - 1);
        let ((from, low), (until, high)) = (self.knots[next - 1], self.knots[next]);
        low + (high - low) * (float(at) - float(from)) / float(until - from)
    }

    /// The instants that have a step.
    pub(super) fn knots(&self) -> &[(u64, f64)] {
        &self.knots
    }
}

/// When something happens, within the picture.
fn instants(picture: &Picture) -> Vec<u64> {
    let mut times: Vec<u64> = picture.minutes.iter().map(|minute| minute.at).collect();
    times.extend(picture.marks.iter().map(|mark| mark.at));
    times.extend(picture.bars.iter().flat_map(|bar| [bar.from, bar.until]));
    times.extend(picture.zones.iter().flat_map(|zone| [zone.from, zone.until]));
    for arrow in &picture.arrows {
        times.push(arrow.sent);
        times.extend(arrow.arrived);
    }
    times.retain(|time| (picture.start..=picture.end).contains(time));
    times.sort_unstable();
    times.dedup();
    times
}

fn float(nanos: u64) -> f64 {
    nanos as f64
}
