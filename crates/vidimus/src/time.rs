//! Times as a person and a program read them: RFC 3339, UTC, whole seconds.

use std::time::SystemTime;

use jiff::Timestamp;
use prost_types::Timestamp as ProtoTimestamp;

/// A time of the node's API; empty if the node left it out.
pub(crate) fn of_proto(time: Option<ProtoTimestamp>) -> String {
    let time = time.and_then(|time| Timestamp::from_second(time.seconds).ok());
    time.map_or_else(String::new, |time| time.to_string())
}

/// A time of this machine.
pub(crate) fn of_system(time: SystemTime) -> String {
    match Timestamp::try_from(time).and_then(|time| time.round(jiff::Unit::Second)) {
        Ok(time) => time.to_string(),
        Err(_) => "outside the calendar".to_owned(),
    }
}
