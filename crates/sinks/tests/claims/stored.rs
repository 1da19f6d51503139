//! Time series stored on disk.

use crate::samples::{bare, header, resumed, run, slim, stays_home, summary};
use calorimeter_sinks::record::Record;
use calorimeter_sinks::{Journal, Run, Stored, journal, write_all};
use std::fs;
use std::path::Path;

/// Writes a journal in which one case has two records; the last counts.
fn written(dir: &Path) -> (Vec<Record>, Stored) {
    let records = vec![stays_home("a"), bare("b"), stays_home("c")];
    let mut journal = Journal::create(dir, &header()).unwrap();
    let mut earlier = records[0].clone();
    earlier.time.windows.pop();
    for record in [&earlier].into_iter().chain(&records) {
        journal.append(record).unwrap();
    }
    (records, journal.finish(&summary(false)).unwrap())
}

fn whole(run: &Run) -> Vec<Record> {
    run.whole().map(|record| record.unwrap().into_owned()).collect()
}

#[test]
fn series_are_read_back_from_the_journal_and_every_file_is_the_same() {
    let (kept, left) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (records, stored) = written(left.path());
    assert_ne!(slim(&records), records);
    let on_disk = Run { stored, ..run(left.path(), slim(&records)) };
    assert_eq!(whole(&on_disk), records);
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
fn a_run_that_goes_on_leaves_the_series_of_its_first_part_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let (records, _) = written(dir.path());
    let (journal, contents) = Journal::resume(dir.path(), &header().config_fingerprint, &resumed()).unwrap();
    assert_eq!(contents.records, slim(&records));
    let stored = journal.finish(&summary(false)).unwrap();
    assert_eq!(whole(&Run { stored, ..run(dir.path(), contents.records) }), records);
    assert_eq!(journal::read(dir.path()).unwrap().records, records);
}

#[test]
fn a_journal_that_has_been_cut_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (records, stored) = written(dir.path());
    fs::File::options().write(true).open(dir.path().join("journal.jsonl")).unwrap().set_len(9).unwrap();
    let run = Run { stored, ..run(dir.path(), slim(&records)) };
    let error = run.whole().next().unwrap().unwrap_err().to_string();
    assert!(error.contains("journal.jsonl"), "{error}");
}
