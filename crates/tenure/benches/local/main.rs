//! Local leadership between real processes, measured as Fetzer and Cristian measured theirs (IEEE
//! TSE, 1999).
//!
//! | file | measures |
//! |---|---|
//! | `holes` | how late this machine wakes a thread, and how long a datagram takes: δ and σ are chosen from that; and a witness who goes on looking |
//! | `constants` | all other constants, which follow; beside those of the paper |
//! | `rounds` | from asking to leading, for 1 to 8 processes, and for 8 along a tree (figures 25, 26 and 29), on loopback and in namespaces |
//! | `splits` | from a split to the first request without outsiders, and to a leader (figure 27): cut by nftables between network namespaces, and by delay beyond Δ |
//! | `member` | one process of it: this program starts itself |
//! | `place` | where members run |
//! | `report` | tables in Markdown, and figures from which `cargo xtask bench local --out FOLDER` draws |
//!
//! Without root, parts that need namespaces are left out with a message. Nothing here fails because
//! a machine is slow.

mod constants;
mod holes;
mod member;
mod place;
mod report;
mod rounds;
mod splits;

use std::path::PathBuf;
use std::process::ExitCode;

use tenure_testkit::namespaces::Net;

use constants::Plan;
use holes::Witness;
use report::Report;

const USAGE: &str =
    "usage: cargo xtask bench local [rounds [COUNT] | splits [COUNT]] [--quick] [--out FOLDER]

  rounds         only from asking to leading, so many elections of each group [default: 5000]
  splits         only from a split to leaders, so many splits [default: 500], and a fifth as many by delay
  --quick        100 elections, 20 splits: to see that it works
  --out FOLDER   keep the tables (tables.md) and figures (figures.txt) there, and the pictures drawn of them";

/// Selects the measurements, and how often each runs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Order {
    rounds: Option<usize>,
    splits: Option<usize>,
    folder: Option<PathBuf>,
}

/// Parses the arguments; `None` if they are not understood.
fn order(words: &[&str]) -> Option<Order> {
    let (mut quick, mut folder, mut rest) = (false, None, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--quick" => quick = true,
            "--out" => folder = Some(PathBuf::from(words.next()?)),
            other => rest.push(other),
        }
    }
    let [rounds, splits] = if quick { [100, 20] } else { [5000, 500] };
    let count = |word: &str| word.parse::<usize>().ok().filter(|count| *count > 0);
    let (rounds, splits) = match rest.as_slice() {
        [] => (Some(rounds), Some(splits)),
        ["rounds"] => (Some(rounds), None),
        ["rounds", number] => (Some(count(number)?), None),
        ["splits"] => (None, Some(splits)),
        ["splits", number] => (None, Some(count(number)?)),
        _ => return None,
    };
    Some(Order { rounds, splits, folder })
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [member::MEMBER, rest @ ..] = words.as_slice() {
        member::run(rest);
        return ExitCode::SUCCESS;
    }
    if words.iter().any(|word| ["--help", "-h"].contains(word)) {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let Some(order) = order(&words) else {
        eprintln!("local: not understood: {arguments:?}\n{USAGE}");
        return ExitCode::from(2);
    };
    match measure(&order) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("local: {}: {error}", order.folder.unwrap_or_default().display());
            ExitCode::from(2)
        }
    }
}

fn measure(order: &Order) -> std::io::Result<()> {
    let begun = holes::now();
    let mut report = Report::new(order.folder.clone())?;
    let (machine, says) = holes::measure();
    report.say(&format!("Machine: {says}."));
    let plan = Plan::choose(machine, usize::from(splits::HOSTS), None);
    report.say(&format!("\n### Constants (ms)\n\n{}", constants::table(&plan)));
    let hosts = u8::try_from(rounds::MOST).expect("they are few");
    let net = Net::make(hosts.max(splits::HOSTS));
    if let Err(error) = &net {
        report.say(&format!(
            "\nNetwork namespaces are left out ({error}): root with iproute2 and nftables has them."
        ));
    }
    let (net, witness) = (net.as_ref().ok(), Witness::start(machine));
    if let Some(count) = order.rounds {
        rounds::run(count, machine, net, &witness, &mut report);
    }
    if let Some(count) = order.splits {
        splits::run([count, (count / 5).max(1)], &plan, net, &witness, &mut report);
    }
    eprintln!("measured in {:.0} s", holes::millis(holes::now() - begun) / 1e3);
    report.keep()
}
