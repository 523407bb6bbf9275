//! UNIX sockets: the kernel's word about the peer instead of a certificate, and who may have the name.

use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use hyper_util::rt::TokioIo;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::Endpoint;
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_testkit::EchoService;
use vidimus_tls::identity::PeerIdentity;
use vidimus_tls::server::{
    BindUnixError, Listener, LocalPeers, Security, ServeError, Server, UnixOptions, UnixSocket,
};

use crate::child;
use crate::support::{LogCapture, call, soon};

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn own_gid() -> u32 {
    rustix::process::getegid().as_raw()
}

async fn try_call(peers: LocalPeers) -> (Result<String, tonic::Status>, String) {
    let log = LogCapture::start();
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("socket");
    let listener = Listener::bind_unix(&path, UnixOptions::default()).expect("a socket");
    let server = Server::builder(Security::Local(peers)).build();
    let service = EchoService::new(|extensions| {
        extensions
            .get::<PeerIdentity>()
            .map_or_else(|| "none".to_owned(), PeerIdentity::label)
    });
    let routes = Routes::new(service.into_server());
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let token = stop.clone();
    tasks.spawn(async move { server.serve(listener, routes, token).await });
    let connector = tower::service_fn(move |_| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    let channel = Endpoint::from_static("http://local").connect_with_connector_lazy(connector);
    let answer = call(&mut EchoClient::new(channel))
        .await
        .map(|answer| answer.peer);
    stop.cancel();
    soon("the end", tasks.join_next())
        .await
        .expect("a task")
        .expect("no panic")
        .expect("served");
    (answer, log.text())
}

/// K15. The owner's uid is let in, known to the service and logged.
#[tokio::test]
async fn the_owner_is_served_and_logged() {
    let (answer, log) = try_call(LocalPeers::owner()).await;
    assert_eq!(answer.expect("an answer"), format!("uid={}", own_uid()));
    let pid = format!("pid={}", std::process::id());
    let logged = log.lines().any(|line| {
        line.contains("local connection accepted") && line.contains("uid=") && line.contains(&pid)
    });
    assert!(logged, "{log}");
}

/// K15. Another uid is refused before a byte of its request is read.
#[tokio::test]
async fn another_user_is_refused_and_logged() {
    let (answer, log) = try_call(LocalPeers::users([own_uid() + 1])).await;
    answer.expect_err("refused");
    assert!(log.contains("local connection refused"), "{log}");
}

/// K15. A group admits its users, and another group nobody.
#[tokio::test]
async fn a_group_is_admitted_and_another_is_not() {
    let nobody = LocalPeers::users([own_uid() + 1]);
    let (answer, log) = try_call(nobody.clone().and_groups([own_gid()])).await;
    assert_eq!(answer.expect("an answer"), format!("uid={}", own_uid()));
    assert!(log.contains(&format!("gid={}", own_gid())), "{log}");
    let (answer, log) = try_call(nobody.and_groups([own_gid() + 1])).await;
    answer.expect_err("refused");
    assert!(log.contains("local connection refused"), "{log}");
}

/// K15. Another user for real, where the tests run as root: the mode keeps it out, and where that lets it in, the kernel's
/// word about it does.
#[tokio::test]
async fn another_user_is_kept_out_by_the_mode_and_by_its_credentials() {
    const STRANGER: u32 = 65_534;
    if own_uid() != 0 {
        return child::untested("only root can connect as another user");
    }
    let dir = tempfile::tempdir().expect("a folder");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(dir.path(), open).expect("the folder's mode");
    for (mode, admitted, expected) in [
        (0o600, LocalPeers::users([STRANGER]), "PermissionDenied"),
        (0o666, LocalPeers::owner(), "closed"),
        (0o666, LocalPeers::users([STRANGER]), "served"),
        (0o666, LocalPeers::owner().and_groups([STRANGER]), "served"),
    ] {
        let path = dir.path().join(format!("{mode:o}"));
        let options = UnixOptions { mode, group: None };
        let listener = Listener::bind_unix(&path, options).expect("a socket");
        let server = Server::builder(Security::Local(admitted)).build();
        let routes = Routes::new(EchoService::anonymous().into_server());
        let stop = CancellationToken::new();
        let serving = server.serve(listener, routes, stop.clone());
        let connecting = async {
            let connected = tokio::task::spawn_blocking(move || connect_as(STRANGER, &path));
            let outcome = connected.await.expect("no panic");
            stop.cancel();
            outcome
        };
        let (served, outcome) =
            soon("the answer", async { tokio::join!(serving, connecting) }).await;
        served.expect("served");
        assert_eq!(outcome, expected, "{mode:o}");
    }
}

/// What becomes of a connection that a thread makes as another user.
fn connect_as(id: u32, path: &Path) -> String {
    use rustix::process::{Gid, Uid};
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    // Only this thread changes, and it ends afterwards: the pool's threads go on as somebody who may change back.
    let path = path.to_owned();
    let connecting = std::thread::spawn(move || {
        let (user, group) = (Uid::from_raw(id), Gid::from_raw(id));
        rustix::thread::set_thread_groups(&[]).expect("root may");
        rustix::thread::set_thread_res_gid(group, group, group).expect("root may");
        rustix::thread::set_thread_res_uid(user, user, user).expect("root may");
        let mut stream = match UnixStream::connect(path) {
            Ok(stream) => stream,
            Err(error) => return format!("{:?}", error.kind()),
        };
        let written = stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
        match written.and_then(|()| stream.read(&mut [0; 1])) {
            Ok(0) | Err(_) => "closed".to_owned(),
            Ok(_) => "served".to_owned(),
        }
    });
    connecting.join().expect("no panic")
}

/// Peer credentials don't exist on TCP, so such a server never starts.
#[tokio::test]
async fn a_local_server_refuses_a_tcp_listener() {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .expect("a port");
    let server = Server::builder(Security::Local(LocalPeers::owner())).build();
    let routes = Routes::new(EchoService::anonymous().into_server());
    let served = server
        .serve(listener.into(), routes, CancellationToken::new())
        .await;
    assert!(
        matches!(served, Err(ServeError::LocalOverTcp)),
        "{served:?}"
    );
}

fn bind(path: &Path) -> Result<UnixSocket, BindUnixError> {
    UnixSocket::bind(path, UnixOptions::default())
}

fn mode(path: &Path) -> u32 {
    let found = std::fs::symlink_metadata(path).expect("the socket");
    found.permissions().mode() & 0o777
}

/// K15. Whatever the umask is.
#[tokio::test]
async fn the_mode_is_right_from_the_first_moment() {
    for umask in ["0", "22", "77"] {
        let dir = tempfile::tempdir().expect("a folder");
        let argument = format!("{umask} {}", dir.path().display());
        let mut child = child::start("local::child_whose_sockets_come_and_go", argument);
        child::word(&mut child, "their modes were right").await;
    }
}

/// Looked at as fast as can be while it comes and goes: never more open than it is to be, and the group only has its
/// rights when the group is the right one.
#[tokio::test]
async fn child_whose_sockets_come_and_go() {
    let Some(argument) = child::argument() else {
        return;
    };
    let argument = argument.to_str().expect("text");
    let (umask, dir) = argument.split_once(' ').expect("two words");
    let umask = u32::from_str_radix(umask, 8).expect("octal digits");
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(umask));
    let path = Path::new(dir).join("socket");
    let done = Arc::new(AtomicBool::new(false));
    let looked = Arc::new(AtomicUsize::new(0));
    let watcher = {
        let (path, done, looked) = (path.clone(), Arc::clone(&done), Arc::clone(&looked));
        std::thread::spawn(move || {
            let mut seen = Vec::new();
            while !done.load(Ordering::Relaxed) {
                if let Ok(found) = std::fs::symlink_metadata(&path) {
                    let state = (found.permissions().mode() & 0o777, found.gid());
                    looked.fetch_add(1, Ordering::Relaxed);
                    if !seen.contains(&state) {
                        seen.push(state);
                    }
                }
            }
            seen
        })
    };
    let owners = UnixOptions::default();
    let groups = UnixOptions {
        mode: 0o660,
        group: Some(own_gid()),
    };
    while looked.load(Ordering::Relaxed) < 500 {
        for (options, expected) in [(owners, 0o600), (groups, 0o660)] {
            let socket = UnixSocket::bind(&path, options).expect("a socket");
            assert_eq!(mode(&path), expected);
            drop(socket);
            assert!(!path.exists());
        }
    }
    done.store(true, Ordering::Relaxed);
    let seen = watcher.join().expect("no panic");
    for (mode, group) in seen {
        assert_eq!(mode & 0o007, 0, "{mode:o}");
        assert!(mode & 0o070 == 0 || group == own_gid(), "{mode:o} {group}");
    }
    child::say("their modes were right");
}

/// K15. A name that a live server has is never taken: the second start fails and says who has it, and the first goes on.
#[tokio::test]
async fn a_live_servers_socket_is_never_taken() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("socket");
    let first = bind(&path).expect("a socket");
    let inode = std::fs::symlink_metadata(&path).expect("it").ino();
    let refused = bind(&path).expect_err("it is taken");
    assert_eq!(
        refused.to_string(),
        format!(
            "another server listens at {}: this process ({})",
            path.display(),
            std::process::id()
        )
    );
    assert_eq!(std::fs::symlink_metadata(&path).expect("it").ino(), inode);
    let (accepted, connected) = tokio::join!(first.accept(), UnixStream::connect(&path));
    accepted.expect("the first goes on");
    connected.expect("and is reached");
    drop(first);
    drop(bind(&path).expect("the name is free again"));
}

/// The other process of the next test: it has the socket until it is killed.
#[tokio::test]
async fn child_that_has_a_socket() {
    if let Some(path) = child::argument() {
        let _socket = bind(Path::new(&path)).expect("a socket");
        child::say("bound");
        std::future::pending::<()>().await;
    }
}

/// K15. The same with another process, and killing it without a chance to clean up frees the name.
#[tokio::test]
async fn a_killed_servers_socket_is_replaced() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("socket");
    let mut child = child::start("local::child_that_has_a_socket", &path);
    child::word(&mut child, "bound").await;
    let refused = bind(&path).expect_err("it is taken");
    let holder = Some(child.id());
    assert!(
        matches!(&refused, BindUnixError::InUse { holder: found, .. } if *found == holder),
        "{refused:?}"
    );
    child.kill();
    assert!(path.exists(), "a killed server leaves its name");
    let second = bind(&path).expect("a stale name is taken over");
    let (accepted, connected) = tokio::join!(second.accept(), UnixStream::connect(&path));
    accepted.expect("a connection");
    connected.expect("a connection");
}

/// K15. However many start at once over a stale name, one wins and the name is the winner's.
#[tokio::test]
async fn of_concurrent_starts_exactly_one_wins() {
    const STARTS: usize = 8;
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("socket");
    for _ in 0..20 {
        drop(std::os::unix::net::UnixListener::bind(&path).expect("a name to be left stale"));
        let barrier = Arc::new(Barrier::new(STARTS));
        let mut starts = JoinSet::new();
        for _ in 0..STARTS {
            let (path, barrier) = (path.clone(), Arc::clone(&barrier));
            starts.spawn_blocking(move || {
                barrier.wait();
                bind(&path)
            });
        }
        let mut winners = Vec::new();
        for outcome in soon("the starts", starts.join_all()).await {
            match outcome {
                Ok(socket) => winners.push(socket),
                Err(BindUnixError::InUse { .. }) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
        assert_eq!(winners.len(), 1);
        UnixStream::connect(&path).await.expect("the winner's");
    }
}

/// K15. A server of another kind has no lock; that it answers is enough, also when it has no room for a connection.
#[tokio::test]
async fn a_foreign_servers_socket_is_never_taken() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("socket");
    let foreign = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
    rustix::net::listen(&foreign, 0).expect("a short backlog");
    let mut refusals = Vec::new();
    for _ in 0..4 {
        refusals.push(bind(&path).expect_err("it is taken"));
    }
    for refused in refusals {
        let unknown = BindUnixError::InUse {
            path: path.clone(),
            holder: None,
        };
        assert_eq!(refused.to_string(), unknown.to_string());
    }
    assert!(path.exists());
    drop(foreign);
    drop(bind(&path).expect("it is stale now"));
}

/// K15. What isn't a stream socket is left alone, whatever it is.
#[tokio::test]
async fn nothing_but_a_stale_stream_socket_is_removed() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("socket");
    let mut file = std::fs::File::create(&path).expect("a file");
    file.write_all(b"text").expect("its content");
    assert!(matches!(bind(&path), Err(BindUnixError::Occupied { .. })));
    assert_eq!(std::fs::read(&path).expect("it is there"), b"text");
    std::fs::remove_file(&path).expect("gone");

    std::os::unix::fs::symlink(dir.path().join("elsewhere"), &path).expect("a link");
    assert!(matches!(bind(&path), Err(BindUnixError::Occupied { .. })));
    std::fs::remove_file(&path).expect("gone");

    let _other = std::os::unix::net::UnixDatagram::bind(&path).expect("a datagram socket");
    assert!(matches!(bind(&path), Err(BindUnixError::Unknown { .. })));
    let found = std::fs::symlink_metadata(&path).expect("it is there");
    assert!(found.file_type().is_socket());
}

/// A socket that somebody else has put in the place of ours is not ours to remove.
#[tokio::test]
async fn only_the_own_name_is_removed() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("socket");
    let socket = bind(&path).expect("a socket");
    std::fs::remove_file(&path).expect("it is gone");
    let _other = UnixListener::bind(&path).expect("another");
    drop(socket);
    assert!(path.exists());
}

/// The kernel's limit is told before anything is made.
#[tokio::test]
async fn a_path_that_is_too_long_is_named_with_its_length() {
    let dir = tempfile::tempdir().expect("a folder");
    let room = 107 - dir.path().as_os_str().len() - 1;
    drop(bind(&dir.path().join("x".repeat(room))).expect("107 bytes"));
    let long = dir.path().join("x".repeat(room + 1));
    let refused = bind(&long).expect_err("108 bytes").to_string();
    assert!(refused.contains("at most 107 bytes"), "{refused}");
    assert!(refused.ends_with("has 108"), "{refused}");
    let left = std::fs::read_dir(dir.path()).expect("the folder").count();
    assert_eq!(left, 1, "the lock of the first, and nothing of the second");
}
