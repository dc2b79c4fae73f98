//! Two axes, their ticks and the grid between them: what [plots](super::plot) and
//! [slides](super::chart) share.

use super::look::escape;
use super::svg::text::{num, put};

/// Where two axes are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Frame {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
    /// The size of the numbers at the ticks.
    pub font: u32,
}

/// The part of an axis that is shown, and its ticks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Range {
    /// Whether places are powers of ten.
    log: bool,
    pub from: f64,
    pub until: f64,
    pub ticks: Vec<(f64, String)>,
}

/// The least and the largest power of ten, of values above zero.
fn decades(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let all = values.filter(|value| *value > 0.0).map(log10);
    let (from, until) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    if from > until { (0.0, 1.0) } else { (from, until) }
}

impl Range {
    /// From zero, in equal steps, to the first tick at or above the largest value.
    pub(super) fn linear(values: impl Iterator<Item = f64>) -> Self {
        let largest = values.fold(0.0, f64::max);
        let step = round_step(largest / 6.0);
        let places = decimals(step);
        let mut count = 0_u32;
        while f64::from(count) * step < largest * (1.0 - 1e-9) {
            count += 1;
        }
        let tick = |number| (f64::from(number) * step, format!("{:.places$}", f64::from(number) * step));
        Self {
            log: false,
            from: 0.0,
            until: f64::from(count.max(1)) * step,
            ticks: (0..=count).map(tick).collect(),
        }
    }

    /// Whole powers of ten around all values.
    pub(super) fn whole_decades(values: impl Iterator<Item = f64>) -> Self {
        let (from, until) = decades(values);
        let (from, until) = ((from + 1e-9).floor(), (until - 1e-9).ceil());
        Self::ticked(from, until.max(from + 1.0), &[1.0])
    }

    /// All values and a little room, in powers of ten; where there are few of them with some of
    /// their multiples.
    pub(super) fn snug(values: impl Iterator<Item = f64>) -> Self {
        let (from, until) = with_room(decades(values));
        let factors: &[f64] = match until - from {
            ..0.9 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
            ..1.8 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        Self::ticked(from, until, factors)
    }

    /// All values and a little room, in powers of two: every one, or every second.
    pub(super) fn doublings(values: impl Iterator<Item = f64>) -> Self {
        let (from, until) = with_room(decades(values));
        let two = log10(2.0);
        let step = if until - from > 10.0 * two { 2.0 } else { 1.0 };
        let mut ticks = Vec::new();
        let mut power = (from / two / step).ceil() * step;
        while power * two <= until {
            ticks.push((power * two, raised(2, power)));
            power += step;
        }
        Self { log: true, from, until, ticks }
    }

    fn ticked(from: f64, until: f64, factors: &[f64]) -> Self {
        let mut ticks = Vec::new();
        let mut decade = from.floor();
        while decade <= until {
            let within = |at: &f64| (from..=until).contains(at);
            let tick = |factor: &f64| (decade + log10(*factor), power_text(*factor, decade));
            ticks.extend(factors.iter().map(tick).filter(|(at, _)| within(at)));
            decade += 1.0;
        }
        Self { log: true, from, until, ticks }
    }

    /// Between 0 and 1; nothing where the axis has no place for a value.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let value = match self.log {
            false => value,
            true if value > 0.0 => log10(value),
            true => return None,
        };
        Some(self.share(value))
    }

    fn share(&self, at: f64) -> f64 {
        (at - self.from) / (self.until - self.from)
    }
}

fn with_room((from, until): (f64, f64)) -> (f64, f64) {
    let room = ((until - from) * 0.04).max(0.03);
    (from - room, until + room)
}

impl Frame {
    /// Where a point is; nothing if an axis has no place for it. A point beyond an end is drawn at
    /// that end.
    pub(super) fn place(&self, (x, y): (&Range, &Range), point: (f64, f64)) -> Option<(f64, f64)> {
        let (right, up) = (x.place(point.0)?.clamp(0.0, 1.0), y.place(point.1)?.clamp(0.0, 1.0));
        Some((self.right_by(right), self.up_by(up)))
    }

    fn right_by(&self, share: f64) -> f64 {
        self.left + (self.right - self.left) * share
    }

    fn up_by(&self, share: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * share
    }

    /// Draws both axes, the grid, and what they measure.
    pub(super) fn draw(&self, out: &mut String, (x, y): (&Range, &Range), labels: (&str, &str)) {
        let (mut grid, mut numbers) = (String::new(), String::new());
        let size = f64::from(self.font);
        for (tick, text) in &x.ticks {
            let (at, below) = (num(self.right_by(x.share(*tick))), num(self.bottom + size + 6.0));
            put!(grid, "M{at} {}V{}", num(self.top), num(self.bottom));
            put!(numbers, "<text text-anchor=\"middle\" x=\"{at}\" y=\"{below}\">{text}</text>");
        }
        for (tick, text) in &y.ticks {
            let at = self.up_by(y.share(*tick));
            put!(grid, "M{} {}H{}", num(self.left), num(at), num(self.right));
            let (beside, at) = (num(self.left - 8.0), num(at + 0.35 * size));
            put!(numbers, "<text text-anchor=\"end\" x=\"{beside}\" y=\"{at}\">{text}</text>");
        }
        put!(
            out,
            "<path class=\"grid\" d=\"{grid}\" fill=\"none\"/>\n<path class=\"axis\" fill=\"none\" d=\"M{l} {t}V{b}H{r}\"/>\n\
             <g class=\"faint\" font-size=\"{}\">{numbers}</g>\n\
             <text class=\"faint\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>\n\
             <text class=\"faint\" text-anchor=\"middle\" transform=\"translate({} {}) rotate(-90)\">{}</text>\n",
            self.font,
            num(f64::midpoint(self.left, self.right)),
            num(self.bottom + 2.0 * size + 16.0),
            escape(labels.0),
            num(self.left - 64.0),
            num(f64::midpoint(self.top, self.bottom)),
            escape(labels.1),
            l = num(self.left),
            t = num(self.top),
            b = num(self.bottom),
            r = num(self.right),
        );
    }
}

/// The first of 1, 2, 5 times a power of ten that is at least `least`.
fn round_step(least: f64) -> f64 {
    if least.is_nan() || least <= 0.0 {
        return 1.0;
    }
    let mut power = 1.0;
    while power > least {
        power /= 10.0;
    }
    loop {
        if let Some(factor) = [1.0, 2.0, 5.0].into_iter().find(|factor| power * factor >= least) {
            return power * factor;
        }
        power *= 10.0;
    }
}

/// How many decimals a step needs.
fn decimals(step: f64) -> usize {
    let (mut places, mut step) = (0, step);
    while step < 0.999 && places < 9 {
        (places, step) = (places + 1, step * 10.0);
    }
    places
}

/// So many times a power of ten as people write it, as long as they can count its zeros.
fn power_text(factor: f64, decade: f64) -> String {
    match decade {
        -4.0..=4.0 => {
            let (mut value, mut left) = (factor, decade);
            while left > 0.5 {
                (value, left) = (value * 10.0, left - 1.0);
            }
            while left < -0.5 {
                (value, left) = (value / 10.0, left + 1.0);
            }
            let places = decimals(value / factor) + usize::from(factor.fract() > 0.0 && decade < 0.5);
            format!("{value:.places$}")
        }
        _ if factor == 1.0 => raised(10, decade),
        _ => format!("{factor}·{}", raised(10, decade)),
    }
}

fn raised(base: u32, power: f64) -> String {
    format!("{base}<tspan dy=\"-0.45em\" font-size=\"75%\">{power:.0}</tspan>")
}

/// The decadic logarithm of a number above zero. Made of sums, products and quotients alone, which
/// every machine rounds alike: the library's may differ in the last digit, and with it the image.
fn log10(value: f64) -> f64 {
    let (mut decades, mut rest) = (0.0, value);
    while rest >= 10.0 {
        (decades, rest) = (decades + 1.0, rest / 10.0);
    }
    while rest < 1.0 {
        (decades, rest) = (decades - 1.0, rest * 10.0);
    }
    // ln x = 2 artanh((x-1)/(x+1)), a series that for x below 10 has converged long before its
    // 200th term.
    let ratio = (rest - 1.0) / (rest + 1.0);
    let (mut sum, mut power, mut term) = (0.0, ratio, 1.0);
    while term < 200.0 {
        sum += power / term;
        (power, term) = (power * ratio * ratio, term + 2.0);
    }
    decades + 2.0 * sum / std::f64::consts::LN_10
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(range: &Range) -> Vec<&str> {
        range.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn a_linear_axis_begins_at_zero_and_ends_at_a_round_number() {
        let range = Range::linear([0.3, 1.22].into_iter());
        assert_eq!((range.from, range.until), (0.0, 1.5));
        assert_eq!(texts(&range), ["0.0", "0.5", "1.0", "1.5"]);
    }

    #[test]
    fn a_logarithmic_axis_has_whole_decades_and_no_place_for_zero() {
        let range = Range::whole_decades([0.002, 0.0, 30.0].into_iter());
        assert_eq!(texts(&range), ["0.001", "0.01", "0.1", "1", "10", "100"]);
        assert_eq!((range.place(0.0), range.place(0.001), range.place(100.0)), (None, Some(0.0), Some(1.0)));
        assert!((range.place(1.0).unwrap() - 0.6).abs() < 1e-12);
    }

    #[test]
    fn a_snug_axis_shows_what_it_has_and_few_decades_more_finely() {
        assert_eq!(texts(&Range::snug([1.2, 3.2].into_iter())), ["1.5", "2", "3"]);
        assert_eq!(texts(&Range::snug([1.5, 19.0].into_iter())), ["2", "5", "10", "20"]);
        assert_eq!(texts(&Range::snug([3.0, 4e3].into_iter())), ["10", "100", "1000"]);
    }

    #[test]
    fn sizes_that_double_have_powers_of_two_below_them() {
        let few = Range::doublings([16.0, 64.0].into_iter());
        assert_eq!(few.ticks.len(), 3);
        let many = Range::doublings((4..=20).map(|power| f64::from(1 << power)));
        assert!(many.ticks.len() == 9 && many.ticks[8].1.contains(">20<"), "{many:?}");
    }

    #[test]
    fn the_logarithm_is_the_known_one() {
        for value in [1e-9, 0.02, 0.999_999, 1.0, 2.0, 9.999_999, 10.0, 12_345.6, 1e12] {
            assert!((log10(value) - f64::log10(value)).abs() < 1e-12, "{value}");
        }
    }
}
