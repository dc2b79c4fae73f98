//! A member as a process of its own, told by lines on its standard input what to do. When that
//! ends, so does the process.
//!
//! | line | does | answers |
//! |---|---|---|
//! | `campaign FIRST STEP END` | wants to lead the groups FIRST, FIRST+STEP … below END, whenever it does not | |
//! | `cycle GROUP COUNT` | leads and resigns so often | the last term |
//! | `report` | | one line of numbers: see [`Member::report`] |
//! | `status` | | all that the node says of itself |
//! | `table` | | a line for each group that it leads: group, term, and since when on the boot clock |
//!
//! Every answer ends with a line `end`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::rc::Rc;

use tenure::{Clock, Config, Node, Tenure};

/// The groups that this process leads, and those it has lost.
#[derive(Default)]
struct Ledger {
    led: BTreeMap<u32, (Tenure, u64)>,
    lost: u64,
}

struct Member {
    node: Node,
    ledger: Rc<RefCell<Ledger>>,
}

/// Runs a member by the configuration in a file, until standard input ends.
pub(crate) fn serve(config: &Path) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, async {
        let node = Node::start(Config::from_path(config)?).await?;
        println!("started");
        node.ready().await?;
        println!("ready\nend");
        let member = Member { node, ledger: Rc::default() };
        let mut lines = lines();
        while let Some(line) = lines.recv().await {
            member.obey(&line).await?;
        }
        Ok(())
    })
}

/// Standard input by lines, read on a thread of its own: it is no socket.
fn lines() -> tokio::sync::mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

impl Member {
    async fn obey(&self, line: &str) -> Result<(), Box<dyn Error>> {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["campaign", first, step, end] => {
                for group in (first.parse()?..end.parse()?).step_by(step.parse()?) {
                    tokio::task::spawn_local(campaign(self.node.clone(), group, self.ledger.clone()));
                }
            }
            ["cycle", group, count] => self.cycle(group, count.parse()?).await?,
            ["report"] => self.report().await?,
            ["status"] => println!("{:?}", self.node.status().await?),
            ["table"] => self.table(),
            _ => return Err(format!("no such order: {line}").into()),
        }
        println!("end");
        Ok(())
    }

    async fn cycle(&self, group: &str, count: u32) -> Result<(), Box<dyn Error>> {
        let mut last = None;
        for _ in 0..count {
            let tenure = self.node.campaign(&format!("group/{group}")).await?;
            last = Some(tenure.term().0);
            tenure.resign();
        }
        println!("{}", last.unwrap_or_default());
        Ok(())
    }

    /// `led lost datagrams bytes received`: groups led now, leaderships lost so far, datagrams and
    /// bytes that were sent, datagrams that were received.
    async fn report(&self) -> Result<(), Box<dyn Error>> {
        let status = self.node.status().await?;
        let (led, lost) = (self.led(), self.ledger.borrow().lost);
        let traffic = status.traffic;
        let (sent, bytes) = (traffic.datagrams_sent, traffic.bytes_sent);
        println!("{led} {lost} {sent} {bytes} {}", traffic.datagrams_received);
        Ok(())
    }

    /// By the guards themselves: a group counts while its guard says that this process leads.
    fn led(&self) -> usize {
        self.ledger.borrow().led.values().filter(|(tenure, _)| tenure.is_leader()).count()
    }

    fn table(&self) {
        let mut text = String::new();
        for (group, (tenure, since)) in &self.ledger.borrow().led {
            text.push_str(&format!("{group} {} {since}\n", tenure.term().0));
        }
        print!("{text}");
    }
}

/// Wants to lead a group, again and again.
async fn campaign(node: Node, group: u32, ledger: Rc<RefCell<Ledger>>) {
    let name = format!("group/{group}");
    loop {
        let Ok(tenure) = node.campaign(&name).await else { return };
        let since = Clock::boot().read().as_nanos();
        ledger.borrow_mut().led.insert(group, (tenure.clone(), since));
        let loss = tenure.lost().await;
        let mut ledger = ledger.borrow_mut();
        ledger.led.remove(&group);
        ledger.lost += 1;
        eprintln!("{}: {name} is lost in term {}: {loss}", node.name(), tenure.term().0);
    }
}
