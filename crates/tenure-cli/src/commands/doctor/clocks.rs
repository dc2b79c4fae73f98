//! Clocks: everything rests on their rates. The time service that corrects them, by how much, and
//! what that means for ρ.
//!
//! Leases are counted by CLOCK_BOOTTIME. Nobody sets it, but the time service that synchronises the
//! calendar makes it run faster or slower meanwhile, and ρ must cover the slew that is allowed to
//! it.

use std::fs;
#[cfg(test)]
use std::path::Path;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tenure::{ClockBound, Discipline, Suspends};

use super::finding::Finding;
use crate::output::{drift, readable};

/// A crystal's own error, in millionths, with much to spare.
const CRYSTAL: u32 = 500;

/// How fast chrony may slew unless it is told otherwise.
const CHRONY_DEFAULT: u32 = 83_334;

/// How fast the kernel slews for ntpd and systemd-timesyncd, and how far they may set its
/// frequency.
const KERNEL_SLEW: u32 = 500;

/// Over how long rates are measured.
const MEASURED: Duration = Duration::from_secs(1);

/// Where files of the system are found; tests have others.
#[derive(Clone, Debug)]
pub(super) struct Host {
    root: PathBuf,
}

impl Host {
    /// This machine.
    pub(super) fn here() -> Self {
        Self { root: PathBuf::from("/") }
    }

    /// The same files elsewhere.
    #[cfg(test)]
    pub(super) fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// A file's text; nothing if there is none.
    pub(super) fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.path(path)).ok()
    }

    /// Where it is.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Whether a program of this name runs, as far as can be seen from here.
    fn runs(&self, name: &str) -> bool {
        let processes = fs::read_dir(self.path("/proc")).into_iter().flatten().flatten();
        let shown = &name[..name.len().min(15)]; // The kernel keeps no more of it.
        processes
            .filter_map(|entry| fs::read_to_string(entry.path().join("comm")).ok())
            .any(|comm| comm.trim_end() == shown)
    }
}

/// Checks the kernel's clock source.
pub(super) fn source(host: &Host) -> Finding {
    const CHECK: &str = "clock source";
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let Some(source) = host.read(path) else {
        return Finding::warn(
            CHECK,
            "the kernel does not say what it counts time by",
            format!("see whether {path} can be read; in a container, look on its host"),
        );
    };
    match source.trim() {
        "jiffies" => Finding::bad(
            CHECK,
            "jiffies: time stands still for milliseconds",
            "let the machine have a better counter (tsc, kvm-clock); see `dmesg | grep clocksource`",
        ),
        slow @ ("hpet" | "acpi_pm") => Finding::warn(
            CHECK,
            format!("{slow}: each look at the clock takes a microsecond, and so does each edict"),
            "see in `dmesg | grep -i tsc` why the kernel does not use the processor's counter",
        ),
        good => Finding::ok(CHECK, good),
    }
}

/// Whether the machine can sleep, and whether it has since it was booted.
pub(super) fn suspend() -> Finding {
    let asleep = now(ClockId::Boottime).saturating_sub(now(ClockId::Monotonic));
    judge_suspend(asleep, Suspends::of_this_machine())
}

fn judge_suspend(asleep: Duration, able: Suspends) -> Finding {
    const CHECK: &str = "suspend";
    const FORBID: &str = "on a server, forbid it: `systemctl mask sleep.target suspend.target`";
    const THEN: &str = "leaderships here end when it does, and a member is silent for a longest lease";
    if asleep >= Duration::from_secs(1) {
        let says = format!("this machine was suspended for {} since boot: {THEN}", readable(asleep));
        return Finding::warn(CHECK, says, FORBID);
    }
    match able {
        Suspends::No => {
            Finding::ok(CHECK, "this machine cannot be suspended: authority costs one clock reading")
        }
        Suspends::Yes => Finding::ok(
            CHECK,
            format!(
                "never since boot, but this machine can be suspended (authority costs two clock readings): {THEN}"
            ),
        ),
        _ => Finding::ok(
            CHECK,
            format!(
                "never since boot; whether it is possible is not known here (/sys/power/state), so it is looked for: {THEN}"
            ),
        ),
    }
}

/// The time service that corrects the clocks, and the slew that is allowed to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Keeper {
    /// As it is called.
    pub(super) name: String,
    /// By how much the rate may be off while it works, in millionths; `None` if it cannot be known
    /// here.
    pub(super) most: Option<u32>,
    /// The setting that makes that less.
    pub(super) remedy: &'static str,
}

/// Finds who corrects the clocks.
pub(super) fn keeper(host: &Host, discipline: Option<Discipline>) -> Keeper {
    if host.runs("chronyd") {
        let slew = chrony_slew(host).unwrap_or(CHRONY_DEFAULT);
        return Keeper {
            name: "chrony".to_owned(),
            most: Some(slew.saturating_add(CRYSTAL)),
            remedy: "write `maxslewrate 500` into chrony.conf on every host and restart chrony",
        };
    }
    for (program, name) in [("ntpd", "ntpd"), ("systemd-timesyncd", "systemd-timesyncd")] {
        if host.runs(program) {
            return Keeper { name: name.to_owned(), most: Some(2 * KERNEL_SLEW), remedy: "use chrony" };
        }
    }
    for program in ["phc2sys", "ptp4l"] {
        if host.runs(program) {
            let remedy = "limit how far it may change the frequency, or use chrony";
            return Keeper { name: program.to_owned(), most: None, remedy };
        }
    }
    let corrected = discipline.is_some_and(|kernel| kernel.synchronised || kernel.correction_ppb != 0);
    if corrected {
        let name = "somebody who is not seen here (the host of a container?)".to_owned();
        return Keeper { name, most: None, remedy: "run `tenure doctor` on the host too" };
    }
    Keeper { name: "nobody".to_owned(), most: Some(CRYSTAL), remedy: "use chrony" }
}

/// `maxslewrate` of chrony's files, the last one that is written.
fn chrony_slew(host: &Host) -> Option<u32> {
    let mut files: Vec<PathBuf> =
        ["/etc/chrony.conf", "/etc/chrony/chrony.conf"].map(|path| host.path(path)).into();
    for folder in ["/etc/chrony/conf.d", "/etc/chrony.d"] {
        let entries = fs::read_dir(host.path(folder)).into_iter().flatten().flatten();
        files.extend(
            entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "conf")),
        );
    }
    let texts: Vec<String> = files.iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
    let rate = |line: &str| {
        let mut words = line.split_whitespace();
        let is = words.next()?.eq_ignore_ascii_case("maxslewrate");
        let rate = words.next()?.parse::<f64>().ok().filter(|rate| is && (0.0..1e6).contains(rate))?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is from 0 to a million"
        )]
        Some(rate.ceil() as u32)
    };
    texts.iter().flat_map(|text| text.lines()).filter_map(rate).next_back()
}

/// Whether ρ covers what the clocks' keeper may do.
pub(super) fn slew(keeper: &Keeper, bound: Option<ClockBound>) -> Finding {
    const CHECK: &str = "slew limit";
    let Keeper { name, most, remedy } = keeper;
    let Some(most) = *most else {
        return match bound {
            Some(ClockBound::Drift { ppm }) if ppm >= CHRONY_DEFAULT + CRYSTAL => Finding::ok(
                CHECK,
                format!("{name} corrects the clocks; ρ of {} covers all that is usual", drift(ppm)),
            ),
            _ => Finding::warn(
                CHECK,
                format!("{name} corrects the clocks, by how much is not known here"),
                format!("{remedy}; until it is known, ρ should be 100,000 ppm (10 %), the default"),
            ),
        };
    };
    let needs = format!("{name} corrects the clocks: rates are off by up to {}", drift(most));
    match bound {
        Some(ClockBound::Drift { ppm }) if ppm < most => Finding::bad(
            CHECK,
            format!("{needs}, but ρ is {}: two may lead at once while it slews", drift(ppm)),
            format!("{remedy}, or `tenure members set --drift-ppm {most}`"),
        ),
        Some(ClockBound::Drift { ppm }) if most <= 1000 && ppm > 10_000 => Finding::ok(
            CHECK,
            format!(
                "{needs}; ρ is {}: {} would do here, and make failover shorter (see `tenure calc`)",
                drift(ppm),
                drift(1_000_u32)
            ),
        ),
        Some(ClockBound::Drift { ppm }) => Finding::ok(CHECK, format!("{needs}, and ρ is {}", drift(ppm))),
        Some(ClockBound::Skew { .. }) | None => Finding::ok(CHECK, needs),
    }
}

/// Checks the corrections that the kernel applies to its clocks, and whether they are synchronised
/// where that is needed.
pub(super) fn kernel(discipline: Option<Discipline>, bound: Option<ClockBound>) -> Finding {
    const CHECK: &str = "kernel clock";
    let Some(kernel) = discipline else {
        return Finding::warn(
            CHECK,
            "the kernel does not say how it corrects its clocks",
            "allow adjtimex in the sandbox",
        );
    };
    let ppm = kernel.correction_ppb / 1000;
    let rate = format!("corrected by {ppm} ppm");
    match bound {
        Some(ClockBound::Skew { bound }) if !kernel.synchronised || kernel.error * 2 > bound => Finding::bad(
            CHECK,
            format!(
                "{rate}, error up to {}: members stop when it is more than half of {}",
                readable(kernel.error),
                readable(bound)
            ),
            "see that a time daemon runs and reaches its servers: `chronyc tracking`",
        ),
        Some(ClockBound::Drift { ppm: rho }) if ppm.unsigned_abs() > u64::from(rho) => Finding::bad(
            CHECK,
            format!("{rate}, which is more than ρ, {}", drift(rho)),
            "stop the time daemon from slewing this fast, or raise ρ with `tenure members set`",
        ),
        _ if kernel.synchronised => {
            Finding::ok(CHECK, format!("{rate}, synchronised to within {}", readable(kernel.error)))
        }
        Some(ClockBound::Drift { .. }) | None => {
            Finding::ok(CHECK, format!("{rate}, not synchronised (which leases do not need)"))
        }
        Some(ClockBound::Skew { .. }) => Finding::ok(CHECK, rate),
    }
}

/// The measurements of one second on this machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Second {
    /// How much faster the boot clock ran than the hardware's counter, in millionths.
    pub(super) against_counter: f64,
    /// The same, against the calendar.
    pub(super) against_calendar: f64,
    /// The longest time for which this process did not get to run, though it wanted to.
    pub(super) hole: Duration,
}

impl Second {
    /// Watches the clocks for a second, waking up each millisecond.
    pub(super) fn watch() -> Self {
        let nap = Duration::from_millis(1);
        let all = || [ClockId::MonotonicRaw, ClockId::Boottime, ClockId::Realtime].map(now);
        let first = all();
        let (mut last, mut hole) = (first[1], Duration::ZERO);
        while last < first[1] + MEASURED {
            thread::sleep(nap);
            let woke = now(ClockId::Boottime);
            hole = hole.max(woke.saturating_sub(last).saturating_sub(nap));
            last = woke;
        }
        let end = all();
        let ran = |which: usize| (end[which].as_secs_f64()) - (first[which].as_secs_f64());
        let ppm = |other: usize| (ran(1) / ran(other) - 1.0) * 1e6;
        Self { against_counter: ppm(0), against_calendar: ppm(2), hole }
    }
}

/// Whether the boot clock runs as it should, by the hardware's counter.
pub(super) fn rate(second: Second, bound: Option<ClockBound>) -> Finding {
    const CHECK: &str = "clock rate";
    let found = format!(
        "{:+.0} ppm against the hardware's counter, {:+.0} ppm against the calendar, over a second",
        second.against_counter, second.against_calendar
    );
    let rho = match bound {
        Some(ClockBound::Drift { ppm }) => ppm,
        _ => CHRONY_DEFAULT,
    };
    // Readings are taken one after another: what the scheduler did in between is no fault of the
    // clock.
    let doubt = second.hole.as_secs_f64() * 1e6;
    if second.against_counter.abs() > f64::from(rho) + doubt + f64::from(CRYSTAL) {
        return Finding::bad(
            CHECK,
            format!("{found}: more than ρ, {}", drift(rho)),
            "find out who slews the clock (`chronyc tracking`), and do not run a member here meanwhile",
        );
    }
    if second.against_calendar.abs() > 1e4 + doubt {
        return Finding::warn(
            CHECK,
            format!("{found}: the calendar was set meanwhile"),
            "leases do not mind; find out who sets it all the time",
        );
    }
    Finding::ok(CHECK, found)
}

/// For how long processes do not get to run here.
pub(super) fn scheduling(second: Second) -> Finding {
    const CHECK: &str = "scheduling";
    let found =
        format!("a process that wanted to run waited up to {}, within a second", readable(second.hole));
    if second.hole < Duration::from_millis(100) {
        return Finding::ok(CHECK, found);
    }
    Finding::warn(
        CHECK,
        found,
        "give the daemon a processor of its own, or a longer lease: see `tenure calc`",
    )
}

/// A reading.
pub(super) fn now(which: ClockId) -> Duration {
    let reading = clock_gettime(which);
    let (seconds, nanos) = (u64::try_from(reading.tv_sec), u32::try_from(reading.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, Host) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let host = Host::at(root.path());
        (root, host)
    }

    fn drift(ppm: u32) -> Option<ClockBound> {
        Some(ClockBound::Drift { ppm })
    }

    #[test]
    fn a_clock_source_is_judged_by_its_name() {
        let path = "sys/devices/system/clocksource/clocksource0/current_clocksource";
        let judged = |name: &str| source(&host(&[(path, name)]).1).state;
        let states = ["tsc\n", "kvm-clock\n", "hpet\n", "acpi_pm\n", "jiffies\n"].map(judged);
        assert_eq!(states, [State::Ok, State::Ok, State::Warn, State::Warn, State::Bad]);
        assert_eq!(source(&host(&[]).1).state, State::Warn);
    }

    #[test]
    fn the_slew_that_chrony_is_allowed_is_read_from_its_files() {
        let running = ("proc/7/comm", "chronyd\n");
        let of = |files: &[(&str, &str)]| keeper(&host(&[&[running], files].concat()).1, None).most;
        assert_eq!(of(&[]), Some(CHRONY_DEFAULT + CRYSTAL));
        assert_eq!(of(&[("etc/chrony/chrony.conf", "pool x\nmaxslewrate 500\n")]), Some(1000));
        let files = [
            ("etc/chrony/chrony.conf", "maxslewrate 500\n"),
            ("etc/chrony/conf.d/a.conf", "MaxSlewRate 2000.5\n"),
        ];
        assert_eq!(of(&files), Some(2501), "the last one counts");
        assert_eq!(of(&[("etc/chrony/chrony.conf", "# maxslewrate 1\n")]), Some(CHRONY_DEFAULT + CRYSTAL));
    }

    #[test]
    fn other_keepers_slew_as_the_kernel_does_and_a_hidden_one_is_not_trusted() {
        let of = |comm: &str| keeper(&host(&[("proc/9/comm", comm)]).1, None);
        assert_eq!((of("ntpd\n").most, of("systemd-timesyn\n").most), (Some(1000), Some(1000)));
        assert_eq!((of("bash\n").name.as_str(), of("bash\n").most), ("nobody", Some(CRYSTAL)));
        let kernel = Discipline::read().map(|mut kernel| {
            kernel.synchronised = true;
            kernel
        });
        let hidden = keeper(&host(&[]).1, kernel);
        assert_eq!(hidden.most, None);
        assert_eq!(slew(&hidden, drift(1000)).state, State::Warn);
        assert_eq!(slew(&hidden, drift(100_000)).state, State::Ok);
    }

    #[test]
    fn a_bound_below_what_the_keeper_may_do_is_bad_and_says_both_ways_out() {
        let chrony = keeper(&host(&[("proc/7/comm", "chronyd\n")]).1, None);
        let finding = slew(&chrony, drift(1000));
        assert_eq!(finding.state, State::Bad);
        let advice = finding.advice.unwrap();
        assert!(
            advice.contains("maxslewrate 500") && advice.contains("members set --drift-ppm 83834"),
            "{advice}"
        );
        assert_eq!(slew(&chrony, drift(100_000)).state, State::Ok);
        assert_eq!(slew(&chrony, None).state, State::Ok);
    }

    #[test]
    fn a_clock_beyond_the_bound_is_bad_and_a_calendar_that_was_set_is_told() {
        let second = |counter, calendar| Second {
            against_counter: counter,
            against_calendar: calendar,
            hole: Duration::from_micros(100),
        };
        assert_eq!(rate(second(20.0, 3.0), drift(1000)).state, State::Ok);
        assert_eq!(rate(second(-5000.0, 3.0), drift(1000)).state, State::Bad);
        assert_eq!(rate(second(-5000.0, 3.0), drift(100_000)).state, State::Ok);
        assert_eq!(rate(second(0.0, 50_000.0), drift(1000)).state, State::Warn);
    }

    #[test]
    fn a_suspend_is_told_with_its_length() {
        let says = |able| judge_suspend(Duration::from_micros(3), able);
        assert!(
            [Suspends::Yes, Suspends::No, Suspends::Unknown].map(says).iter().all(|f| f.state == State::Ok)
        );
        assert!(says(Suspends::No).says.contains("cannot be suspended"));
        assert!(says(Suspends::Unknown).says.contains("not known"));
        let slept = judge_suspend(Duration::from_secs(7200), Suspends::Yes);
        assert!(slept.state == State::Warn && slept.says.contains("120min"), "{}", slept.says);
    }

    #[test]
    fn synchronised_clocks_must_be_synchronised() {
        let mut discipline = Discipline::read().unwrap();
        (discipline.synchronised, discipline.error) = (true, Duration::from_millis(2));
        discipline.correction_ppb = 0;
        let skew = |millis| Some(ClockBound::Skew { bound: Duration::from_millis(millis) });
        assert_eq!(kernel(Some(discipline), skew(10)).state, State::Ok);
        assert_eq!(kernel(Some(discipline), skew(3)).state, State::Bad);
        discipline.synchronised = false;
        assert_eq!(kernel(Some(discipline), skew(10)).state, State::Bad);
        assert_eq!(kernel(Some(discipline), drift(1000)).state, State::Ok);
        discipline.correction_ppb = -2_000_000;
        assert_eq!(kernel(Some(discipline), drift(1000)).state, State::Bad);
    }

    #[test]
    fn a_second_is_measured() {
        let second = Second::watch();
        assert!(
            second.against_counter.abs() < 200_000.0 && second.hole < Duration::from_secs(10),
            "{second:?}"
        );
    }
}
