//! What CI does, nothing hidden.
fn main() {}
