//! Members as processes: founds a cluster on this machine, starts its members, talks to them, looks
//! at what they take.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use tenure::{ClusterId, ClusterKey, Config, Node, Term};

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// A founded cluster, with a file of configuration for each member.
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    pub(crate) cluster: ClusterId,
    pub(crate) names: Vec<String>,
}

/// A member that runs.
pub(crate) struct Process {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// What [`member`](super::member) reports.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Report {
    pub(crate) led: u64,
    pub(crate) lost: u64,
    pub(crate) datagrams: u64,
    pub(crate) bytes: u64,
    pub(crate) received: u64,
}

/// A group that is led: which, in which term, and since when on the boot clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Led {
    pub(crate) group: u32,
    pub(crate) term: u64,
    pub(crate) since: u64,
}

impl Place {
    /// Founds a cluster of three. Files are below `folder`, and so is the store of each member;
    /// `settings` is the rest of each member's file.
    pub(crate) fn found(folder: PathBuf, settings: &str) -> Outcome<Self> {
        std::fs::create_dir_all(&folder)?;
        let place =
            Self { folder, cluster: ClusterId::draw(), names: ["a", "b", "c"].map(String::from).into() };
        let key = ClusterKey::generate();
        let key_file = place.folder.join("key");
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&key_file)?;
        file.write_all(key.reveal().as_bytes())?;
        let addresses = free_addresses(place.names.len())?;
        let members: String = place
            .names
            .iter()
            .zip(&addresses)
            .map(|(name, address)| {
                format!("[[cluster.members]]\nname = \"{name}\"\naddress = \"{address}\"\n")
            })
            .collect();
        for (name, address) in place.names.iter().zip(&addresses) {
            let text = format!(
                "name = \"{name}\"\nlisten = [\"{address}\"]\nstore = \"{}\"\nkey_file = \"{}\"\n{members}{settings}",
                place.folder.join(name).display(),
                key_file.display(),
            );
            std::fs::write(place.file(name), text)?;
            Node::found(&Config::from_path(place.file(name))?, place.cluster, Term(1000))?;
        }
        Ok(place)
    }

    /// The configuration of a member.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.toml"))
    }

    /// Starts all members with `command`, which must end up in [`serve`](super::member::serve), and
    /// waits until they are ready.
    pub(crate) fn start(&self, command: impl Fn(&Path) -> Command) -> Outcome<Vec<Process>> {
        let start = |name: &String| Process::start(command(&self.file(name)));
        let mut processes = self.names.iter().map(start).collect::<Outcome<Vec<_>>>()?;
        for process in &mut processes {
            process.answer()?;
        }
        Ok(processes)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for name in &self.names {
            if let Ok(folder) = tenure::memory_folder(None) {
                let _ = std::fs::remove_file(folder.join(format!("tenure-{}-{name}", self.cluster)));
            }
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The command that runs a member: this very program, or from a test the example that Cargo builds
/// beside it.
pub(crate) fn member(config: &Path) -> Command {
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

/// Ports that are free now, for datagrams and streams. They are below those that Linux hands out by
/// itself, so that nobody is given one before it is used.
fn free_addresses(count: usize) -> Outcome<Vec<SocketAddr>> {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let mut free = Vec::new();
    while free.len() < count {
        let place = std::process::id().wrapping_mul(61).wrapping_add(TRIED.fetch_add(1, Relaxed));
        let address = SocketAddr::from(([127, 0, 0, 1], u16::try_from(20_000 + place % 5_000)?));
        if UdpSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok() {
            free.push(address);
        }
    }
    Ok(free)
}

impl Process {
    /// Starts it; the first answer comes when it is ready.
    pub(crate) fn start(mut command: Command) -> Outcome<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Self { child, orders, answers })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Gives an order and waits for the answer.
    pub(crate) fn ask(&mut self, order: &str) -> Outcome<Vec<String>> {
        writeln!(self.orders.as_mut().ok_or("it is told nothing any more")?, "{order}")?;
        self.answer()
    }

    /// The lines of an answer.
    pub(crate) fn answer(&mut self) -> Outcome<Vec<String>> {
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
    pub(crate) fn campaign(&mut self, first: u32, step: u32, end: u32) -> Outcome<()> {
        self.ask(&format!("campaign {first} {step} {end}")).map(drop)
    }

    pub(crate) fn report(&mut self) -> Outcome<Report> {
        let line = self.ask("report")?.pop().ok_or("no report")?;
        let mut numbers = line.split(' ').map(str::parse::<u64>);
        let mut next = || numbers.next().ok_or("a number is missing")?.map_err(|_| "no number");
        let (led, lost, datagrams) = (next()?, next()?, next()?);
        Ok(Report { led, lost, datagrams, bytes: next()?, received: next()? })
    }

    pub(crate) fn table(&mut self) -> Outcome<Vec<Led>> {
        let row = |line: &String| -> Outcome<Led> {
            let numbers = line.split(' ').map(str::parse).collect::<Result<Vec<u64>, _>>()?;
            let [group, term, since] = numbers[..] else { return Err(format!("no row: {line}").into()) };
            Ok(Led { group: u32::try_from(group)?, term, since })
        };
        self.ask("table")?.iter().map(row).collect()
    }

    /// As `kill -9` does.
    pub(crate) fn kill(&mut self) -> Outcome<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// How much time of a processor it has taken so far. (The kernel tells it in hundredths of a
    /// second.)
    pub(crate) fn cpu(&self) -> Outcome<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id()))?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
        let (user, system) = ticks(11).zip(ticks(12)).ok_or("no times in /proc/PID/stat")?;
        Ok(Duration::from_millis(10 * (user + system)))
    }

    /// How many KiB of memory it has.
    pub(crate) fn memory(&self) -> Outcome<u64> {
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
