//! Times in certificates (RFC 5280 §4.1.2.5): UTC, whole seconds.

use std::time::SystemTime;

use der::{
    DateTime, Decode,
    asn1::{GeneralizedTime, UtcTime},
};

use crate::asn1::{DerError, GENERALIZED_TIME, Reader, UTC_TIME};

/// Reads a `Time`.
pub(crate) fn read(reader: &mut Reader<'_>) -> Result<SystemTime, DerError> {
    let element = reader.any("a time")?;
    let time = match element.tag {
        UTC_TIME => UtcTime::from_der(element.raw).map(|time| time.to_date_time()),
        GENERALIZED_TIME => GeneralizedTime::from_der(element.raw).map(|time| time.to_date_time()),
        _ => return Err(element.bad("time")),
    };
    time.map(|time| time.to_system_time())
        .map_err(|_| element.bad("time in UTC, to the second, since 1970"))
}

/// Whether a `Time` comes next.
pub(crate) fn is_next(reader: &Reader<'_>) -> bool {
    matches!(reader.peek(), Some(UTC_TIME | GENERALIZED_TIME))
}

/// For people: `2026-11-30T09:00:00Z`.
pub(crate) fn text(time: SystemTime) -> String {
    DateTime::from_system_time(time).map_or_else(
        |_| "a time outside 1970 to 9999".to_owned(),
        |time| time.to_string(),
    )
}

/// Writes a `Time`: `UTCTime` before 2050, `GeneralizedTime` from then on.
#[cfg(feature = "issue")]
pub(crate) fn write(time: DateTime) -> Vec<u8> {
    let rest = format!(
        "{:02}{:02}{:02}{:02}{:02}Z",
        time.month(),
        time.day(),
        time.hour(),
        time.minutes(),
        time.seconds()
    );
    let (tag, year) = if time.year() < 2050 {
        (UTC_TIME, format!("{:02}", time.year() % 100))
    } else {
        (GENERALIZED_TIME, format!("{:04}", time.year()))
    };
    crate::asn1::write::element(tag, &[year.as_bytes(), rest.as_bytes()])
}

#[cfg(all(test, feature = "issue"))]
mod tests {
    use super::*;

    /// RFC 5280 §4.1.2.5: `UTCTime` through 2049, `GeneralizedTime` from 2050.
    #[test]
    fn the_form_changes_with_the_year_2050() {
        for (text, tag, content) in [
            ("2026-11-30T09:08:07Z", UTC_TIME, &b"261130090807Z"[..]),
            ("2049-12-31T23:59:59Z", UTC_TIME, b"491231235959Z"),
            ("2050-01-01T00:00:00Z", GENERALIZED_TIME, b"20500101000000Z"),
            ("9999-12-31T23:59:59Z", GENERALIZED_TIME, b"99991231235959Z"),
        ] {
            let time: DateTime = text.parse().unwrap();
            let der = write(time);
            assert_eq!((der[0], &der[2..]), (tag, content));
            assert_eq!(read(&mut Reader::new(&der)), Ok(time.to_system_time()));
            assert_eq!(super::text(time.to_system_time()), text);
        }
    }

    #[test]
    fn times_without_seconds_or_zone_are_refused() {
        for bad in [
            &b"\x17\x0b2611300908Z"[..],
            b"\x17\x11261130090807+0100",
            b"\x18\x0f2026113009080.5Z",
        ] {
            assert!(read(&mut Reader::new(bad)).is_err(), "{bad:?}");
        }
    }
}
