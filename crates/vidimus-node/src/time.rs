//! Times for people and for the wire.

use std::time::SystemTime;

use jiff::Timestamp;

/// RFC 3339 in UTC, whole seconds.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    Timestamp::try_from(time)
        .ok()
        .and_then(|time| Timestamp::from_second(time.as_second()).ok())
        .map_or_else(|| "out of range".to_owned(), |time| time.to_string())
}
