use tenure_lab::{simulate::*, stage::Watch, subject::strong::Strong, script::*};
#[test]
fn t() {
    let setup = Setup { nodes: 5, quorums: "majority".into(), faults: Faults::all(), sets: vec![], horizon: None };
    let w = Watch{properties:true, record: true, ..Watch::default()};
    let mut bad=0;
    for seed in 0..200 {
    let subject = if std::env::var("M").is_ok() { tenure_lab::mutant::STRONG.iter().find(|m| m.name=="no-step8-check").unwrap().subject() } else { tenure_lab::mutant::Mutant{name:"",says:"",rules:tenure_lab::mutant::Broken::Nothing,flaws:tenure_lab::world::Flaws::NONE}.subject()};
    let s = simulate(&subject, &setup, seed, w).unwrap();
    let script = s.script.unwrap();
    let r = replay(&subject, &script, w).unwrap();
    let a = &script.lines; let b = &r.outcome.record.as_ref().unwrap().lines;
    if a != b { bad+=1; let i = a.iter().zip(b).position(|(a,b)| a!=b).unwrap_or(9999999); if bad<4 {println!("{seed}: {} {} first diff {i}: {:?}\n{:?}\n{:?} {:?}", a.len(), b.len(), a.get(i), b.get(i), r.skipped.len(), r.skipped.first().map(|i| &a[*i]));} }
    }
    println!("bad {bad}");
}
