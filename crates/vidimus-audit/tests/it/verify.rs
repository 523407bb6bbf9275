//! What a check finds.

use std::io::Cursor;

use proptest::prelude::*;
use vidimus_audit::chain::{MAX_LINE_BYTES, append};
use vidimus_audit::verify::{Broken, Position, ReadLogError, Reason, Verified, Verifier};
use vidimus_audit::{AuditSeed, Draft, Head, Outcome};

use crate::chain::{at, key, log};

fn check(lines: &[String]) -> Result<Verified, Broken> {
    let mut verifier = Verifier::new(key().public());
    for line in lines {
        verifier.line(line)?;
    }
    verifier.finish()
}

fn broken(seq: u64, reason: Reason) -> Result<Verified, Broken> {
    Err(Broken {
        position: None,
        seq,
        reason,
    })
}

/// C14.
#[test]
fn a_whole_log_is_intact() {
    let (lines, head) = log(10);
    let verified = check(&lines).unwrap();
    assert_eq!((verified.entries, verified.head), (10, head));
    assert_eq!(verified.start, Head::genesis());
    assert_eq!(check(&[]).unwrap().head, Head::genesis());
}

/// C14.
#[test]
fn each_kind_of_damage_is_found_at_its_entry_and_named() {
    let (lines, _) = log(6);
    let with = |change: &dyn Fn(&mut Vec<String>)| {
        let mut lines = lines.clone();
        change(&mut lines);
        check(&lines)
    };
    assert_eq!(
        with(&|l| drop(l.remove(2))),
        broken(3, Reason::Gap { found: 4 })
    );
    assert_eq!(with(&|l| l.swap(2, 3)), broken(3, Reason::Gap { found: 4 }));
    assert_eq!(
        with(&|l| l.insert(3, lines[1].clone())),
        broken(4, Reason::Gap { found: 2 })
    );
    assert_eq!(
        with(&|l| drop(l.remove(0))),
        broken(1, Reason::Gap { found: 2 })
    );
    assert_eq!(
        with(&|l| l[4] = l[4].replace("two words", "two swords")),
        broken(5, Reason::BadSignature)
    );
    // An entry that is signed, but in the place of another: it is another log's.
    assert_eq!(
        with(&|l| {
            let other = Head {
                seq: 3,
                hash: [9; 32],
            };
            let draft = Draft::new("", "x", Outcome::Ok);
            l[3] = append(&other, draft, at(1), &key()).text();
        }),
        broken(4, Reason::BrokenLink)
    );
    let unparsable = |seq, what: &str| {
        broken(
            seq,
            Reason::Unparsable {
                what: what.to_owned(),
            },
        )
    };
    assert_eq!(
        with(&|l| l[0] = String::new()),
        unparsable(1, "there is no signature")
    );
    assert_eq!(
        with(&|l| l[1].push('=')),
        unparsable(2, "the signature is not unpadded base64")
    );
    assert_eq!(
        with(&|l| l[5] = "x".repeat(MAX_LINE_BYTES + 1)),
        broken(6, Reason::TooLong)
    );
    assert!(check(&lines).is_ok());
}

/// C14.
#[test]
fn another_keys_signature_is_bad() {
    let (lines, _) = log(1);
    let other = AuditSeed::from_bytes(&[2; 32]).key();
    let found = Verifier::new(other.public()).line(&lines[0]).unwrap_err();
    assert_eq!((found.seq, found.reason), (1, Reason::BadSignature));
    assert!(check(&lines).is_ok());
}

/// C14. What no chain can show by itself: with the place of an entry kept elsewhere, a missing
/// end is found, and so is a log written anew.
#[test]
fn a_missing_end_is_found_by_the_expected_head() {
    let (lines, head) = log(5);
    let expecting = |lines: &[String], expected: Head| {
        let mut verifier = Verifier::new(key().public()).expect(expected);
        for line in lines {
            verifier.line(line)?;
        }
        verifier.finish()
    };
    assert!(expecting(&lines, head).is_ok());
    assert_eq!(
        expecting(&lines[..3], head),
        broken(4, Reason::Truncated { found: 3 })
    );
    assert_eq!(
        expecting(&[], head),
        broken(1, Reason::Truncated { found: 0 })
    );

    let (_, middle) = log(3);
    assert!(expecting(&lines, middle).is_ok(), "the log has grown since");
    let other = Head {
        hash: [0; 32],
        ..middle
    };
    assert_eq!(expecting(&lines, other), broken(3, Reason::OtherHead));
    assert!(expecting(&lines, Head::genesis()).is_ok());
}

/// C14.
#[test]
fn after_the_first_bad_entry_nothing_is_accepted() {
    let (lines, _) = log(3);
    let mut verifier = Verifier::new(key().public());
    let first = verifier.line(&lines[1]).unwrap_err();
    assert_eq!(verifier.line(&lines[0]), Err(first.clone()));
    assert_eq!(verifier.finish(), Err(first));
}

/// C14. Files are named with their lines; the chain goes over from one to the next.
#[test]
fn the_first_bad_entry_is_named_by_file_and_line() {
    let (mut lines, head) = log(7);
    let read = |lines: &[String]| {
        let mut verifier = Verifier::new(key().public());
        for (file, part) in [
            ("2030-01-01.log", &lines[..4]),
            ("2030-01-02.log", &lines[4..]),
        ] {
            verifier.read(file, Cursor::new(part.join("\n") + "\n"))?;
        }
        Ok::<_, ReadLogError>(verifier.finish()?)
    };
    assert_eq!(read(&lines).unwrap().head, head);
    lines[5] = lines[5].replace("CN=admin", "CN=mallory");
    let Err(ReadLogError::Broken(found)) = read(&lines) else {
        panic!("the change was not found");
    };
    let position = Position {
        file: "2030-01-02.log".to_owned(),
        line: 2,
    };
    assert_eq!(found.position, Some(position));
    assert_eq!((found.seq, &found.reason), (6, &Reason::BadSignature));
    assert_eq!(
        found.to_string(),
        "2030-01-02.log:2: entry 6: the signature is not this key's over the entry"
    );
}

/// C14. A process that was stopped while writing leaves half a line, which is said as such.
#[test]
fn a_torn_last_line_is_told_from_a_changed_one() {
    let (lines, _) = log(3);
    let whole = lines.join("\n");
    let reason = |text: &str| match Verifier::new(key().public()).read("f", Cursor::new(text)) {
        Ok(()) => None,
        Err(ReadLogError::Broken(broken)) => Some(broken.reason),
        Err(ReadLogError::Read { .. }) => panic!("a text can be read"),
    };
    assert_eq!(reason(&format!("{whole}\n")), None);
    assert_eq!(reason(&whole), None, "only the line feed is missing");
    for cut in 1..lines[2].len() {
        let torn = &whole.as_bytes()[..whole.len() - cut];
        assert_eq!(
            reason(std::str::from_utf8(torn).unwrap()),
            Some(Reason::Torn),
            "{cut}"
        );
    }
    let changed = whole.replace("\"seq\":3", "\"seq\":4") + "\n";
    assert_eq!(reason(&changed), Some(Reason::BadSignature));
}

/// C14. One daily file can be checked alone; where it starts is its own word.
#[test]
fn a_part_of_a_log_can_be_checked_alone() {
    let (lines, head) = log(6);
    let mut verifier = Verifier::excerpt(key().public()).expect(head);
    for line in &lines[2..] {
        verifier.line(line).unwrap();
    }
    let verified = verifier.finish().unwrap();
    assert_eq!((verified.start, verified.entries), (log(2).1, 4));
    let mut verifier = Verifier::starting_at(key().public(), log(2).1);
    verifier.line(&lines[2]).unwrap();
    let mut verifier = Verifier::starting_at(key().public(), log(3).1);
    assert_eq!(
        verifier.line(&lines[2]).unwrap_err().reason,
        Reason::Gap { found: 3 }
    );
}

/// C14. A file that is no log is not read into memory.
#[test]
fn an_endless_line_is_refused() {
    let endless = std::io::BufReader::new(std::io::repeat(b'x'));
    let found = Verifier::new(key().public()).read("endless", endless);
    assert!(
        matches!(&found, Err(ReadLogError::Broken(broken)) if broken.reason == Reason::TooLong),
        "{found:?}"
    );
}

proptest! {
    /// C14. No change of any byte of any line goes unnoticed.
    #[test]
    fn any_changed_byte_is_found(line in 0..4_usize, place in any::<prop::sample::Index>(), flip in 1..=255_u8) {
        let (lines, _) = log(4);
        let mut bytes = lines[line].clone().into_bytes();
        let place = place.index(bytes.len());
        bytes[place] ^= flip;
        let mut verifier = Verifier::new(key().public());
        for whole in &lines[..line] {
            verifier.line(whole).unwrap();
        }
        let found = verifier.raw_line(&bytes).unwrap_err();
        prop_assert_eq!(found.seq, line as u64 + 1);
    }

    /// C14. Whatever a line is made of, checking it ends with an answer.
    #[test]
    fn any_bytes_are_answered(bytes in any::<Vec<u8>>()) {
        prop_assert!(Verifier::new(key().public()).raw_line(&bytes).is_err());
        let read = Verifier::new(key().public()).read("f", Cursor::new(&bytes));
        prop_assert_eq!(read.is_ok(), bytes.is_empty());
    }
}
