//! Crash safety, resumption and validation of the journal.

use crate::samples::{bare, full, header, resumed, summary, without_series};
use calorimeter_sinks::chrono::DateTime;
use calorimeter_sinks::journal::{self, Header, JOURNAL_FILE, Journal, JournalFollower, JournalLine, JournalWarning};
use calorimeter_sinks::{CaseExcerpt, Record, SinkError, SinkInput, Status};
use std::path::Path;
use std::process::{Command, Stdio};
use std::{fs, io};

/// Writes a finished journal with two records; returns its bytes.
fn small_journal(dir: &Path) -> Vec<u8> {
    let mut journal = Journal::create(dir, &header()).unwrap();
    journal.append(&full("a")).unwrap();
    journal.append(&bare("b")).unwrap();
    journal.finish(&summary(false)).unwrap();
    fs::read(dir.join(JOURNAL_FILE)).unwrap()
}

#[test]
fn journal_round_trips() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = small_journal(dir.path());
    assert!(bytes.starts_with(br#"{"schema":"calorimeter-journal","version":1,"run_id":"r1","started":"#));
    let contents = journal::read(dir.path()).unwrap();
    assert_eq!(contents.header, header());
    assert_eq!(contents.records, [full("a"), bare("b")]);
    assert_eq!(contents.summary, Some(summary(false)));
    assert!(contents.warnings.is_empty() && contents.resumed.is_empty());
}

#[test]
fn default_header_and_summary_describe_the_run() {
    // Number of planned cases, and expected `interrupted`: two cases are recorded.
    for (plan_cases, interrupted) in [(None, false), (Some(2), false), (Some(3), true)] {
        let dir = tempfile::tempdir().unwrap();
        let header = Header { plan_cases, ..Header::now("sorting") };
        assert!(header.run_id.starts_with("sorting-2") && !header.argv.is_empty(), "{header:?}");
        assert!(DateTime::parse_from_rfc3339(&header.started).is_ok(), "{}", header.started);
        let mut journal = Journal::create(dir.path(), &header).unwrap();
        for record in [bare("a"), full("b"), full("a")] {
            journal.append(&record).unwrap();
        }
        journal.finish_now().unwrap();

        let contents = journal::read(dir.path()).unwrap();
        assert_eq!(contents.header, header);
        let summary = contents.summary.unwrap();
        assert_eq!((summary.interrupted, &summary.counts), (interrupted, &[(Status::Ok, 2)].into()));
        assert!(DateTime::parse_from_rfc3339(&summary.finished).is_ok(), "{}", summary.finished);
        let run = SinkInput::read(dir.path()).unwrap();
        assert_eq!((run.dir.as_path(), run.output_dir.as_path(), &run.header), (dir.path(), dir.path(), &header));
        let records: Vec<Record> = run.records_with_series().map(|record| record.unwrap().into_owned()).collect();
        assert_eq!(records, [full("a"), full("b")]);
        assert_eq!(run.records, without_series(&records));
    }
}

#[test]
fn truncated_journal_loses_at_most_one_record() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = small_journal(dir.path());
    let path = dir.path().join(JOURNAL_FILE);
    let ends: Vec<usize> = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
    for length in 0..=bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        if length < ends[0] {
            // Impossible after a crash: the file gets its name after its header is written.
            assert!(matches!(journal::read(dir.path()), Err(SinkError::NotAJournal { .. })), "{length}");
            continue;
        }
        let complete = ends.iter().filter(|end| **end <= length).count();
        let all = [full("a"), bare("b")];
        let kept = &all[..(complete - 1).min(2)];
        let cut = length - ends[complete - 1];
        let warnings: Vec<JournalWarning> = (cut > 0)
            .then_some(JournalWarning::IncompleteLastLine { line: complete + 1, bytes: cut as u64 })
            .into_iter()
            .collect();
        let read = journal::read(dir.path()).unwrap();
        assert_eq!((read.records.as_slice(), &read.warnings), (kept, &warnings), "{length}");
        assert_eq!(fs::metadata(&path).unwrap().len(), length as u64, "reading changes nothing");

        let (mut journal, contents) = Journal::resume(dir.path(), "abc", &resumed()).unwrap();
        assert_eq!((contents.records, &contents.warnings), (without_series(kept), &warnings), "{length}");
        journal.append(&bare("c")).unwrap();
        drop(journal);
        let read = journal::read(dir.path()).unwrap();
        assert_eq!(read.records.len(), kept.len() + 1, "{length}");
        assert_eq!((read.resumed.len(), read.summary, read.warnings.len()), (1, None, 0), "{length}");
    }
}

#[test]
fn excerpts_of_lines_and_records_are_equal() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(dir.path(), &header()).unwrap();
    // The last record of a case counts, at the position of the first.
    for record in [bare("a"), full("b"), Record::without_time(bare("c").case, Status::Failed, "a reason"), full("a")] {
        journal.append(&record).unwrap();
    }
    drop(journal);
    let records = journal::read(dir.path()).unwrap().records;
    let briefs: Vec<CaseExcerpt> = records.iter().map(CaseExcerpt::from).collect();
    assert_eq!(journal::read_parts::<CaseExcerpt>(dir.path()).unwrap().records, briefs);
    assert!(briefs[0].speedup.is_some() && briefs[2].reason.as_deref() == Some("a reason"));
    assert!(briefs.iter().any(|brief| !brief.warnings.is_empty()));
}

#[test]
fn later_records_and_summaries_count_after_resuming() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(dir.path(), &header()).unwrap();
    journal.append(&bare("a")).unwrap();
    journal.append(&bare("b")).unwrap();
    journal.finish(&summary(true)).unwrap();
    let (mut journal, contents) = Journal::resume(dir.path(), "abc", &resumed()).unwrap();
    assert_eq!((contents.records.len(), contents.resumed, contents.summary), (2, vec![resumed()], None));
    journal.append(&full("a")).unwrap();
    journal.finish(&summary(false)).unwrap();
    let contents = journal::read(dir.path()).unwrap();
    assert_eq!(contents.records, [full("a"), bare("b")]);
    assert_eq!(contents.summary, Some(summary(false)));
}

#[test]
fn existing_journals_are_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = small_journal(dir.path());
    let error = Journal::create(dir.path(), &header()).unwrap_err();
    assert!(matches!(&error, SinkError::JournalExists { path } if *path == dir.path().join(JOURNAL_FILE)), "{error}");
    assert_eq!(fs::read(dir.path().join(JOURNAL_FILE)).unwrap(), bytes);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn journal_is_locked_against_other_writers() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::create(dir.path(), &header()).unwrap();
    let error = Journal::resume(dir.path(), "abc", &resumed()).unwrap_err();
    assert!(matches!(error, SinkError::Locked { .. }), "{error}");
    assert_eq!(journal::read(dir.path()).unwrap().header, header());
    drop(journal);
    Journal::resume(dir.path(), "abc", &resumed()).unwrap();
}

#[test]
fn short_lived_locks_are_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    small_journal(dir.path());
    let file = fs::File::open(dir.path().join(JOURNAL_FILE)).unwrap();
    file.try_lock().unwrap();
    // The lock belongs to the open file, and the child process is the last to hold it.
    let mut holder = Command::new("sleep").arg("0.3").stdin(Stdio::from(file)).spawn().unwrap();
    Journal::resume(dir.path(), "abc", &resumed()).unwrap();
    holder.wait().unwrap();
}

#[test]
fn resuming_removes_stale_temporary_files() {
    let dir = tempfile::tempdir().unwrap();
    small_journal(dir.path());
    let folders = [".", "traces", "memory_profiler/case"].map(|folder| dir.path().join(folder));
    folders.iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let left = folders.map(|folder| folder.join(format!(".calorimeter-{}-x.tmp", gone.id())));
    left.iter().for_each(|path| fs::write(path, "half").unwrap());
    Journal::resume(dir.path(), "abc", &resumed()).unwrap();
    assert!(left.iter().all(|path| !path.exists()));
}

#[test]
fn writes_to_unreachable_journals_fail() {
    type Disturb = fn(&Path);
    let removed: Disturb = |dir| fs::remove_dir_all(dir).unwrap();
    let moved: Disturb = |dir| fs::rename(dir, dir.with_extension("away")).unwrap();
    let replaced: Disturb = |dir| {
        let path = dir.join(JOURNAL_FILE);
        fs::copy(&path, dir.join("copy")).unwrap();
        fs::rename(dir.join("copy"), path).unwrap();
    };
    for disturb in [removed, moved, replaced] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("run");
        let mut journal = Journal::create(&dir, &header()).unwrap();
        journal.append(&bare("a")).unwrap();
        disturb(&dir);
        let error = journal.append(&bare("b")).unwrap_err();
        assert!(matches!(&error, SinkError::JournalLost { path } if path.ends_with("run/journal.jsonl")), "{error}");
        assert!(journal.finish(&summary(false)).is_err());
    }
}

/// True for the error of an invalid line whose cause mentions `named`.
fn is_bad_line(error: &SinkError, number: usize, named: &str) -> bool {
    matches!(error, SinkError::BadLine { line, cause, .. } if *line == number && cause.to_string().contains(named))
}

#[test]
fn invalid_journals_are_rejected_unchanged() {
    let first = String::from_utf8({
        let dir = tempfile::tempdir().unwrap();
        small_journal(dir.path())
    })
    .unwrap();
    let newer = first.replacen("\"version\":1", "\"version\":2,\"speed\":\"warp\"", 1);
    let incomplete = first.replacen("\"run_id\":\"r1\",", "", 1);
    let broken = first.replacen("{\"record\":{\"id\":\"b\"", "{\"record\":{\"id\":b", 1);
    let unknown = first.replacen("{\"summary\":", "{\"epilogue\":", 1);
    type IsExpected = fn(&SinkError) -> bool;
    let foreign: IsExpected = |error| matches!(error, SinkError::NotAJournal { .. });
    let cases: [(_, _, IsExpected); 8] = [
        ("empty", "", foreign),
        ("foreign", "m,k,n\n1,2,3\n", foreign),
        ("binary", "\u{0}\u{1}\n", foreign),
        ("other json", "{\"schema\":\"x\",\"version\":1}\n", foreign),
        ("newer", &newer, |error| matches!(error, SinkError::NewerVersion { found: 2, known: 1, .. })),
        ("incomplete header", &incomplete, |error| is_bad_line(error, 1, "run_id")),
        ("broken record", &broken, |error| is_bad_line(error, 3, "")),
        ("unknown line", &unknown, |error| is_bad_line(error, 4, "epilogue")),
    ];
    for (name, content, is_expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(JOURNAL_FILE);
        fs::write(&path, content).unwrap();
        let read = journal::read(dir.path()).unwrap_err();
        for error in [read, Journal::resume(dir.path(), "abc", &resumed()).unwrap_err()] {
            assert!(is_expected(&error) && error.to_string().contains(path.to_str().unwrap()), "{name}: {error:?}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), content, "{name}");
    }
}

#[test]
fn other_configurations_are_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = small_journal(dir.path());
    let error = Journal::resume(dir.path(), "xyz", &resumed()).unwrap_err();
    assert!(
        matches!(&error, SinkError::OtherConfig { found, given, .. } if (&**found, &**given) == ("abc", "xyz")),
        "{error}"
    );
    assert_eq!(fs::read(dir.path().join(JOURNAL_FILE)).unwrap(), bytes);
}

#[test]
fn missing_journals_and_unwritable_directories_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let read = journal::read(dir.path()).unwrap_err();
    for error in [read, Journal::resume(dir.path(), "abc", &resumed()).unwrap_err()] {
        assert!(matches!(&error, SinkError::JournalMissing { path, .. } if path.starts_with(dir.path())), "{error}");
    }

    // A file in the path fails for every user; a read-only directory does not stop root.
    fs::write(dir.path().join("file"), "").unwrap();
    let inside = dir.path().join("file/results");
    let error = journal::check_writable(&inside).unwrap_err();
    assert!(matches!(&error, SinkError::NotWritable { dir, .. } if *dir == inside), "{error}");
    let fresh = dir.path().join("new/results");
    journal::check_writable(&fresh).unwrap();
    assert_eq!(fs::read_dir(&fresh).unwrap().count(), 0, "the probe is deleted");
}

#[test]
fn endless_lines_are_not_read() {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("journal.jsonl")).unwrap();
    let error = journal::read(dir.path()).unwrap_err();
    let SinkError::Read { path, cause, .. } = &error else { panic!("{error:?}") };
    assert!(path.ends_with("journal.jsonl"), "{error:?}");
    assert_eq!(cause.kind(), io::ErrorKind::FileTooLarge);
}

/// Lines read by a follower, as one letter each: the first letter of a record's id, R or S.
fn read_lines(follower: &mut JournalFollower) -> String {
    let mut read = String::new();
    let hear = |line| match line {
        JournalLine::Record(record) => read.push_str(&record.case.id[..1]),
        JournalLine::Resumed(_) => read.push('R'),
        JournalLine::Summary(_) => read.push('S'),
        other => panic!("{other:?}"),
    };
    follower.read(hear).unwrap();
    read
}

#[test]
fn follower_reads_complete_lines_across_resume() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(dir.path(), &header()).unwrap();
    let mut follower = JournalFollower::open(dir.path()).unwrap();
    assert_eq!((read_lines(&mut follower).as_str(), follower.header()), ("", &header()));
    journal.append(&full("a")).unwrap();
    assert!(!follower.is_abandoned());
    assert_eq!((read_lines(&mut follower).as_str(), read_lines(&mut follower).as_str()), ("a", ""));
    drop(journal);
    assert!(follower.is_abandoned());
    let half = |line: &[u8]| {
        let mut file = fs::File::options().append(true).open(dir.path().join(JOURNAL_FILE)).unwrap();
        io::Write::write_all(&mut file, line).unwrap();
    };
    let line = [br#"{"record":"#.as_slice(), &serde_json::to_vec(&bare("b")).unwrap(), b"}\n"].concat();
    half(&line[..line.len() / 2]);
    assert_eq!(read_lines(&mut follower), "");
    half(&line[line.len() / 2..]);
    assert_eq!(read_lines(&mut follower), "b");
    half(&line[..line.len() / 2]);
    assert_eq!(read_lines(&mut follower), "");
    // Resuming truncates the incomplete line; other lines follow.
    let (mut journal, _) = Journal::resume(dir.path(), "abc", &resumed()).unwrap();
    journal.append(&bare("c")).unwrap();
    journal.finish(&summary(false)).unwrap();
    assert!(follower.is_abandoned());
    assert_eq!(read_lines(&mut follower), "RcS");
    half(b"no journal line\n");
    let error = follower.read(|_| {}).unwrap_err();
    assert!(is_bad_line(&error, 7, ""), "{error:?}");
}

#[test]
fn follower_reports_removed_journals() {
    let dir = tempfile::tempdir().unwrap();
    let _journal = Journal::create(dir.path(), &header()).unwrap();
    let mut follower = JournalFollower::open(dir.path()).unwrap();
    fs::remove_file(dir.path().join(JOURNAL_FILE)).unwrap();
    assert!(matches!(follower.read(|_| {}), Err(SinkError::JournalLost { .. })));
}
