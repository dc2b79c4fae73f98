//! Figures of benchmarks: medians, tails, and whether a target was met.

/// Measured values, sorted.
pub struct Numbers(Vec<f64>);

impl Numbers {
    /// Sorts them.
    pub fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// The value below which this many hundredths of all lie.
    pub fn at(&self, hundredths: usize) -> f64 {
        self.at_thousandths(hundredths * 10)
    }

    /// The same in thousandths.
    pub fn at_thousandths(&self, thousandths: usize) -> f64 {
        let last = self.0.len() - 1;
        self.0[(last * thousandths).div_ceil(1000)]
    }

    /// The value in the middle.
    pub fn median(&self) -> f64 {
        self.at(50)
    }

    /// As a row: the least, the median and the tail.
    pub fn row(&self, what: &str, unit: &str) {
        let (least, median, tail) = (self.at(0), self.median(), self.at(99));
        println!("{what:<44} {median:>9.1} {unit}   least {least:.1}, 99 of 100 below {tail:.1}");
    }
}

/// A figure that should not exceed a target.
pub fn at_most(what: &str, value: f64, target: f64, unit: &str) {
    let verdict = if value <= target { "met" } else { "MISSED" };
    println!("{what:<44} {value:>9.2} {unit}   target: at most {target}{unit}, {verdict}");
}

/// A figure that should reach a target.
pub fn at_least(what: &str, value: f64, target: f64, unit: &str) {
    let verdict = if value >= target { "met" } else { "MISSED" };
    println!("{what:<44} {value:>9.2} {unit}   target: at least {target}{unit}, {verdict}");
}
