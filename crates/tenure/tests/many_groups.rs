//! Many groups on three members, at a size for every day; `cargo xtask bench groups` runs ten
//! thousand.

use std::path::Path;
use std::process::Command;

#[test]
fn five_hundred_groups_are_held_and_all_are_taken_over_when_a_member_is_killed() {
    let test = std::env::current_exe().expect("this test is a program");
    let target = test.parent().and_then(Path::parent).expect("it is in target/PROFILE/deps");
    let output = Command::new(target.join("examples/many_groups"))
        .args(["--groups", "500", "--hold", "6s", "--lease", "5s"])
        .output()
        .expect("Cargo builds the examples with the tests");
    let (text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}{said}");
    let each = |line: &str| line.split_whitespace().nth(5).and_then(|bytes| bytes.parse::<u64>().ok());
    let sizes: Vec<u64> = text.lines().skip(3).take(3).filter_map(each).collect();
    assert!(sizes.len() == 3 && sizes.iter().all(|bytes| *bytes > 400), "renewals share datagrams:\n{text}");
}
