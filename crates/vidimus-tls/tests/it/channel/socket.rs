//! Against the system: the channel's sockets as the kernel shows them.

use vidimus_testkit::Pki;

use super::server::{TestServer, rustls_config};
use super::{build, builder, call, server_leaf};

/// T19. Two hundred calls one after the other on a new connection each are nowhere near 40 ms a call.
#[tokio::test]
async fn new_connections_are_not_held_up_by_delayed_acknowledgements() {
    let pki = Pki::new("Example");
    let server = TestServer::mutual(rustls_config(&server_leaf(&pki), &pki.root)).await;
    let mut times = Vec::new();
    for _ in 0..20 {
        let channel = build(builder(&pki, &server.target()));
        let start = std::time::Instant::now();
        call(&channel).await.expect("the first call");
        call(&channel).await.expect("the second call");
        times.push(start.elapsed());
    }
    times.sort_unstable();
    // The median, since the machine may be busy; a delayed acknowledgement would be in each of them.
    let median = times[times.len() / 2];
    assert!(
        median.as_millis() < 80,
        "two calls on a new connection took {median:?}: {times:?}"
    );
}
