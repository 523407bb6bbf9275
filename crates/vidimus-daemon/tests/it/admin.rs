use std::{
    io::{Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpStream, UnixListener, UnixStream},
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use vidimus_daemon::{
    admin::{self, AdminRoutes, Listener},
    health::Checks,
    telemetry,
};

const DEADLINE: Duration = Duration::from_secs(20);

struct Running {
    shutdown: CancellationToken,
    serving: JoinHandle<()>,
}

impl Running {
    #[expect(clippy::disallowed_methods, reason = "joined by `stop`")]
    fn start(listener: Listener, checks: Checks) -> Self {
        let shutdown = CancellationToken::new();
        let routes = AdminRoutes::new(checks)
            .page("/status", || serde_json::json!({"calls": 7}))
            .page_of("/double/{number}", |text| match text.parse::<u32>() {
                Ok(number) => Ok(number.saturating_mul(2)),
                Err(error) => Err(format!("{text:?}: {error}")),
            });
        let serving = tokio::spawn(admin::serve(listener, routes, shutdown.clone()));
        Self { shutdown, serving }
    }

    async fn stop(self) {
        self.shutdown.cancel();
        timeout(DEADLINE, self.serving).await.unwrap().unwrap();
    }
}

async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(DEADLINE, stream.read_to_string(&mut answer))
        .await
        .unwrap()
        .unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

#[tokio::test]
async fn answers_on_a_free_tcp_port() {
    let listener = Listener::tcp("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.tcp_address().unwrap();
    let checks = Checks::new();
    let running = Running::start(listener, checks.clone());
    let get = async |path| ask(TcpStream::connect(address).await.unwrap(), path).await;

    assert_eq!(get("/healthz").await, (200, "ok".into()));
    assert_eq!(get("/readyz").await, (200, "ready".into()));
    assert_eq!(get("/status").await, (200, r#"{"calls":7}"#.into()));
    assert_eq!(get("/nothing").await.0, 404);
    assert_eq!(get("/double/21").await, (200, "42".into()));
    let (status, text) = get("/double/x").await;
    assert!(status == 400 && text.starts_with("\"x\": "), "{text}");

    checks.add("material", || async {
        Err("tls.crt has expired".to_owned())
    });
    assert_eq!(get("/healthz").await, (200, "ok".into()));
    assert_eq!(get("/readyz").await, (503, "not ready".into()));
    let (status, body) = get("/health").await;
    assert_eq!(status, 503);
    assert!(body.contains("tls.crt has expired"), "{body}");
    running.stop().await;
}

/// Removes its file when it is dropped.
struct Name(PathBuf);

impl Drop for Name {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

#[tokio::test]
async fn answers_on_a_unix_socket_whose_name_goes_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("admin.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let listener = Listener::unix(listener, Name(path.clone()));
    let running = Running::start(listener, Checks::new());
    let answer = ask(UnixStream::connect(&path).await.unwrap(), "/healthz").await;
    assert_eq!(answer, (200, "ok".into()));
    running.stop().await;
    assert!(!path.exists());
}

/// K15. Whatever the socket's mode is: the kernel's word on who connected counts. Needs root, to be somebody else.
#[tokio::test]
async fn another_user_is_not_answered_on_the_unix_socket() {
    const STRANGER: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        let why = "only root can connect as another user";
        assert!(std::env::var_os("VIDIMUS_TEST_ALL").is_none(), "{why}");
        eprintln!("not tested: {why}");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("admin.sock");
    let listener = UnixListener::bind(&path).unwrap();
    for (path, mode) in [(dir.path(), 0o755), (&path, 0o666)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let running = Running::start(Listener::unix(listener, ()), Checks::new());
    for (id, answered) in [(0, true), (STRANGER, false)] {
        let path = path.clone();
        let answer = tokio::task::spawn_blocking(move || answer_to(id, path));
        let answer = answer.await.unwrap();
        assert_eq!(
            answer.starts_with("HTTP/1.1 200"),
            answered,
            "{id}: {answer}"
        );
        assert_eq!(answer.is_empty(), !answered, "{id}: {answer}");
    }
    running.stop().await;
}

/// What a user is answered, on a thread of its own that ends as that user.
fn answer_to(id: u32, path: PathBuf) -> String {
    use rustix::process::{Gid, Uid};
    let asking = std::thread::spawn(move || {
        let (user, group) = (Uid::from_raw(id), Gid::from_raw(id));
        rustix::thread::set_thread_groups(&[]).unwrap();
        rustix::thread::set_thread_res_gid(group, group, group).unwrap();
        rustix::thread::set_thread_res_uid(user, user, user).unwrap();
        let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        // Whoever is refused may meet a closed socket already here.
        let _refused =
            stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let mut answer = String::new();
        let _refused = stream.read_to_string(&mut answer);
        answer
    });
    asking.join().unwrap()
}

#[tokio::test]
async fn the_shutdown_ends_idle_connections() {
    let listener = Listener::tcp("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.tcp_address().unwrap();
    let running = Running::start(listener, Checks::new());
    let mut idle = TcpStream::connect(address).await.unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    let mut first = [0; 64];
    assert!(
        timeout(DEADLINE, idle.read(&mut first))
            .await
            .unwrap()
            .unwrap()
            > 0
    );
    running.stop().await;
    let mut rest = Vec::new();
    timeout(DEADLINE, idle.read_to_end(&mut rest))
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "ends with the token")]
async fn metrics_are_in_the_text_format_of_prometheus() {
    let handle = telemetry::init_metrics().unwrap();
    metrics::counter!("vidimus_daemon_tests_total").increment(3);
    let listener = Listener::tcp("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.tcp_address().unwrap();
    let shutdown = CancellationToken::new();
    let routes = AdminRoutes::new(Checks::new()).metrics(handle, || {
        metrics::gauge!("vidimus_daemon_tests_now").set(7);
    });
    let serving = tokio::spawn(admin::serve(listener, routes, shutdown.clone()));
    let (status, body) = ask(TcpStream::connect(address).await.unwrap(), "/metrics").await;
    assert_eq!(status, 200);
    assert!(body.contains("vidimus_daemon_tests_total 3"), "{body}");
    assert!(body.contains("vidimus_daemon_tests_now 7"), "{body}");
    shutdown.cancel();
    timeout(DEADLINE, serving).await.unwrap().unwrap();
}
