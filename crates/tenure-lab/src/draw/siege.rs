//! Draws the joins of the open-schedule adversary: small lines below, the whole ring on top.

use super::svg::text::{Paper, num, open, put, small};
use crate::protocols::ring::adversary::{Join, Siege};

const WIDE: f64 = 1200.0;
const LEFT: f64 = 110.0;
const ROW: f64 = 64.0;
const TOP: f64 = 100.0;

/// Draws the joins as an SVG document: each bar is a line of nodes, its edge at the place that was
/// joined.
pub fn draw(name: &str, siege: &Siege) -> String {
    let levels = siege.nodes.ilog2();
    let high = TOP + ROW * f64::from(levels) + 70.0;
    let mut out = String::new();
    let title = format!("{name} against the open-schedule adversary, {} nodes", siege.nodes);
    let note = format!(
        "{} messages heard with an edge open; at least {} are forced. Numbers: heard after the join, and how many were needed \
         (n/4). Blue: the inner edge was joined; orange: the outer one.",
        siege.receptions, siege.bound,
    );
    open(&mut out, Paper { size: (WIDE, high), font: 12, heading: 19, style: "" }, &title, &note);
    let unit = (WIDE - LEFT - 24.0) / small(siege.nodes);
    for level in 1..=levels {
        let size = 1_usize << level;
        let y = TOP + ROW * f64::from(levels - level);
        let joins = siege.joins.iter().filter(|join| join.size == size);
        let heard: u64 = joins.clone().map(Join::heard).sum();
        put!(
            out,
            "<text x=\"24\" y=\"{}\" fill=\"#1f2933\" font-weight=\"600\">{size}</text>\
             <text x=\"24\" y=\"{}\" fill=\"#66727f\" font-size=\"11\">heard {heard}</text>\n",
            num(y + 16.0),
            num(y + 32.0),
        );
        joins.for_each(|join| {
            draw_join(&mut out, join, (LEFT + unit * small(join.from), y, unit * small(size)));
        });
    }
    put!(
        out,
        "<text x=\"24\" y=\"{}\" fill=\"#66727f\">{} nodes, awake, in the order of the ring; what they say waits at the open edge</text>\n</svg>\n",
        num(high - 28.0),
        siege.nodes,
    );
    out
}

fn draw_join(out: &mut String, join: &Join, (x, y, wide): (f64, f64, f64)) {
    let colour = if join.chose_outer { "#e69f00" } else { "#0072b2" };
    let gap = (wide * 0.04).clamp(0.2, 6.0);
    put!(
        out,
        "<g><title>{} nodes from n{}: inner edge {} heard, outer edge {} heard</title>\
         <rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"22\" rx=\"3\" fill=\"{colour}\" fill-opacity=\"0.25\" stroke=\"{colour}\"/>",
        join.size,
        join.from,
        join.inner,
        join.outer,
        num(x + gap),
        num(y),
        num((wide - 2.0 * gap).max(0.4)),
    );
    let edges: &[f64] = if join.chose_outer { &[0.0, 1.0] } else { &[0.5] };
    for edge in edges {
        let at = x + gap + (wide - 2.0 * gap) * edge;
        put!(
            out,
            "<path d=\"M{} {}v30\" stroke=\"{colour}\" stroke-width=\"{}\"/>",
            num(at),
            num(y - 4.0),
            if wide > 20.0 { "3" } else { "1" }
        );
    }
    if wide > 90.0 {
        put!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#1f2933\">{} ≥ {}</text>",
            num(x + wide * 0.27),
            num(y + 15.0),
            join.heard(),
            join.size.div_ceil(4),
        );
    }
    out.push_str("</g>\n");
}
