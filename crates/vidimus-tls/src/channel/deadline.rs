//! Deadlines: a call's own, as its `grpc-timeout` header has it (gRPC over HTTP/2, "Timeout").

use std::time::Duration;

use http::HeaderMap;
use tokio::time::Instant;

/// Stands for never in a sum of times: thirty years.
const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// The instant `wait` from now; a wait beyond what instants can express never ends.
pub(super) fn after(wait: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(wait.min(NEVER)).unwrap_or(now)
}

/// The call's timeout. A header that doesn't follow the grammar counts as none, as with other clients.
pub(super) fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(value.saturating_mul(3600))),
        "M" => Some(Duration::from_secs(value.saturating_mul(60))),
        "S" => Some(Duration::from_secs(value)),
        "m" => Some(Duration::from_millis(value)),
        "u" => Some(Duration::from_micros(value)),
        "n" => Some(Duration::from_nanos(value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-timeout", text.parse().expect("a header value"));
        timeout(&headers)
    }

    #[test]
    fn every_unit_of_the_grammar_is_read_and_nothing_else() {
        assert_eq!(of("2H"), Some(Duration::from_secs(7200)));
        assert_eq!(of("3M"), Some(Duration::from_secs(180)));
        assert_eq!(of("99999999S"), Some(Duration::from_secs(99_999_999)));
        assert_eq!(of("250m"), Some(Duration::from_millis(250)));
        assert_eq!(of("5u"), Some(Duration::from_micros(5)));
        assert_eq!(of("7n"), Some(Duration::from_nanos(7)));
        for text in ["", "S", "5", "5s", "-1S", "+1S", "1.5S", "123456789S"] {
            assert_eq!(of(text), None, "{text:?}");
        }
        assert_eq!(timeout(&HeaderMap::new()), None);
    }

    /// tonic's own writer is read back.
    #[test]
    fn what_set_timeout_writes_is_read() {
        let mut request = tonic::Request::new(());
        request.set_timeout(Duration::from_millis(1500));
        let headers = request.metadata().clone().into_headers();
        assert_eq!(timeout(&headers), Some(Duration::from_millis(1500)));
    }
}
