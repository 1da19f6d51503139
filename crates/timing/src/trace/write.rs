//! Trace Event Format: JSON with times in microseconds, written event by event to save memory.

use super::rows::{DEVICE_PID, HOST_PID, RowAllocator, TraceThread};
use super::{Span, Trace, Track};
use crate::atomic_file;
use serde::{Serialize, Serializer};
use serde_json::json;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Span as a complete event.
#[derive(Serialize)]
struct CompleteEvent<'a> {
    ph: char,
    pid: u32,
    tid: u32,
    name: &'a str,
    ts: f64,
    dur: f64,
    #[serde(skip_serializing_if = "no_args", serialize_with = "args")]
    args: &'a [(String, String)],
    #[serde(skip_serializing_if = "Option::is_none")]
    bind_id: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    flow_out: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    flow_in: bool,
}

fn no_args(args: &&[(String, String)]) -> bool {
    args.is_empty()
}

fn args<S: Serializer>(args: &&[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(args.iter().map(|(key, value)| (key, value)))
}

/// Writer of the array of events.
struct EventWriter<W> {
    out: W,
    separator: &'static str,
}

impl<W: Write> EventWriter<W> {
    fn add(&mut self, event: &impl Serialize) -> io::Result<()> {
        self.out.write_all(self.separator.as_bytes())?;
        self.separator = ",\n";
        Ok(serde_json::to_writer(&mut self.out, event)?)
    }

    fn write_name(&mut self, what: &str, pid: u32, tid: Option<u32>, name: &str) -> io::Result<()> {
        self.add(&json!({"ph": "M", "pid": pid, "tid": tid.unwrap_or(pid), "name": what, "args": {"name": name}}))
    }
}

impl Trace {
    /// Writes the trace to a file atomically.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        atomic_file::replace(path, |file| self.write_to(file))
    }

    /// Writes the trace as JSON. Time begins with the first event.
    pub fn write_to(&self, out: impl Write) -> io::Result<()> {
        let mut out = BufWriter::new(out);
        // `displayTimeUnit` is omitted: older versions of Perfetto took it for the unit of the times.
        writeln!(out, "{{\"otherData\":{},\"traceEvents\":[", json!({"title": self.title}))?;
        let mut events = EventWriter { out, separator: "" };
        for (pid, name) in [(HOST_PID, "host"), (DEVICE_PID, "device")] {
            if self.has_events(pid) {
                events.write_name("process_name", pid, None, name)?;
            }
        }
        self.write_spans(&mut events)?;
        self.write_moments(&mut events)?;
        events.out.write_all(b"\n]}\n")?;
        events.out.flush()
    }

    fn has_events(&self, pid: u32) -> bool {
        match pid {
            HOST_PID => self.spans.iter().any(|span| matches!(span.track, Track::Host(_))),
            _ => !self.samples.is_empty() || self.spans.iter().any(|span| matches!(span.track, Track::Device(_))),
        }
    }

    fn write_spans(&self, events: &mut EventWriter<impl Write>) -> io::Result<()> {
        let mut order: Vec<&Span> = self.spans.iter().collect();
        order.sort_by_key(|span| (span.start_ns, Reverse(span.nanos)));
        let (begins, linked) = (self.start_ns(), self.linked_correlations());
        let mut lanes = RowAllocator::default();
        for span in order {
            let (TraceThread { pid, tid, index }, new) = lanes.assign(span);
            if new {
                let (Track::Host(name) | Track::Device(name)) = &span.track;
                let name = if index == 0 { name.to_string() } else { format!("{name} ({})", index + 1) };
                events.write_name("thread_name", pid, Some(tid), &name)?;
            }
            let bind = span.correlation.filter(|id| linked.contains(id));
            events.add(&CompleteEvent {
                ph: 'X',
                pid,
                tid,
                name: &span.name,
                ts: microseconds(span.start_ns - begins),
                dur: microseconds(span.nanos),
                args: &span.args,
                bind_id: bind.map(|id| format!("{id:#x}")),
                flow_out: bind.is_some() && pid == HOST_PID,
                flow_in: bind.is_some() && pid == DEVICE_PID,
            })?;
        }
        Ok(())
    }

    fn write_moments(&self, events: &mut EventWriter<impl Write>) -> io::Result<()> {
        let begins = self.start_ns();
        for mark in &self.marks {
            let ts = microseconds(mark.at_ns - begins);
            events.add(&json!({"ph": "i", "s": "g", "pid": HOST_PID, "tid": HOST_PID, "name": mark.name, "ts": ts}))?;
        }
        for sample in &self.samples {
            let (ts, args) = (microseconds(sample.at_ns - begins), json!({sample.unit: sample.value}));
            events.add(&json!({"ph": "C", "pid": DEVICE_PID, "name": &*sample.name, "ts": ts, "args": args}))?;
        }
        Ok(())
    }

    /// Correlation ids with spans on both sides, as an arrow requires.
    fn linked_correlations(&self) -> HashSet<u32> {
        let (mut launched, mut ran) = (HashSet::new(), HashSet::new());
        for span in &self.spans {
            let ends = if matches!(span.track, Track::Host(_)) { &mut launched } else { &mut ran };
            ends.extend(span.correlation);
        }
        launched.retain(|id| ran.contains(id));
        launched
    }
}

/// Exact to the nanosecond for the first eleven days, which have fifteen digits.
fn microseconds(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;
    use std::collections::{BTreeMap, HashMap};
    use std::fs;

    fn span(track: Track, name: &str, start_ns: u64, nanos: u64) -> Span {
        Span { track, name: name.into(), start_ns, nanos, correlation: None, args: vec![] }
    }

    fn host() -> Track {
        Track::Host("main".into())
    }

    fn device(stream: u32) -> Track {
        Track::Device(format!("stream {stream}").into())
    }

    /// Events of the written file, strictly parsed.
    fn events(trace: &Trace) -> Vec<Value> {
        let mut text = Vec::new();
        trace.write_to(&mut text).unwrap();
        let mut file: Value = serde_json::from_slice(&text).unwrap();
        serde_json::from_value(file["traceEvents"].take()).unwrap()
    }

    fn with_phase(events: &[Value], phase: &str) -> Vec<Value> {
        events.iter().filter(|event| event["ph"] == phase).cloned().collect()
    }

    fn nanoseconds(value: &Value) -> u64 {
        let text = value.to_string();
        let (whole, decimals) = text.split_once('.').unwrap();
        format!("{whole}{decimals:0<3}").parse().unwrap()
    }

    #[test]
    fn names_and_times_are_exact() {
        const NAME: &str = "void k<int, \"a\\b\">(π → \u{7}\n)";
        let mut trace = Trace::new("a \"case\"");
        let args = vec![("grid <x>".to_owned(), "\"1\", 2".to_owned())];
        trace.add_span(Span { args, ..span(host(), NAME, 1_000_000_000_007, 999_999_999_999_999) });
        trace.add_span(span(device(7), NAME, 1_000_000_001_010, 1));
        let events = with_phase(&events(&trace), "X");
        for (event, start, nanos) in [(&events[0], 0, 999_999_999_999_999), (&events[1], 1_003, 1)] {
            assert_eq!((nanoseconds(&event["ts"]), nanoseconds(&event["dur"])), (start, nanos), "{event}");
            assert_eq!(event["name"], NAME);
        }
        assert_eq!(events[0]["args"], json!({"grid <x>": "\"1\", 2"}));
        assert_eq!(events[1]["args"], Value::Null);
    }

    #[test]
    fn host_and_device_have_named_threads() {
        let mut trace = Trace::new("case");
        trace.add_span(span(host(), "launch", 10, 5));
        trace.add_span(span(device(7), "gemm", 20, 5));
        trace.add_span(span(device(8), "copy", 20, 5));
        let names: Vec<_> = with_phase(&events(&trace), "M")
            .iter()
            .map(|e| (e["name"].clone(), e["pid"].clone(), e["args"]["name"].clone()))
            .collect();
        let expected = [
            ("process_name", HOST_PID, "host"),
            ("process_name", DEVICE_PID, "device"),
            ("thread_name", HOST_PID, "main"),
            ("thread_name", DEVICE_PID, "stream 7"),
            ("thread_name", DEVICE_PID, "stream 8"),
        ];
        assert_eq!(names, expected.map(|(what, pid, name)| (json!(what), json!(pid), json!(name))));
    }

    #[test]
    fn flows_link_launches_and_kernels() {
        let mut trace = Trace::new("case");
        for (track, name, start_ns, id) in [
            (host(), "launch", 0, 30),
            (host(), "no kernel", 20, 31),
            (device(7), "gemm", 40, 30),
            (device(7), "reduce", 60, 30),
            (device(7), "launched before", 80, 32),
        ] {
            trace.add_span(Span { correlation: Some(id), ..span(track, name, start_ns, 10) });
        }
        let arrows: Vec<_> = with_phase(&events(&trace), "X")
            .iter()
            .filter(|event| event["bind_id"] == "0x1e")
            .map(|e| (e["name"].to_string(), e["flow_out"] == true, e["flow_in"] == true))
            .collect();
        let expected = [("launch", true, false), ("gemm", false, true), ("reduce", false, true)];
        assert_eq!(arrows, expected.map(|(name, out, into)| (format!("{name:?}"), out, into)));
        assert_eq!(with_phase(&events(&trace), "X").iter().filter(|event| !event["bind_id"].is_null()).count(), 3);
    }

    #[test]
    fn marks_and_counters_share_the_time_axis() {
        let mut trace = Trace::new("case");
        trace.add_span(span(device(7), "gemm", 2_000, 10));
        trace.add_mark("window 1", 500);
        trace.add_counter_value("power", "W", 2_500, 312.5);
        trace.add_counter_value("power", "W", 2_600, f64::NAN);
        let events = events(&trace);
        let (mark, power) = (with_phase(&events, "i"), with_phase(&events, "C"));
        assert_eq!(
            (&mark[0]["name"], &mark[0]["s"], nanoseconds(&mark[0]["ts"])),
            (&json!("window 1"), &json!("g"), 0)
        );
        assert_eq!((&power[0]["args"], nanoseconds(&power[0]["ts"])), (&json!({"W": 312.5}), 2_000));
        assert_eq!((power.len(), nanoseconds(&with_phase(&events, "X")[0]["ts"])), (1, 1_500));
    }

    #[test]
    fn save_replaces_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("case.json");
        fs::write(&path, "before").unwrap();
        Trace::new("case").save(&path).unwrap();
        let saved: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(saved, json!({"otherData": {"title": "case"}, "traceEvents": []}));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        assert!(Trace::new("case").save(&folder.path().join("no folder/case.json")).is_err());
    }

    fn any_spans() -> impl Strategy<Value = Vec<Span>> {
        let track = (any::<bool>(), 0u32..2).prop_map(|(on_host, number)| match on_host {
            true => Track::Host(format!("thread {number}").into()),
            false => device(number),
        });
        let one = (track, 0u64..3_000, 0u64..2_000).prop_map(|(track, start, nanos)| span(track, "work", start, nanos));
        prop::collection::vec(one, 1..40)
    }

    proptest! {
        #[test]
        fn every_span_is_there_and_none_of_a_thread_crosses_another(spans in any_spans()) {
            let mut trace = Trace::new("case");
            spans.iter().for_each(|span| trace.add_span(span.clone()));
            let events = events(&trace);
            let names: HashMap<_, _> =
                with_phase(&events, "M").into_iter().map(|e| ((e["pid"].to_string(), e["tid"].to_string()), e)).collect();
            let mut threads: BTreeMap<_, Vec<(u64, u64)>> = BTreeMap::new();
            let mut on_device = 0;
            for event in with_phase(&events, "X") {
                let key = (event["pid"].to_string(), event["tid"].to_string());
                prop_assert!(names.contains_key(&key));
                let (start, nanos) = (nanoseconds(&event["ts"]), nanoseconds(&event["dur"]));
                on_device += if event["pid"] == DEVICE_PID { nanos } else { 0 };
                threads.entry(key).or_default().push((start, start + nanos));
            }
            prop_assert_eq!(threads.values().map(Vec::len).sum::<usize>(), spans.len());
            prop_assert_eq!(on_device, trace.kernel_table().iter().map(|row| row.total_ns).sum::<u64>());
            for ((pid, _), spans) in threads {
                for (i, a) in spans.iter().enumerate() {
                    for b in &spans[i + 1..] {
                        let (apart, inside) = (a.1 <= b.0, b.1 <= a.1 && pid == HOST_PID.to_string());
                        prop_assert!(apart || inside, "{a:?} {b:?}");
                    }
                }
            }
        }
    }
}
