//! How a line is written.

use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use vidimus_audit::chain::{MAX_LINE_BYTES, append};
use vidimus_audit::verify::Verifier;
use vidimus_audit::{AuditKey, AuditPublicKey, AuditSeed, Draft, Entry, Head, Outcome};

pub(crate) fn key() -> AuditKey {
    AuditSeed::from_bytes(&[1; 32]).key()
}

pub(crate) fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 250)
}

/// A log of `count` entries; the lines and the place of the last.
pub(crate) fn log(count: u64) -> (Vec<String>, Head) {
    let mut head = Head::genesis();
    let mut lines = Vec::new();
    for turn in 0..count {
        let draft = Draft::new("CN=admin", "IssueLeaf", Outcome::Ok)
            .with("serial_hex", format!("{turn:x}"))
            .with("note", "two words");
        let line = append(&head, draft, at(1_900_000_000 + turn), &key());
        head = line.head();
        lines.push(line.text());
    }
    (lines, head)
}

/// C14. The exact bytes: a change here is a change of the format.
#[test]
fn a_line_has_the_documented_form() {
    let draft = Draft::new(
        "CN=admin",
        "/vidimus.node.v1.NodeService/IssueLeaf",
        Outcome::Ok,
    )
    .with_request(b"request")
    .with("serial_hex", "2a");
    let line = append(&Head::genesis(), draft, at(1_900_000_000), &key());
    assert_eq!(
        line.json,
        "{\"seq\":1,\"ts\":\"2030-03-17T17:46:40.25Z\",\"actor_subject\":\"CN=admin\",\
         \"rpc_method\":\"/vidimus.node.v1.NodeService/IssueLeaf\",\
         \"request_digest_sha256\":\"1f58b9145b24d108d7ac38887338b3ea3229833b9c1e418250343f907bfd1047\",\
         \"outcome\":\"OK\",\
         \"prev_entry_sha256\":\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\",\
         \"details\":{\"serial_hex\":\"2a\"}}"
    );
    assert_eq!(line.signature.len(), 86);
    assert_eq!(line.text(), format!("{} {}", line.json, line.signature));
    let second = append(
        &line.head(),
        Draft::new("", "x", Outcome::Denied),
        at(1),
        &key(),
    );
    let entry: Entry = serde_json::from_str(&second.json).unwrap();
    assert_eq!((entry.seq, entry.prev_entry_sha256), (2, line.hash));
    assert_eq!(
        (entry.outcome, entry.request_digest_sha256),
        (Outcome::Denied, None)
    );
    assert!(second.json.contains("\"request_digest_sha256\":\"\""));
    assert_eq!(entry.utc_date(), "1970-01-01");
}

/// C14. Times that no calendar has are recorded as the nearest it has.
#[test]
fn any_time_can_be_recorded() {
    let far = SystemTime::UNIX_EPOCH + Duration::from_secs(u32::MAX.into()) * 100;
    for now in [
        SystemTime::UNIX_EPOCH,
        far,
        SystemTime::UNIX_EPOCH - Duration::from_millis(1),
    ] {
        let line = append(
            &Head::genesis(),
            Draft::new("", "x", Outcome::Ok),
            now,
            &key(),
        );
        let entry = Verifier::new(key().public()).line(&line.text()).unwrap();
        assert_eq!(entry.ts, line.ts);
    }
}

/// C14. Nobody escapes the log by being verbose: long texts are cut and say so.
#[test]
fn a_line_is_never_longer_than_what_is_accepted() {
    let long = "ä\"\u{1}".repeat(50_000);
    let verbose = [
        Draft::new(long.clone(), "x", Outcome::Denied),
        Draft::new("a", long.clone(), Outcome::Denied),
        Draft::new("a", "x", Outcome::Denied).with("reason", long.clone()),
        (0..2000).fold(Draft::new("a", "x", Outcome::Denied), |draft, n| {
            draft.with(format!("key {n}"), "some value that is not short")
        }),
    ];
    for draft in verbose {
        let line = append(&Head::genesis(), draft, at(0), &key());
        assert!(line.text().len() <= MAX_LINE_BYTES);
        assert!(line.json.contains("cut"), "{}", line.json);
        Verifier::new(key().public()).line(&line.text()).unwrap();
    }
    let draft = Draft::new("a", "x", Outcome::Denied).with("reason", long.clone());
    let line = append(&Head::genesis(), draft, at(0), &key());
    assert!(line.json.contains(&format!("[cut, {} bytes]", long.len())));
    assert!(
        line.json.len() > MAX_LINE_BYTES / 4,
        "no more is cut than necessary"
    );
    let fits = Draft::new("a", "x", Outcome::Ok).with("names", "n".repeat(60_000));
    assert!(
        !append(&Head::genesis(), fits, at(0), &key())
            .json
            .contains("cut")
    );
}

/// C14.
#[test]
fn seeds_keys_and_heads_have_a_text_form() {
    let seed = AuditSeed::from_bytes(&[0xab; 32]);
    let hex = seed.to_hex();
    assert_eq!(*hex, "ab".repeat(32));
    let again = AuditSeed::from_hex(&format!(" {}\n", hex.to_uppercase())).unwrap();
    assert_eq!(again.key().public(), seed.key().public());
    assert_ne!(key().public(), seed.key().public());
    assert!(AuditSeed::from_hex("ab").is_err());
    assert!(!format!("{seed:?} {:?}", seed.key()).contains(&"ab".repeat(4)));

    let public = key().public();
    assert_eq!(public.to_string().parse::<AuditPublicKey>(), Ok(public));
    let (_, head) = log(3);
    assert_eq!(head.to_string().parse::<Head>(), Ok(head));
    for bad in ["", "3", "x:00", "3:00"] {
        assert!(bad.parse::<Head>().is_err(), "{bad:?}");
    }
}

proptest! {
    /// C14. Whatever is in a draft, the entry that is read back says the same.
    #[test]
    fn what_is_written_is_read_back(
        actor in ".*",
        method in ".*",
        request in proptest::option::of(any::<Vec<u8>>()),
        details in proptest::collection::btree_map(".*", ".*", 0..5),
    ) {
        let mut draft = Draft::new(actor, method, Outcome::Error);
        if let Some(request) = &request {
            draft = draft.with_request(request);
        }
        draft.details = details;
        let line = append(&Head::genesis(), draft.clone(), at(5), &key());
        let entry = Verifier::new(key().public()).line(&line.text()).unwrap();
        prop_assert_eq!(entry.actor_subject, draft.actor_subject);
        prop_assert_eq!(entry.rpc_method, draft.rpc_method);
        prop_assert_eq!(entry.request_digest_sha256, draft.request_digest_sha256);
        prop_assert_eq!(entry.details, draft.details);
    }
}
