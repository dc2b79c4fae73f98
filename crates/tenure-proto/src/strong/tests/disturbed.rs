//! Clocks that were disturbed: by a suspend that was counted coarsely, or by a virtual machine that
//! was paused.

use super::*;

#[test]
fn a_disturbed_leader_leads_no_more_and_gives_back_after_it_has_said_so() {
    let mut bench = Bench::founded();
    let asked = bench.ask();
    bench.ok(0, asked);
    bench.ok(1, asked);
    assert!(bench.leads().is_some());
    let effects = bench.handle(Input::Command(Command::Disturbed));
    assert_eq!(bench.leads(), None);
    let lost = Event::Lost { group: GROUP, term: asked.term, loss: Loss::Disturbed };
    let said =
        effects.iter().position(|effect| *effect == Effect::Publish(lost.clone())).expect("it says so");
    let given =
        |effect: &Effect<Nerio>| matches!(effect, Effect::Send { message: Message::Release { .. }, .. });
    assert!(effects.iter().position(given).is_some_and(|given| said < given), "{effects:?}");
}

#[test]
fn answers_to_a_run_from_before_a_disturbance_do_not_count() {
    let mut bench = Bench::founded();
    let asked = bench.ask();
    bench.ok(0, asked);
    bench.handle(Input::Command(Command::Disturbed));
    bench.ok(1, asked);
    bench.ok(2, asked);
    assert_eq!(bench.leads(), None);
}

#[test]
fn a_disturbed_grantor_is_silent_as_after_a_reboot_and_remembers_it() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Request(request(1, 1, 1)));
    let until = LocalTime::from_nanos(20_000 + 2200 + 1);
    let effects = bench.at(20_000).handle(Input::Command(Command::Disturbed));
    assert!(effects.contains(&Effect::Remember(Cell::Silence(until))), "{effects:?}");
    assert!(effects.contains(&Effect::Publish(Event::Silent { until })));
    assert_eq!(answers(&bench.at(22_200).hear(2, Message::Request(request(2, 1, 2)))), []);
    assert_eq!(answers(&bench.at(22_201).hear(2, Message::Request(request(2, 1, 2)))), [(2, "ok", Some(1))]);
}

#[test]
fn a_disturbance_begins_the_wait_between_two_epochs_anew() {
    let mut bench = Bench::founded();
    let effects = bench.at(20_000).handle(Input::Command(Command::Disturbed));
    let at = LocalTime::from_nanos(20_000);
    let anew = |effect: &Effect<Nerio>| matches!(effect, Effect::Remember(Cell::Adopted { at: told, .. }) if *told == at);
    assert!(effects.iter().any(anew), "{effects:?}");
}

#[test]
fn a_disturbance_is_noticed_although_the_clock_is_behind() {
    let mut bench = Bench::founded();
    bench.at(20_000).handle(Input::Deadline);
    bench.at(15_000).handle(Input::Command(Command::Disturbed));
    assert_eq!(bench.node.silent_until().as_nanos(), 20_000 + 2200 + 1, "counted from the latest reading");
}

#[test]
fn a_pledge_from_before_a_disturbance_is_kept_until_the_silence_is_over() {
    let mut bench = Bench::founded();
    let asked = bench.ask();
    bench.ok(0, asked);
    bench.ok(1, asked);
    let (group, wanted) = (GROUP, Span::from_nanos(100));
    bench.hear(2, Message::Talk { group, talk: Talk::Verify { id: request(2, 1, 1).id, wanted } });
    // By its clock the pledge is over; how long it has stood in truth, nobody knows.
    let effects = bench.at(15_000).handle(Input::Command(Command::Disturbed));
    let is_release = |answer: &(u64, &str, Option<u64>)| answer.1 == "release";
    assert!(!answers(&effects).iter().any(is_release), "{effects:?}");
    let later = bench.at(15_000 + 2201).handle(Input::Deadline);
    assert!(answers(&later).iter().any(is_release), "{later:?}");
}
