use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use tonic::Code;
use vidimus_provider::manager::ManagerTls;
use vidimus_testkit::Pki;
use vidimus_tls::identity::Fingerprint;

use crate::support::{Running, World, config, validate};

/// Everything that is logged on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn warnings(&self, about: &str) -> usize {
        let bytes = self.0.lock().unwrap();
        let text = String::from_utf8_lossy(&bytes);
        text.lines()
            .filter(|line| line.contains("WARN") && line.contains(about))
            .count()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// V4.
#[tokio::test]
async fn skipping_verification_takes_any_server_warns_each_time_and_still_shows_the_certificate() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing::Level::WARN)
        .with_writer(move || writer.clone())
        .finish();
    // the runtime of this test has one thread
    let _guard = tracing::subscriber::set_default(subscriber);

    let world = World::new();
    let stranger = Pki::new("Stranger");
    let leaf = stranger
        .leaf("somebody")
        .dns("somebody.example")
        .server()
        .issue();
    let dir = world.folder("stranger", &leaf, &[&world.pki.root]);
    let mut running = Running::start(config(&dir)).await;

    let strict = running.manager(world.manager_dir()).await;
    let error = validate(&strict).await.unwrap_err();
    assert_eq!(error.status().code(), Code::Unavailable);

    let tls = ManagerTls::MutualInsecureSkipVerify(world.manager_dir());
    let loose = running.manager_config(tls);
    let manager = running.start_manager(loose).await;
    assert!(validate(&manager).await.unwrap().ok);
    assert_eq!(manager.status().posture, "insecure-skip-verify");
    let [connection] = running.status.page().connections.try_into().unwrap();
    let peer = connection.peer.certificate().unwrap();
    assert_eq!(
        peer.dns_names(),
        ["manager.example"],
        "the client certificate is presented"
    );
    assert_eq!(
        connection.anchor,
        Some(Fingerprint::of(world.pki.root.der()))
    );

    assert_eq!(log.warnings("insecureSkipVerify=true"), 1, "{}", log.text());
    let connects = "connected without verifying the server";
    assert_eq!(log.warnings(connects), 1, "{}", log.text());
    running
        .status
        .server()
        .close_where(|_| true, Duration::from_secs(5));
    vidimus_testkit::wait_until_async(crate::support::DEADLINE, || async {
        let connections = running.status.page().connections.len();
        if connections == 0 {
            Ok(())
        } else {
            Err(format!("{connections} connections"))
        }
    })
    .await;
    assert!(validate(&manager).await.unwrap().ok);
    assert_eq!(
        log.warnings(connects),
        2,
        "each connect warns: {}",
        log.text()
    );
    running.stop().await;
}
