//! Comparison of two machines as text.

use super::machines::{MachineComparison, PeakPair, Ratios};

/// Formats the tables, at most 80 columns wide.
pub fn machines_table(found: &MachineComparison) -> String {
    let MachineComparison { a, b, peaks, operations, all, prices, .. } = found;
    let mut text = format!("A  {a}\nB  {b}\n\n{:<10} {:>14} {:>14} {:<8} {:>8}\n", "peak", "A", "B", "", "B / A");
    for PeakPair { kind, unit, a, b, ratio } in peaks {
        let [a, b] = [a, b].map(|rate| rate.map_or_else(|| "-".into(), |rate| format!("{rate:.1}")));
        text += &format!("{kind:<10} {a:>14} {b:>14} {unit:<8} {}\n", figure(*ratio));
    }
    if !operations.is_empty() {
        let head = ["sizes", "speed", "per joule", "per price"];
        text += &format!("\n{:<32} {:>6} {:>9} {:>9} {:>9}\n", "B relative to A", head[0], head[1], head[2], head[3]);
    }
    for operation in operations {
        text += &line(&operation.operation, &operation.ratios);
    }
    if let Some(all) = all {
        text += &line("all operations", all);
        text += &format!("\n{}\n", conclusion(all, *prices));
    }
    text
}

fn line(name: &str, ratios: &Ratios) -> String {
    let Ratios { sizes, speed, per_joule, per_price } = ratios;
    let [per_joule, per_price] = [per_joule, per_price].map(|ratio| figure(*ratio));
    format!("{name:<32} {sizes:>6} {speed:>8.3}x {per_joule:>9} {per_price:>9}\n")
}

fn figure(ratio: Option<f64>) -> String {
    format!("{:>8}", ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.3}x")))
}

/// Conclusion: one sentence each about speed, energy and price.
fn conclusion(all: &Ratios, prices: Option<[f64; 2]>) -> String {
    let winner = |ratio: f64| if ratio >= 1.0 { ("B", ratio) } else { ("A", 1.0 / ratio) };
    let (fastest, speed) = winner(all.speed);
    let mut sentences = vec![format!("{fastest} is {speed:.2} times as fast.")];
    match all.per_joule {
        Some(ratio) => {
            let (best, ratio) = winner(ratio);
            sentences.push(format!("{best} does {ratio:.2} times as much work per joule."));
        }
        None => sentences.push("Energy efficiency is unknown: at least one machine did not measure energy.".into()),
    }
    match all.per_price {
        Some(ratio) => {
            let (best, ratio) = winner(ratio);
            let [a, b] = prices.unwrap_or_default();
            sentences.push(format!("At prices of {a} and {b}, {best} does {ratio:.2} times as much work per price."));
        }
        None => sentences.push("Pass --price A,B to compare work per price.".into()),
    }
    sentences.join("\n")
}
