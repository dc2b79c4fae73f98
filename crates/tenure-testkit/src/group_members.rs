//! Members as processes that lead many groups each: the example `many_groups` is such a member, and
//! is told by lines on its standard input what to do. This starts them, talks to them, and looks at
//! what they take.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::member_files::{MemberFiles, NAMES};

/// A value, or why there is none, for a person to read.
pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// A founded cluster, with a file of configuration for each member.
pub struct Place(MemberFiles);

/// A member that runs.
pub struct Process {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// The figures of a member.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Groups that it leads now.
    pub led: u64,
    /// Leaderships that it has lost so far.
    pub lost: u64,
    /// Datagrams that it has sent.
    pub datagrams: u64,
    /// Bytes in these.
    pub bytes: u64,
    /// Datagrams that it has received.
    pub received: u64,
}

/// A group that is led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Led {
    /// Its number.
    pub group: u32,
    /// In which term.
    pub term: u64,
    /// Since when, in nanoseconds of the boot clock.
    pub since: u64,
}

impl Place {
    /// Founds a cluster of three in a folder, which is removed with this. `settings` is the rest of
    /// each member's file.
    pub fn found(folder: &Path, settings: &str) -> Self {
        Self(MemberFiles::found(folder, |_| settings.to_owned()))
    }

    /// Starts all members with `command`, which gets a member's file, and waits until they are
    /// ready.
    pub fn start(&self, command: impl Fn(&Path) -> Command) -> Outcome<Vec<Process>> {
        let start = |name: &str| Process::start(command(&self.0.file(name)));
        let mut processes = NAMES.into_iter().map(start).collect::<Outcome<Vec<_>>>()?;
        for process in &mut processes {
            process.answer()?;
        }
        Ok(processes)
    }

    /// The file of a member.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.file(name)
    }

    /// The folder of the files and stores.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0.folder);
    }
}

/// The command that runs a member: this very program, or from a test the example `many_groups` that
/// Cargo builds beside it.
pub fn member(config: &Path) -> Command {
    let this = std::env::current_exe().unwrap_or_default();
    let folder = this.parent().unwrap_or(Path::new("."));
    let program = match folder.ends_with("deps") {
        true => folder.with_file_name("examples").join("many_groups"),
        false => this.clone(),
    };
    let mut command = Command::new(program);
    command.arg("member").arg(config);
    command
}

impl Process {
    /// Starts it; the first answer comes when it is ready.
    pub fn start(mut command: Command) -> Outcome<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Self { child, orders, answers })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Gives an order and waits for the answer.
    pub fn ask(&mut self, order: &str) -> Outcome<Vec<String>> {
        writeln!(self.orders.as_mut().ok_or("it is told nothing any more")?, "{order}")?;
        self.answer()
    }

    /// The lines of an answer.
    pub fn answer(&mut self) -> Outcome<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.answers.read_line(&mut line)? == 0 {
                return Err(format!("process {} has ended", self.id()).into());
            }
            match line.trim_end() {
                "end" => return Ok(lines),
                line => lines.push(line.to_owned()),
            }
        }
    }

    /// Wants to lead every `step`th group from `first` on, below `end`.
    pub fn campaign(&mut self, first: u32, step: u32, end: u32) -> Outcome<()> {
        self.ask(&format!("campaign {first} {step} {end}")).map(drop)
    }

    /// Its figures.
    pub fn report(&mut self) -> Outcome<Report> {
        let line = self.ask("report")?.pop().ok_or("no report")?;
        let mut numbers = line.split(' ').map(str::parse::<u64>);
        let mut next = || numbers.next().ok_or("a number is missing")?.map_err(|_| "no number");
        let (led, lost, datagrams) = (next()?, next()?, next()?);
        Ok(Report { led, lost, datagrams, bytes: next()?, received: next()? })
    }

    /// The groups that it leads.
    pub fn table(&mut self) -> Outcome<Vec<Led>> {
        let row = |line: &String| -> Outcome<Led> {
            let numbers = line.split(' ').map(str::parse).collect::<Result<Vec<u64>, _>>()?;
            let [group, term, since] = numbers[..] else { return Err(format!("no row: {line}").into()) };
            Ok(Led { group: u32::try_from(group)?, term, since })
        };
        self.ask("table")?.iter().map(row).collect()
    }

    /// As `kill -9` does.
    pub fn kill(&mut self) -> Outcome<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// How much time of a processor it has taken so far. (The kernel tells it in hundredths of a
    /// second.)
    pub fn cpu(&self) -> Outcome<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id()))?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
        let (user, system) = ticks(11).zip(ticks(12)).ok_or("no times in /proc/PID/stat")?;
        Ok(Duration::from_millis(10 * (user + system)))
    }

    /// How many KiB of memory it has.
    pub fn memory(&self) -> Outcome<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.orders = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
