//! Tests the guarantees of the drawings, on a run that looks like an election.

use super::*;

const MS: u64 = 1_000_000;

/// Builds a picture as a run would: message by message.
struct Run {
    picture: Picture,
}

impl Run {
    fn new(title: &str, nodes: usize, end: u64) -> Self {
        let lanes = (0..nodes).map(|node| format!("n{node}")).collect();
        Run { picture: Picture { title: title.to_owned(), lanes, end: end * MS, ..Picture::default() } }
    }

    fn arrow(&mut self, from: usize, to: usize, sent: u64, arrived: Option<u64>, kind: &str, text: &str) {
        let (kind, text) = (kind.to_owned(), text.to_owned());
        self.minute(sent, from, &format!("sends {text} to n{to}"), &[]);
        if let Some(at) = arrived {
            self.minute(at, to, &format!("receives {text} from n{from}"), &[]);
        }
        self.picture.arrows.push(Arrow { from, to, sent, arrived, kind, text });
    }

    fn bar(&mut self, lane: usize, from: u64, until: u64, kind: BarKind, text: &str) {
        self.picture.bars.push(Bar { lane, from, until, kind, text: text.to_owned() });
    }

    fn mark(&mut self, lane: usize, at: u64, kind: MarkKind, text: &str) {
        self.minute(at, lane, text, &["the driver is told"]);
        self.picture.marks.push(Mark { lane: Some(lane), at, kind, text: text.to_owned() });
    }

    fn zone(&mut self, from: u64, until: u64, text: &str, calm: bool) {
        self.picture.zones.push(Zone { from: from * MS, until: until * MS, text: text.to_owned(), calm });
    }

    fn minute(&mut self, at: u64, lane: usize, text: &str, outcomes: &[&str]) {
        let outcomes = outcomes.iter().map(|&outcome| outcome.to_owned()).collect();
        self.picture.minutes.push(Minute { at, lane: Some(lane), text: text.to_owned(), outcomes });
    }

    /// One round of `leader` asking all; those in `quorum` grant until `until`, `deaf` hear
    /// nothing.
    fn round(&mut self, leader: usize, at: u64, number: u64, quorum: &[usize], deaf: &[usize]) {
        let until = at + 60 * MS;
        self.bar(leader, at, until, BarKind::Grant { to: leader }, &format!("granted to n{leader} (itself)"));
        for to in (0..self.picture.lanes.len()).filter(|&to| to != leader) {
            let wire = (1 + (to as u64 * 7 + number * 3) % 4) * MS + 200_000;
            let ask = format!("Request(round {number}, n{leader})");
            if deaf.contains(&to) {
                self.arrow(leader, to, at, None, "request", &ask);
                continue;
            }
            self.arrow(leader, to, at, Some(at + wire), "request", &ask);
            let (kind, text) = if quorum.contains(&to) {
                let text = format!("granted to n{leader} in round {number}");
                self.bar(to, at + wire, at + wire + 60 * MS, BarKind::Grant { to: leader }, &text);
                ("ok", format!("Ok(round {number})"))
            } else {
                ("nack", format!("Nack(round {number}, bound to another)"))
            };
            self.arrow(to, leader, at + wire, Some(at + wire * 2), kind, &text);
        }
    }

    fn finish(mut self, verdict: &str, broken: bool) -> Picture {
        self.picture.minutes.sort_by_key(|minute| minute.at);
        self.picture.verdict = verdict.to_owned();
        self.picture.broken = broken;
        self.picture
    }
}

/// Five nodes: n0 is elected by {0, 1, 2}, is cut off and crashes; n3 follows; n0 comes back and
/// keeps silent.
fn election(broken: bool) -> Picture {
    let mut run = Run::new("strong election, 5 nodes, schedule 4711", 5, 400);
    run.round(4, 12 * MS, 1, &[], &[0]);
    run.round(0, 24 * MS, 1, &[1, 2], &[]);
    run.mark(0, 30 * MS, MarkKind::Elected, "becomes leader: granted by n0 n1 n2");
    for number in 2..5 {
        run.round(0, (24 + (number - 1) * 30) * MS, number, &[1, 2, 4], &[3]);
    }
    run.zone(110, 215, "clean split: n0 n1 | n2 n3 n4", false);
    run.round(0, 140 * MS, 5, &[], &[2, 3, 4]);
    run.bar(0, 30 * MS, if broken { 262 } else { 172 } * MS, BarKind::Lease, "n0 leads, term 1");
    run.mark(0, 150 * MS, MarkKind::Crash, "crashes");
    run.bar(0, 150 * MS, 228 * MS, BarKind::Down, "n0 is down");
    if !broken {
        run.mark(0, 172 * MS, MarkKind::Lost, "its lease ends");
    }
    run.zone(160, 240, "one way: n1 hears nobody <but n0> & speaks", false);
    run.mark(0, 228 * MS, MarkKind::Start, "starts again");
    run.bar(0, 228 * MS, 292 * MS, BarKind::Silent, "n0 keeps silent: a grant may outlive the crash");
    run.round(3, 190 * MS, 1, &[2, 4], &[0, 1]);
    run.mark(3, 196 * MS, MarkKind::Elected, "becomes leader: granted by n2 n3 n4");
    for number in 2..7 {
        let deaf: &[usize] = if number < 5 { &[0, 1] } else { &[0] };
        run.round(3, (190 + (number - 1) * 30) * MS, number, &[1, 2, 4], deaf);
    }
    run.bar(3, 196 * MS, 398 * MS, BarKind::Lease, "n3 leads, term 2");
    run.bar(1, 246 * MS, 276 * MS, BarKind::Paused, "n1 is paused");
    run.bar(4, 352 * MS, 390 * MS, BarKind::Suspended, "n4 is suspended");
    run.zone(300, 400, "calm", true);
    if !broken {
        return run.finish("two leaders never at once; n3 leads 46 ms after n0 crashed", false);
    }
    let text = "two leaders at once: n0 (until 262 ms) and n3 (from 196 ms)";
    run.picture.marks.push(Mark {
        lane: None,
        at: 196 * MS,
        kind: MarkKind::Violation,
        text: text.to_owned(),
    });
    run.finish("unity broken at 196 ms: n0 and n3 both lead", true)
}

/// Twenty seconds in which the leadership moves on every few seconds: thousands of messages.
fn long_run() -> Picture {
    let mut run = Run::new("strong election, 5 nodes, 20 s of faults", 5, 20_000);
    let mut since = 40 * MS;
    for turn in 0..9_u64 {
        let leader = [0, 3, 1, 4, 2][usize::try_from(turn % 5).expect("small")];
        let until = since + 1_900 * MS;
        run.mark(leader, since + 6 * MS, MarkKind::Elected, "elected");
        for number in 0..60 {
            let quorum = [(leader + 1) % 5, (leader + 2) % 5, (leader + 3) % 5];
            let deaf = if number % 9 == 4 { vec![(leader + 4) % 5] } else { vec![] };
            run.round(leader, since + number * 31 * MS, number, &quorum, &deaf);
        }
        run.bar(
            leader,
            since + 6 * MS,
            until,
            BarKind::Lease,
            &format!("n{leader} leads, term {}", turn + 1),
        );
        run.mark(leader, until, MarkKind::Crash, "crash");
        run.bar(leader, until, until + 700 * MS, BarKind::Down, "down");
        run.mark(leader, until + 700 * MS, MarkKind::Start, "start");
        run.bar(leader, until + 700 * MS, until + 1000 * MS, BarKind::Silent, "silent");
        let at = since / MS;
        run.zone(at + 400, at + 1500, "one way: n1 hears nobody", false);
        run.zone(at + 900, at + 2600, "clean split: n0 n1 | n2 n3 n4", false);
        since = until + 240 * MS;
    }
    run.finish("all properties hold", false)
}

/// A crowded picture: many lanes with long names, zones and violations on top of each other.
fn crowded() -> Picture {
    let mut run = Run::new("crowded: zones & violations on top of each other", 11, 100);
    run.picture.lanes[3] = "frankfurt-rack-17.example".to_owned();
    for number in 0..7 {
        run.zone(
            20 + number * 3,
            60 + number * 5,
            &format!("partition {number}: a rather long text about it"),
            false,
        );
        let (lane, at) = (Some(2), (50 + number) * MS);
        let text = format!("violation {number}: n2 saw what it must not see");
        run.picture.marks.push(Mark { lane, at, kind: MarkKind::Violation, text });
    }
    run.round(2, 10 * MS, 1, &[0, 1, 3, 4, 5, 6], &[9, 10]);
    run.round(5, 40 * MS, 1, &[7, 8, 9], &[]);
    for term in 0..4 {
        let from = (16 + term * 20) * MS;
        run.bar(2, from, from + 25 * MS, BarKind::Lease, &format!("n2 leads, term {term}"));
    }
    run.arrow(4, 4, 70 * MS, Some(74 * MS), "request", "to itself");
    run.arrow(5, 5, 70 * MS, None, "request", "to itself, lost");
    run.finish("seven properties broken", true)
}

/// A picture that no run should give, but a drawing must bear.
fn strange() -> Picture {
    let mut run = Run::new("strange </script>", 2, 10);
    run.arrow(0, 0, MS, Some(2 * MS), "self", "to itself");
    run.arrow(1, 1, MS, None, "self", "to itself, lost");
    run.arrow(7, 9, MS, Some(u64::MAX), "request", "no such lane");
    run.arrow(0, 1, 9 * MS, Some(u64::MAX), "request", "after the end");
    run.arrow(0, 1, 9 * MS, Some(0), "request", "before it was sent");
    run.bar(9, 0, MS, BarKind::Lease, "no such lane");
    run.bar(0, MS, u64::MAX, BarKind::Grant { to: 12 }, "without end");
    run.bar(0, 5 * MS, 4 * MS, BarKind::Down, "backwards");
    run.mark(9, MS, MarkKind::Start, "no such lane");
    run.picture.zones.push(Zone { from: 9 * MS, until: 2, text: "w".repeat(500), calm: false });
    run.picture.marks.push(Mark { lane: None, at: u64::MAX, kind: MarkKind::Lost, text: String::new() });
    run.finish("</script><script>alert(1)</script>", false)
}

/// A picture of one message with this text.
fn saying(text: &str) -> Picture {
    let mut run = Run::new(text, 2, 10);
    run.arrow(0, 1, MS, Some(2 * MS), "request", text);
    run.bar(0, MS, 5 * MS, BarKind::Lease, text);
    run.zone(1, 2, text, false);
    run.mark(1, MS, MarkKind::Elected, text);
    run.finish(text, false)
}

#[test]
fn text_is_escaped_in_both_drawings() {
    let picture = saying("<b> & \"c\" 'd' \u{1}");
    let svg = svg::draw(&picture);
    assert!(!svg.contains("<b>") && !svg.contains('\u{1}'));
    assert!(svg.contains("&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39; \u{fffd}"));
    let html = html::draw(&picture);
    assert!(!html.contains("<b> &") && !html.contains('\u{1}'));
    assert!(html.contains("\\u003cb\\u003e \\u0026 \\\"c\\\" 'd' \\u0001"));
}

#[test]
fn a_script_end_inside_a_text_does_not_end_the_script() {
    let page = |text: &str| html::draw(&saying(text));
    let ends = |page: &str| page.to_lowercase().matches("</script").count();
    assert_eq!(ends(&page("harmless")), 2);
    assert_eq!(ends(&page("a</script><script>alert(1)</SCRIPT ><!--<script>")), 2);
    assert!(!page("<!--<script>").contains("<!--"));
}

#[test]
fn a_lost_message_ends_in_a_cross() {
    let mut run = Run::new("lost", 2, 10);
    run.arrow(0, 1, 5 * MS, None, "request", "hello");
    let svg = svg::draw(&run.picture);
    assert!(
        svg.contains("class=\"lost\"")
            && svg.contains("message lost")
            && svg.contains("stroke-dasharray=\"4 3\"")
    );
    assert!(!svg::draw(&saying("kept")).contains("class=\"lost\""));
}

#[test]
fn every_lane_appears_in_both_drawings() {
    let picture = election(false);
    let (svg, html) = (svg::draw(&picture), html::draw(&picture));
    for lane in &picture.lanes {
        assert!(svg.contains(&format!("font-size=\"13\" font-weight=\"600\">{lane}</text>")), "{lane}");
        assert!(html.contains(&format!("{{\"name\":\"{lane}\"")), "{lane}");
    }
}

#[test]
fn the_same_picture_gives_the_same_bytes() {
    assert_eq!(svg::draw(&election(true)), svg::draw(&election(true)));
    assert_eq!(html::draw(&election(true)), html::draw(&election(true)));
    assert_eq!(svg::draw(&long_run()), svg::draw(&long_run()));
}

#[test]
fn the_drawings_refer_to_nothing_outside() {
    let html = html::draw(&election(true)).replace("http://www.w3.org/2000/svg", "");
    let svg = svg::draw(&election(true)).replace("http://www.w3.org/2000/svg", "");
    for text in [html, svg] {
        for outside in ["http://", "https://", "src=", "@import", "<link", "href="] {
            assert!(!text.contains(outside), "{outside}");
        }
    }
}

#[test]
fn a_violation_is_visible() {
    let (kept, broken) = (election(false), election(true));
    let svg = svg::draw(&broken);
    assert!(
        svg.contains("class=\"violation\"") && svg.contains("BROKEN") && svg.contains("a property is broken")
    );
    assert!(svg.contains("two leaders at once: n0 (until 262 ms) and n3 (from 196 ms)</text>"));
    assert!(!svg::draw(&kept).contains("class=\"violation\""));
    assert!(html::draw(&broken).contains("class=\"verdict broken\""));
    assert!(html::draw(&kept).contains("class=\"verdict kept\""));
}

#[test]
fn the_legend_names_what_is_used_and_nothing_else() {
    let svg = svg::draw(&saying("hello"));
    for used in [">leads<", ">elected<", ">partition<", ">request<"] {
        assert!(svg.contains(used), "{used}");
    }
    for unused in ["supports,", ">down<", ">crash<", "calm", "message lost"] {
        assert!(!svg.contains(unused), "{unused}");
    }
}

#[test]
fn the_legend_has_the_words_of_the_protocol_and_letters_stand_beside_tracks_only_where_it_has_some() {
    let mut picture = saying("hello");
    assert!(!svg::draw(&picture).contains(">E</text>"));
    picture.words = Words { leads: "rules", tracks: ["E", "F"], ..Words::default() };
    let (svg, html) = (svg::draw(&picture), html::draw(&picture));
    assert!(svg.contains(">rules<") && svg.contains(">E</text>") && !svg.contains(">leads<"), "{svg}");
    assert!(html.contains("\"leads\":\"rules\"") && html.contains("\"leadTrack\":\"E\""));
}

#[test]
fn what_only_shows_that_somebody_lives_is_faint_in_the_image_and_put_aside_on_the_page() {
    let mut picture = saying("hello");
    assert!(!html::draw(&picture).contains("\"routine\":true"));
    let faint = |picture: &Picture| svg::draw(picture).matches("opacity=\".35\"").count();
    let before = faint(&picture);
    picture.words.routine = "request";
    assert!(html::draw(&picture).contains("\"routine\":true"));
    assert!(faint(&picture) > before);
}

#[test]
fn renewed_bars_become_one_and_conflicting_grants_get_rows_of_their_own() {
    let mut run = Run::new("rows", 3, 100);
    for (from, until, to) in [(0, 20, 1), (10, 30, 1), (25, 40, 2), (50, 60, 1)] {
        run.bar(0, from * MS, until * MS, BarKind::Grant { to }, "granted");
    }
    let runs = look::runs(&run.picture);
    let told: Vec<_> = runs.iter().map(|run| (run.from / MS, run.until / MS, run.bars, run.row)).collect();
    assert_eq!(told, [(0, 30, 2, 0), (25, 40, 1, 1), (50, 60, 1, 0)]);
}

#[test]
fn the_line_of_leaders_shows_overlap() {
    let reigns = look::reigns(&look::runs(&election(true)));
    let told: Vec<_> =
        reigns.iter().map(|reign| (reign.from / MS, reign.until / MS, reign.lanes.clone())).collect();
    assert_eq!(told, [(30, 196, vec![0]), (196, 262, vec![0, 3]), (262, 398, vec![3])]);
}

#[test]
fn times_are_told_exactly_and_ticks_are_round() {
    assert_eq!(look::time_text(30_250_000), "30.25 ms");
    assert_eq!(look::time_text(0), "0 ms");
    assert_eq!(look::time_text(12_000_000_001), "12.000000001 s");
    assert_eq!(look::tick_step(400 * MS, 13), 50 * MS);
    assert_eq!(look::tick_step(0, 0), 1);
    assert!(look::tick_step(u64::MAX, 1) > u64::MAX / 100);
}

#[test]
fn refusals_are_red_and_colours_follow_first_appearance() {
    let kinds = look::kinds(&election(false));
    let told: Vec<_> = kinds.iter().map(|kind| (kind.name.as_str(), kind.colour)).collect();
    assert_eq!(told, [("request", "#5d6b7e"), ("nack", "#c8202f"), ("ok", "#23808f")]);
}

#[test]
fn strange_pictures_are_drawn_without_panic() {
    let mut late = strange();
    (late.start, late.end) = (u64::MAX, u64::MAX);
    for picture in [strange(), late, Picture::default()] {
        for drawing in [svg::draw(&picture), html::draw(&picture)] {
            assert!(!drawing.contains("\"NaN") && !drawing.contains("NaN "));
        }
        assert!(nests(&svg::draw(&picture)));
    }
}

#[test]
fn what_the_last_instant_began_is_seen() {
    let mut run = Run::new("end", 2, 100);
    run.bar(1, 100 * MS, 100 * MS, BarKind::Lease, "n1 leads, term 1");
    run.bar(0, 90 * MS, 100 * MS, BarKind::Grant { to: 1 }, "n0 supports n1");
    run.bar(0, 20 * MS, 80 * MS, BarKind::Grant { to: 0 }, "n0 supports n0");
    let told = |picture: &Picture| -> Vec<_> {
        look::runs(picture).iter().map(|run| (run.lane, run.from / MS, run.open)).collect()
    };
    assert_eq!(told(&run.picture), [(0, 20, false), (0, 90, true), (1, 100, true)]);
    assert_eq!(look::reigns(&look::runs(&run.picture)).len(), 1);
    assert!(svg::draw(&run.picture).contains("leads, term 1 (100 ms to beyond the end of the run)"));
    run.mark(1, 100 * MS, MarkKind::Lost, "n1 leads no more: its lease is over");
    assert_eq!(told(&run.picture), [(0, 20, false), (0, 90, true)]);
}

#[test]
fn a_scenario_of_few_lines_has_a_step_for_each_instant() {
    let mut run = Run::new("small", 2, 100);
    run.arrow(0, 1, MS, Some(MS + 20_000), "request", "hello");
    run.arrow(1, 0, MS + 30_000, Some(99 * MS), "ok", "hello");
    let scale = scale::Scale::new(&run.picture);
    let places: Vec<f64> = [0, MS, MS + 20_000, MS + 30_000].map(|at| scale.place(at)).to_vec();
    assert!(scale.stepped && places.windows(2).all(|pair| pair[1] - pair[0] > 0.1), "{places:?}");
    let svg = svg::draw(&run.picture);
    assert!(svg.contains(look::STEPS) && svg.contains(">1.02 ms<") && svg.contains(">99 ms<"));
    for picture in [long_run(), election(true), saying("hello"), Picture::default()] {
        assert!(!scale::Scale::new(&picture).stepped && !svg::draw(&picture).contains(look::STEPS));
    }
}

#[test]
fn the_name_of_a_lane_is_told_once() {
    assert_eq!(look::named("n1 leads, term 3", "n1"), "n1: leads, term 3");
    assert_eq!(look::named("n10 leads", "n1"), "n1: n10 leads");
    assert_eq!(look::named("n1", "n1"), "n1: n1");
    assert_eq!(look::shorter("n1 leads, term 3", "n1"), ["n1 leads, term 3", "leads, term 3", "term 3"]);
    let svg = svg::draw(&election(false));
    assert!(svg.contains("<title>n0: leads, term 1 (") && !svg.contains("<title>n0: n0"));
}

#[test]
fn the_reason_stands_beside_a_loss_where_there_is_room() {
    let mut run = Run::new("why", 2, 100);
    run.bar(0, 10 * MS, 20 * MS, BarKind::Lease, "n0 leads, term 1");
    run.mark(0, 20 * MS, MarkKind::Lost, "n0 leads no more, term 1: its lease is over");
    assert!(svg::draw(&run.picture).contains(">its lease is over</text>"));
    run.bar(0, 23 * MS, 90 * MS, BarKind::Down, "n0 is down");
    assert!(!svg::draw(&run.picture).contains(">its lease is over</text>"));
}

/// Whether all tags nest, as an XML reader asks.
fn nests(svg: &str) -> bool {
    let mut open: Vec<&str> = Vec::new();
    for tag in svg.split('<').skip(1) {
        let (inside, _) = tag.split_once('>').expect("every tag is closed");
        let name = inside.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap_or("");
        if inside.starts_with('/') {
            if open.pop() != Some(name) {
                return false;
            }
        } else if !inside.ends_with('/') {
            open.push(name);
        }
    }
    open.is_empty()
}

#[test]
fn the_image_is_well_formed() {
    for picture in [election(false), election(true), long_run(), crowded(), saying("a < b > c & \"d\"")] {
        assert!(nests(&svg::draw(&picture)), "{}", picture.title);
    }
}

#[test]
fn labels_of_zones_that_overlap_are_in_different_rows() {
    let svg = svg::draw(&crowded());
    let row = |number: usize| {
        let end =
            svg.find(&format!(">partition {number}: a rather long text about it</text>")).expect("a label");
        let tag = &svg[svg[..end].rfind("<text").expect("its tag")..end];
        tag.split(" y=\"").nth(1).expect("its height").split('"').next().expect("a number").to_owned()
    };
    let rows: std::collections::BTreeSet<String> = (0..7).map(row).collect();
    assert_eq!(rows.len(), 7);
}

#[test]
fn many_arrows_stay_a_reasonable_image() {
    let picture = long_run();
    assert!(picture.arrows.len() > 4_000);
    let svg = svg::draw(&picture);
    assert!(svg.len() < 1_000_000, "{}", svg.len());
}

#[test]
fn what_a_lane_is_there_for_stands_under_its_name() {
    let lanes = vec!["n0".to_owned(), "n1".to_owned()];
    let roles = vec![String::new(), "outsider".to_owned()];
    let picture = Picture { lanes, roles, end: 10 * MS, ..Picture::default() };
    assert_eq!(svg::draw(&picture).matches(">outsider</text>").count(), 1);
    assert!(html::draw(&picture).contains("\"name\":\"n1\",\"role\":\"outsider\""));
}
