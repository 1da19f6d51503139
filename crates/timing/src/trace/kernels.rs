//! Device kernels by name.

use super::{Trace, Track};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// All spans of the device with one name.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KernelRow {
    /// Kernel name.
    pub name: Arc<str>,
    /// Number of spans.
    pub calls: u64,
    /// Total duration; overlaps count twice.
    pub total_ns: u64,
    /// Share of all device spans.
    pub share: f64,
}

/// Width of the columns besides the name.
const NUMBER_COLUMNS_WIDTH: usize = 41;
const MIN_NAME_WIDTH: usize = 8;

impl Trace {
    /// Device spans by name, longest total first.
    pub fn kernel_table(&self) -> Vec<KernelRow> {
        let mut by_name: HashMap<&Arc<str>, (u64, u64)> = HashMap::new();
        for span in self.spans.iter().filter(|span| matches!(span.track, Track::Device(_))) {
            let (calls, total) = by_name.entry(&span.name).or_default();
            *calls += 1;
            *total += span.nanos;
        }
        let all: u64 = by_name.values().map(|(_, total)| total).sum();
        let mut rows: Vec<KernelRow> = by_name
            .into_iter()
            .map(|(name, (calls, total_ns))| {
                // Spans of zero length have no share.
                let share = if all == 0 { 0.0 } else { total_ns as f64 / all as f64 };
                KernelRow { name: name.clone(), calls, total_ns, share }
            })
            .collect();
        rows.sort_unstable_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name)));
        rows
    }

    /// Formats the kernel table for a terminal of `width` characters, without a final line feed; long names lose their
    /// middle.
    pub fn table_text(&self, width: usize) -> String {
        let rows = self.kernel_table();
        let longest = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        let room = longest.min(width.saturating_sub(NUMBER_COLUMNS_WIDTH)).max(MIN_NAME_WIDTH);
        let mut text = format!("{:room$} {:>7} {:>12} {:>11} {:>7}", "kernel", "calls", "total µs", "mean µs", "share");
        for KernelRow { name, calls, total_ns, share } in rows {
            let (name, total) = (shorten(&name, room), total_ns as f64 / 1e3);
            let (mean, percent) = (total / calls as f64, 100.0 * share);
            let _ = write!(text, "\n{name:room$} {calls:>7} {total:>12.1} {mean:>11.3} {percent:>6.1}%");
        }
        text
    }
}

fn shorten(name: &str, room: usize) -> String {
    let letters: Vec<char> = name.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if letters.len() <= room {
        return letters.into_iter().collect();
    }
    let (head, tail) = (room / 2, (room - 1) / 2);
    letters[..head].iter().chain(&['…']).chain(&letters[letters.len() - tail..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Span;

    fn trace() -> Trace {
        let mut trace = Trace::new("case");
        let device = |name: &str, nanos| Span {
            track: Track::Device("stream 7".into()),
            name: name.into(),
            start_ns: 0,
            nanos,
            correlation: None,
            args: vec![],
        };
        for nanos in [100_000, 50_000] {
            trace.add_span(device("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>(Params)", nanos));
        }
        trace.add_span(device("quantize\n", 50_000));
        trace.add_span(Span { track: Track::Host("main".into()), ..device("cuLaunchKernel", 900_000) });
        trace
    }

    #[test]
    fn kernel_table_excludes_host_calls() {
        let rows: Vec<_> = trace().kernel_table().into_iter().map(|r| (r.calls, r.total_ns, r.share)).collect();
        assert_eq!(rows, [(2, 150_000, 0.75), (1, 50_000, 0.25)]);
        assert_eq!(Trace::new("empty").kernel_table(), []);
    }

    #[test]
    fn table_abbreviates_long_names() {
        let expected = "\
kernel                  calls     total µs     mean µs   share
void cutla…m>(Params)       2        150.0      75.000   75.0%
quantize                    1         50.0      50.000   25.0%";
        assert_eq!(trace().table_text(62), expected);
        let wide = trace().table_text(200);
        assert!(wide.contains("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>(Params)       2"), "{wide}");
    }
}
