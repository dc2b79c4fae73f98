//! The tail of the normal distribution in integers: the one formula behind phi.
//!
//! Let Q(y) be the probability that a normal variable exceeds its mean by more than y standard
//! deviations. Phi is `h(y) = -log10 Q(y)`. This module knows `h` at every sixteenth of a deviation
//! from -4 to 12 and draws straight lines between. Nothing underflows, every machine gets the same
//! number, and three things can be proved:
//!
//! * **Monotone.** The table rises, and a line between rising ends, rounded down, never falls.
//! * **At most 0.000212 too high, plus rounding.** Q is log-concave, so `h` is convex and a chord
//!   lies above it, by at most `step²/8 · max h''`, and `h'' < log10 e` everywhere (Sampford 1953).
//! * **At most 0.0000015 too low:** half a millionth from the table, one from the division.
//!
//! The logistic formula that is often used instead, `log10(1 + exp(1.5976y + 0.070566y³))`, was
//! made for the middle of the distribution and errs in the tail, where detectors live: where it
//! says 8 the truth is 7.06, and where it says 12 it is 9.81, a hundred and fifty times as many
//! mistakes as promised.

/// One standard deviation, in the unit of a [`Score`].
pub(super) const DEVIATION: u32 = 1 << 16;

/// By how much something exceeds the mean, in 65536ths of a standard deviation.
pub(super) type Score = i64;

/// Where the table begins: four deviations before the mean.
const FIRST: Score = -4 * DEVIATION as Score;

/// Where the table ends: twelve deviations after the mean. Beyond, phi stays at [`millionths`] of
/// this.
pub(super) const LAST: Score = 12 * DEVIATION as Score;

/// From one entry of the table to the next: a sixteenth of a deviation.
const STEP: Score = DEVIATION as Score / 16;

/// `h(y)` in millionths; stays at the first and the last entry outside the table.
pub(super) fn millionths(score: Score) -> u32 {
    let offset = score.clamp(FIRST, LAST) - FIRST;
    let (cell, rest) = (offset / STEP, offset % STEP);
    let entry = |index: i64| usize::try_from(index).ok().and_then(|index| TAIL.get(index)).copied();
    let low = entry(cell).unwrap_or(0);
    let high = entry(cell + 1).unwrap_or(low); // The last entry begins no cell.
    let rise = i64::from(high - low) * rest / STEP;
    low + u32::try_from(rise).unwrap_or(0)
}

/// The least score at which `h` reaches `wanted` millionths, or [`LAST`] if none does. Bisection:
/// `h` is monotone.
pub(super) fn least_reaching(wanted: u32) -> Score {
    let (mut low, mut high) = (FIRST, LAST);
    while low < high {
        let middle = low + (high - low) / 2;
        if millionths(middle) >= wanted {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// `h(y)` in millionths, rounded to the nearest, for y = -4, -4 + 1/16, ..., 12.
const TAIL: [u32; 257] = [
    14, 18, 23, 30, 38, 49, 63, 80, 101, 128, 160, 201, 251, 312, 386, 477, 587, 719, 878, 1069, 1296, 1566,
    1886, 2263, 2705, 3223, 3828, 4529, 5342, 6279, 7355, 8588, 9994, 11594, 13406, 15452, 17756, 20339,
    23229, 26450, 30029, 33994, 38373, 43196, 48492, 54293, 60628, 67528, 75026, 83152, 91937, 101413,
    111611, 122562, 134295, 146842, 160231, 174492, 189653, 205742, 222786, 240812, 259844, 279909, 301030,
    323231, 346535, 370963, 396538, 423278, 451205, 480337, 510692, 542288, 575142, 609270, 644688, 681410,
    719451, 758825, 799546, 841624, 885074, 929906, 976131, 1023761, 1072806, 1123274, 1175177, 1228522,
    1283318, 1339574, 1397298, 1456497, 1517178, 1579349, 1643016, 1708186, 1774864, 1843057, 1912770,
    1984009, 2056779, 2131085, 2206932, 2284324, 2363267, 2443763, 2525818, 2609436, 2694619, 2781372,
    2869699, 2959602, 3051086, 3144152, 3238805, 3335047, 3432881, 3532310, 3633336, 3735962, 3840190,
    3946023, 4053463, 4162512, 4273172, 4385446, 4499335, 4614841, 4731967, 4850713, 4971082, 5093076,
    5216695, 5341942, 5468818, 5597325, 5727464, 5859236, 5992644, 6127687, 6264367, 6402687, 6542646,
    6684246, 6827488, 6972373, 7118903, 7267078, 7416899, 7568368, 7721485, 7876251, 8032667, 8190735,
    8350454, 8511825, 8674850, 8839530, 9005864, 9173855, 9343501, 9514805, 9687767, 9862387, 10038667,
    10216606, 10396206, 10577467, 10760390, 10944975, 11131223, 11319134, 11508709, 11699949, 11892854,
    12087424, 12283660, 12481562, 12681132, 12882369, 13085273, 13289846, 13496088, 13703999, 13913579,
    14124829, 14337750, 14552341, 14768603, 14986537, 15206143, 15427420, 15650371, 15874994, 16101290,
    16329260, 16558903, 16790221, 17023213, 17257880, 17494222, 17732239, 17971932, 18213300, 18456345,
    18701067, 18947464, 19195539, 19445291, 19696721, 19949828, 20204613, 20461076, 20719218, 20979038,
    21240537, 21503714, 21768572, 22035108, 22303325, 22573221, 22844797, 23118053, 23392990, 23669608,
    23947906, 24227885, 24509546, 24792888, 25077911, 25364616, 25653003, 25943072, 26234823, 26528256,
    26823372, 27120171, 27418652, 27718817, 28020664, 28324195, 28629409, 28936306, 29244888, 29555153,
    29867101, 30180734, 30496052, 30813053, 31131739, 31452109, 31774165, 32097904, 32423329, 32750439,
];

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// `h(y)` in floating point, by two methods that share nothing with the table: the power series
    /// of the distribution near its middle, and the continued fraction of the tail's ratio to its
    /// density beyond.
    pub(in super::super) fn reference(y: f64) -> f64 {
        let density = (-y * y / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        if y.abs() < 3.0 {
            let (mut sum, mut term) = (0.0, y);
            for k in 1..60 {
                sum += term;
                term *= y * y / f64::from(2 * k + 1);
            }
            return -(0.5 - density * sum).log10();
        }
        let fraction = (1..100).rev().fold(y.abs(), |rest, k| y.abs() + f64::from(k) / rest);
        if y < 0.0 {
            -(-density / fraction).ln_1p() * std::f64::consts::LOG10_E
        } else {
            (y * y / 2.0) * std::f64::consts::LOG10_E
                + (fraction * (2.0 * std::f64::consts::PI).sqrt()).log10()
        }
    }

    /// Every score of the table and some outside.
    fn scores() -> impl Iterator<Item = i32> {
        -5 * 65_536..=13 * 65_536
    }

    #[test]
    fn the_reference_gives_the_known_quantiles() {
        for (y, tail) in [(0.0, 0.5), (1.281_551_565_5, 0.1), (2.326_347_874, 0.01), (5.612_001_244, 1e-8)] {
            assert!((reference(y) + f64::log10(tail)).abs() < 1e-8, "{y}: {}", reference(y));
        }
        assert!((reference(3.0) - reference(2.999_999_999)).abs() < 1e-7, "the two methods meet");
    }

    #[test]
    fn the_tail_never_falls() {
        for score in scores() {
            let score = Score::from(score);
            assert!(millionths(score) <= millionths(score + 1), "at {score}");
        }
    }

    #[test]
    fn the_tail_is_at_most_the_stated_bounds_off() {
        for score in scores().filter(|score| (FIRST..=LAST).contains(&Score::from(*score))) {
            let exact = reference(f64::from(score) / f64::from(DEVIATION));
            let off = f64::from(millionths(Score::from(score))) / 1e6 - exact;
            assert!((-1.5e-6..=2.125e-4).contains(&off), "at {score}: {off}");
        }
    }

    #[test]
    fn the_least_score_reaches_and_the_one_before_does_not() {
        for wanted in (1_000..30_000_000).step_by(9_973) {
            let score = least_reaching(wanted);
            assert!(millionths(score) >= wanted && millionths(score - 1) < wanted, "{wanted}");
        }
        assert_eq!(least_reaching(u32::MAX), LAST);
    }

    #[test]
    fn the_logistic_formula_is_as_wrong_as_the_text_says() {
        for (claimed, truth) in [(8.0, 7.06), (12.0, 9.81)] {
            let logistic = |y: f64| (1.0 + (1.5976 * y + 0.070_566 * y * y * y).exp()).log10();
            let crossing = (0..10_000).map(|k| f64::from(k) / 1000.0).find(|y| logistic(*y) >= claimed);
            assert!((reference(crossing.unwrap()) - truth).abs() < 0.01);
        }
    }
}
