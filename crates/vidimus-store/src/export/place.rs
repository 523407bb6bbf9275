//! Where the files end, and how they grow.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use vidimus_audit::Entry;
use vidimus_audit::chain::MAX_LINE_BYTES;
use vidimus_fs::dir;
use vidimus_fs::durable::{self, Mode};
use vidimus_fs::read::{self, ReadError};

use super::ExportError;
use crate::reader::{AuditLine, Reader};

const CURSOR: &str = ".cursor";
const SUFFIX: &str = ".log";

/// The place of the next entry.
#[derive(Debug)]
pub(super) struct Place {
    dir: PathBuf,
    /// The newest day that has a file (or had one: then `file` is absent and it is made again).
    date: Option<String>,
    file: Option<File>,
    next_seq: u64,
}

impl Place {
    /// Looks at the folder: which file is the newest, and which entry is the last in it. A torn
    /// last line is cut off.
    pub(super) fn find(dir: &Path, reader: &Reader) -> Result<Self, ExportError> {
        dir::create_private(dir)?;
        let cursor = read_cursor(dir)?;
        let mut newest = days(dir)?.pop();
        loop {
            let (date, first_seq) = match (&cursor, newest.take()) {
                (None, None) => {
                    return Ok(Self {
                        dir: dir.to_owned(),
                        date: None,
                        file: None,
                        next_seq: 1,
                    });
                }
                (Some((date, first_seq)), None) => (date.clone(), Some(*first_seq)),
                (Some((date, first_seq)), Some(newest)) if *date >= newest => {
                    (date.clone(), Some(*first_seq))
                }
                (_, Some(newest)) => (newest, None),
            };
            let found = open_and_repair(&file_path(dir, &date), reader)?;
            let (file, next_seq) = match (found, first_seq) {
                (Some((file, Some(last_seq))), _) => (Some(file), last_seq.saturating_add(1)),
                (Some((file, None)), Some(first_seq)) => (Some(file), first_seq),
                (None, Some(first_seq)) => (None, first_seq),
                (_, None) => {
                    // The cursor is lost and the newest file is empty: the one before it tells.
                    newest = days(dir)?.into_iter().rev().find(|day| *day < date);
                    continue;
                }
            };
            return Ok(Self {
                dir: dir.to_owned(),
                date: Some(date),
                file,
                next_seq,
            });
        }
    }

    pub(super) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Whether the open file is still the one that its name leads to.
    pub(super) fn is_where_it_was(&self) -> bool {
        let (Some(file), Some(date)) = (&self.file, &self.date) else {
            return false;
        };
        let here = file
            .metadata()
            .map(|metadata| (metadata.dev(), metadata.ino()));
        let there = fs::metadata(file_path(&self.dir, date))
            .map(|metadata| (metadata.dev(), metadata.ino()));
        matches!((here, there), (Ok(here), Ok(there)) if here == there)
    }

    /// Writes `lines`, the first of which is the next entry, and syncs them.
    pub(super) fn write(&mut self, lines: &[AuditLine]) -> Result<(), ExportError> {
        let mut buffer = String::new();
        for line in lines {
            let day = line.ts.strftime("%Y-%m-%d").to_string();
            let day = match &self.date {
                Some(newest) if *newest > day => newest.clone(),
                _ => day,
            };
            if self.file.is_none() || self.date.as_ref() != Some(&day) {
                self.append(&buffer)?;
                buffer.clear();
                self.start(day, line.seq)?;
            }
            buffer.push_str(&line.text());
            buffer.push('\n');
            self.next_seq = line.seq.saturating_add(1);
        }
        self.append(&buffer)
    }

    /// Begins the file of a day. The cursor is written first: if the file is not there later, it is
    /// made again from this entry on.
    fn start(&mut self, day: String, first_seq: u64) -> Result<(), ExportError> {
        let cursor = format!("{day} {first_seq}\n");
        durable::write(self.dir.join(CURSOR), cursor.as_bytes(), Mode::Private)?;
        let path = file_path(&self.dir, &day);
        let failed = |source| ExportError::Write {
            path: path.clone(),
            source,
        };
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(Mode::Private.bits())
            .open(&path)
            .map_err(failed)?;
        // An earlier process may have been stopped right after making the file; one with lines in
        // it would have been found, unless somebody put it there a moment ago.
        if file.metadata().map_err(failed)?.len() > 0 {
            return Err(ExportError::Foreign { path, seq: 0 });
        }
        durable::sync_folder(&self.dir)?;
        self.file = Some(file);
        self.date = Some(day);
        Ok(())
    }

    fn append(&mut self, text: &str) -> Result<(), ExportError> {
        let (Some(file), Some(date), false) = (&mut self.file, &self.date, text.is_empty()) else {
            return Ok(());
        };
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_data())
            .map_err(|source| ExportError::Write {
                path: file_path(&self.dir, date),
                source,
            })
    }
}

/// The days that have a file, in order.
pub(crate) fn days(dir: &Path) -> Result<Vec<String>, ExportError> {
    let failed = |source| ExportError::Read {
        path: dir.to_owned(),
        source,
    };
    let mut days = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let day = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
        if let Some(day) = day.filter(|day| is_day(day)) {
            days.push(day.to_owned());
        }
    }
    days.sort_unstable();
    Ok(days)
}

/// The file of a day.
pub(crate) fn file_path(dir: &Path, day: &str) -> PathBuf {
    dir.join(format!("{day}{SUFFIX}"))
}

fn is_day(text: &str) -> bool {
    text.parse::<jiff::civil::Date>()
        .is_ok_and(|date| date.to_string() == text)
}

fn read_cursor(dir: &Path) -> Result<Option<(String, u64)>, ExportError> {
    let path = dir.join(CURSOR);
    let bytes = match read::bounded(&path, 64) {
        Ok(bytes) => bytes,
        Err(ReadError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    std::str::from_utf8(&bytes)
        .ok()
        .and_then(|text| {
            let (day, first_seq) = text.trim_end().split_once(' ')?;
            is_day(day).then_some((day.to_owned(), first_seq.parse().ok()?))
        })
        .ok_or(ExportError::Cursor { path })
        .map(Some)
}

/// Opens a file to append to it; cuts off a torn last line; returns the number of the last whole
/// one, which has to be in the store.
fn open_and_repair(
    path: &Path,
    reader: &Reader,
) -> Result<Option<(File, Option<u64>)>, ExportError> {
    let failed = |source| ExportError::Read {
        path: path.to_owned(),
        source,
    };
    let mut file = match OpenOptions::new().read(true).append(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(failed(source)),
    };
    // Two lines of the greatest length, with their line feeds, hold the torn one and the whole one
    // before it.
    let window = 2 * (MAX_LINE_BYTES as u64 + 1);
    let length = file.metadata().map_err(failed)?.len();
    let start = length.saturating_sub(window);
    file.seek(SeekFrom::Start(start)).map_err(failed)?;
    let mut tail = Vec::new();
    (&file)
        .take(window)
        .read_to_end(&mut tail)
        .map_err(failed)?;
    let whole = tail
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    if whole == 0 && start > 0 {
        return Err(ExportError::Foreign {
            path: path.to_owned(),
            seq: 0,
        });
    }
    if whole < tail.len() {
        tracing::warn!(
            path = %path.display(),
            bytes = tail.len() - whole,
            "cutting off the incomplete last line of an audit file; it is written again"
        );
        file.set_len(start + whole as u64)
            .and_then(|()| file.sync_all())
            .map_err(|source| ExportError::Write {
                path: path.to_owned(),
                source,
            })?;
        tail.truncate(whole);
    }
    let Some((b'\n', lines)) = tail.split_last() else {
        return Ok(Some((file, None)));
    };
    let last = lines.rsplit(|byte| *byte == b'\n').next().unwrap_or(lines);
    let seq = seq_in_store(last, reader)?.map_err(|seq| ExportError::Foreign {
        path: path.to_owned(),
        seq,
    })?;
    Ok(Some((file, Some(seq))))
}

/// The number of the entry that `line` is, if the store has the same line; what it claims if not.
fn seq_in_store(line: &[u8], reader: &Reader) -> Result<Result<u64, u64>, ExportError> {
    let claimed = std::str::from_utf8(line)
        .ok()
        .and_then(|line| line.rsplit_once(' '))
        .and_then(|(json, _)| serde_json::from_str::<Entry>(json).ok())
        .map(|entry| entry.seq);
    let Some(seq) = claimed else {
        return Ok(Err(0));
    };
    let stored = reader.audit_lines_blocking(seq, 1)?;
    let same = stored
        .first()
        .is_some_and(|stored| stored.seq == seq && stored.text().as_bytes() == line);
    Ok(if same { Ok(seq) } else { Err(seq) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C14. Only what we name so is taken for a daily file.
    #[test]
    fn days_are_calendar_days_in_their_one_form() {
        for day in ["2030-01-01", "2028-02-29", "1970-12-31"] {
            assert!(is_day(day), "{day}");
        }
        for other in [
            "",
            "2030-1-1",
            "2030-02-30",
            "20300101",
            "2030-01-01T00",
            "notes",
            "+2030-01-01",
        ] {
            assert!(!is_day(other), "{other}");
        }
    }
}
