use tenure_lab::{simulate::*, sweep::*, stage::Watch, shrink::shrink, subject::strong::Strong, mutant::Broken};
#[test]
fn t() {
    let setup = Setup { nodes: 5, quorums: "majority".into(), faults: Faults::all(), sets: vec![], horizon: None };
    for m in tenure_lab::mutant::STRONG {
    let w = Watch{properties:true, ..Watch::default()};
    let range = Range { first: 0, seeds: 20000, stop_at_first: true, threads: 2, watch: w };
    let start = std::time::Instant::now();
    let swept = sweep(&m.subject(), &setup, range, &|_| ()).unwrap();
    let Some((seed, v)) = swept.violations.first() else { println!("{} NOT FOUND", m.name); continue };
    let took = start.elapsed();
    let s = simulate(&m.subject(), &setup, *seed, Watch{record:true, ..w}).unwrap();
    let script = s.script.unwrap();
    let n = script.lines.len();
    let shrunk = shrink(&m.subject(), script, v.property, 20000);
    println!("{:20} {:?} {} {} {n} -> {} lines {} nodes in {} replays {:?}", m.name, took, swept.schedules, v.property, shrunk.script.lines.len(), shrunk.script.clocks.len(), shrunk.replays, start.elapsed());
    let mut script = shrunk.script; script.protocol="nerio-drift".into(); script.mutant=Some(m.name.into());
    let back = tenure_lab::script::parse::<Strong<Broken>>(&script.write::<Strong<Broken>>()).unwrap();
    assert_eq!(back.lines.len(), script.lines.len());
    let r = tenure_lab::script::replay(&m.subject(), &back, Watch{record:true, only: Some(v.property), ..w}).unwrap();
    assert_eq!(r.outcome.violation.as_ref().unwrap().property, v.property);
    assert!(r.skipped.is_empty());
    script.lines = r.outcome.record.unwrap().lines;
    std::fs::write(format!("/tmp/{}.scenario", m.name), script.write::<Strong<Broken>>()).unwrap();
    }
}
