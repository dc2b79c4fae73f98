//! Looking on while an election runs. A run without a watcher pays nothing.

use std::collections::{BTreeMap, VecDeque};

use tenure_proto::classic::{Message, Port, Standing};

/// Somebody who looks on.
pub trait Watch {
    /// Whether it wants to see every event, in the order of time.
    const SEES_ALL: bool = false;
    /// A node woke by itself.
    fn woke(&mut self, _time: u64, _node: u32) {}
    /// A node said something into a port; it will be heard at the far end.
    fn sent<M: Message>(&mut self, _time: u64, _from: (u32, Port), _to: (u32, Port), _message: &M) {}
    /// A node hears something.
    fn received<M: Message>(&mut self, _time: u64, _node: u32, _port: Port, _message: &M) {}
    /// Where a node stands after a step.
    fn stands(&mut self, _time: u64, _node: u32, _standing: Standing) {}
    /// So many more messages were handled.
    fn progress(&mut self, _messages: u64) {}
    /// Where events are written down, if they are. For runs that are compiled once for all.
    fn trace(&mut self) -> Option<&mut Trace> {
        None
    }
}

/// Nobody looks on.
impl Watch for () {}

/// One record of an execution: the lecture's (time, node, type, message).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub time: u64,
    /// The node, by its place.
    pub node: u32,
    /// What.
    pub what: What,
}

/// The kind of event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The node woke by itself.
    Wake,
    /// It sent the message of this number.
    Send(usize),
    /// It received the message of this number.
    Receive(usize),
    /// It stands elsewhere now.
    Stand(Standing),
}

/// A message of a recorded run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The sender's place.
    pub from: u32,
    /// The receiver's place.
    pub to: u32,
    /// Whether it went clockwise.
    pub clockwise: bool,
    /// When it was sent.
    pub sent: u64,
    /// When it was received; nothing if it never was.
    pub received: Option<u64>,
    /// Its kind.
    pub kind: &'static str,
    /// All that it says.
    pub text: String,
}

/// All that happened, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The events.
    pub events: Vec<Event>,
    /// The messages that were sent.
    pub messages: Vec<Sent>,
    /// Where each node stands.
    standings: BTreeMap<u32, Standing>,
    /// Messages under way to each end.
    links: BTreeMap<(u32, Port), VecDeque<usize>>,
}

impl Trace {
    /// The execution as text: time, node, type, message.
    pub fn text(&self, ids: &[u32]) -> String {
        let mut text = "# time  node  id  type  message\n".to_owned();
        for event in &self.events {
            let (kind, says) = match &event.what {
                What::Wake => ("wake", String::new()),
                What::Send(number) => ("send", self.messages[*number].text.clone()),
                What::Receive(number) => ("receive", self.messages[*number].text.clone()),
                What::Stand(standing) => ("state", format!("{standing:?}")),
            };
            let id = ids.get(event.node as usize).map(ToString::to_string).unwrap_or_default();
            text += format!("{}  n{}  {id}  {kind}  {says}", event.time, event.node).trim_end();
            text.push('\n');
        }
        text
    }
}

impl Watch for Trace {
    const SEES_ALL: bool = true;

    fn trace(&mut self) -> Option<&mut Trace> {
        Some(self)
    }

    fn woke(&mut self, time: u64, node: u32) {
        self.events.push(Event { time, node, what: What::Wake });
    }

    fn sent<M: Message>(&mut self, time: u64, from: (u32, Port), to: (u32, Port), message: &M) {
        let number = self.messages.len();
        self.messages.push(Sent {
            from: from.0,
            to: to.0,
            clockwise: from.1.0 == 1,
            sent: time,
            received: None,
            kind: M::KINDS[message.kind()],
            text: message.to_string(),
        });
        self.links.entry(to).or_default().push_back(number);
        self.events.push(Event { time, node: from.0, what: What::Send(number) });
    }

    fn received<M: Message>(&mut self, time: u64, node: u32, port: Port, _message: &M) {
        let Some(number) = self.links.get_mut(&(node, port)).and_then(VecDeque::pop_front) else { return };
        self.messages[number].received = Some(time);
        self.events.push(Event { time, node, what: What::Receive(number) });
    }

    fn stands(&mut self, time: u64, node: u32, standing: Standing) {
        let before = self.standings.insert(node, standing).unwrap_or(Standing::Asleep);
        if before != standing {
            self.events.push(Event { time, node, what: What::Stand(standing) });
        }
    }
}
