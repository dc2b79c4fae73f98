use super::clockwise::Clockwise;
use super::ids::Message;
use super::*;

struct Never;

impl Chooser for Never {
    fn choose(&mut self, _bound: u32) -> u32 {
        unreachable!("nothing is left to chance here")
    }
}

fn step<N: Node>(
    node: &mut N,
    act: impl FnOnce(&mut N, &mut Turn<'_, N::Message>),
) -> Vec<(Port, N::Message)> {
    let mut sent = Vec::new();
    act(node, &mut Turn::new(None, &mut Never, &mut sent));
    sent
}

#[test]
fn a_larger_id_is_passed_on_and_a_smaller_one_is_swallowed() {
    let mut node = Clockwise::new(Id(5), 2);
    assert_eq!(step(&mut node, |node, turn| node.wake(turn)), [(RIGHT, Message::Id(5))]);
    assert_eq!(step(&mut node, |node, turn| node.receive(LEFT, Message::Id(3), turn)), []);
    assert_eq!(node.standing(), Standing::Candidate);
    assert_eq!(
        step(&mut node, |node, turn| node.receive(LEFT, Message::Id(8), turn)),
        [(RIGHT, Message::Id(8))]
    );
    assert_eq!(node.standing(), Standing::Passive);
}

#[test]
fn a_sleeper_that_hears_a_larger_id_never_sends_its_own() {
    let mut node = Clockwise::new(Id(5), 2);
    assert_eq!(
        step(&mut node, |node, turn| node.receive(LEFT, Message::Id(8), turn)),
        [(RIGHT, Message::Id(8))]
    );
    let mut other = Clockwise::new(Id(5), 2);
    assert_eq!(
        step(&mut other, |node, turn| node.receive(LEFT, Message::Id(3), turn)),
        [(RIGHT, Message::Id(5))]
    );
}

#[test]
fn a_node_of_the_large_rings_is_small() {
    assert_eq!((size_of::<Clockwise>(), size_of::<Message>()), (12, 8));
}

#[test]
#[should_panic(expected = "an asynchronous node has no clock")]
fn an_asynchronous_node_that_asks_for_the_round_is_stopped() {
    let mut sent: Vec<(Port, Message)> = Vec::new();
    let _ = Turn::new(None, &mut Never, &mut sent).round();
}

#[test]
fn the_centre_of_a_star_knows_it_by_its_ports() {
    let mut centre = star::Star::new(Nothing, 3);
    assert_eq!(step(&mut centre, |node, turn| node.wake(turn)).len(), 3);
    let mut leaf = star::Star::new(Nothing, 1);
    assert_eq!(step(&mut leaf, |node, turn| node.wake(turn)), []);
    assert_eq!((centre.standing(), leaf.standing()), (Standing::Leader, Standing::Candidate));
}

#[test]
fn numbers_are_as_long_as_their_digits() {
    assert_eq!([0, 1, 2, 255, 256].map(bits), [1, 1, 2, 8, 9]);
}
