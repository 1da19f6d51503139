//! Time series stored on disk.

use crate::samples::{bare, header, resumed, run, summary, without_export, without_series};
use calorimeter_sinks::record::Record;
use calorimeter_sinks::{Journal, SeriesStore, SinkError, SinkInput, journal, write_all};
use std::fs;
use std::path::Path;

/// Writes a journal in which one case has two records; the last counts.
fn write_journal(dir: &Path) -> (Vec<Record>, SeriesStore) {
    let records = vec![without_export("a"), bare("b"), without_export("c")];
    let mut journal = Journal::create(dir, &header()).unwrap();
    let mut earlier = records[0].clone();
    earlier.time.windows.pop();
    for record in [&earlier].into_iter().chain(&records) {
        journal.append(record).unwrap();
    }
    (records, journal.finish(&summary(false)).unwrap())
}

fn full_records(run: &SinkInput) -> Vec<Record> {
    run.records_with_series().map(|record| record.unwrap().into_owned()).collect()
}

#[test]
fn sinks_read_series_from_disk() {
    let (kept, left) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (records, stored) = write_journal(left.path());
    assert_ne!(without_series(&records), records);
    let on_disk = SinkInput { stored, ..run(left.path(), without_series(&records)) };
    assert_eq!(full_records(&on_disk), records);
    let in_memory = run(kept.path(), records);
    let [ours, expected] = [&on_disk, &in_memory].map(|run| {
        let written = write_all(run);
        assert!(written.errors.is_empty(), "{:?}", written.errors);
        let bytes = |path: &std::path::PathBuf| (path.file_name().unwrap().to_owned(), fs::read(path).unwrap());
        // The last file lists the files next to it, and only one of the two runs has a journal there.
        written.paths[..written.paths.len() - 1].iter().map(bytes).collect::<Vec<_>>()
    });
    assert_eq!(ours, expected);
}

#[test]
fn resumed_runs_keep_series_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let (records, _) = write_journal(dir.path());
    let (journal, contents) = Journal::resume(dir.path(), &header().config_fingerprint, &resumed()).unwrap();
    assert_eq!(contents.records, without_series(&records));
    let stored = journal.finish(&summary(false)).unwrap();
    assert_eq!(full_records(&SinkInput { stored, ..run(dir.path(), contents.records) }), records);
    assert_eq!(journal::read(dir.path()).unwrap().records, records);
}

#[test]
fn truncated_journals_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let (records, stored) = write_journal(dir.path());
    fs::File::options().write(true).open(dir.path().join("journal.jsonl")).unwrap().set_len(9).unwrap();
    let run = SinkInput { stored, ..run(dir.path(), without_series(&records)) };
    let error = run.records_with_series().next().unwrap().unwrap_err();
    assert!(matches!(&error, SinkError::Read { path, .. } if path.ends_with("journal.jsonl")), "{error:?}");
}
