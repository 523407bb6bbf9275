//! `vidimus tls roots` and `vidimus tls peers`: a rotation of the CA as a person runs it, with real processes.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;
use tokio::runtime::Runtime;
use vidimus_testkit::{Authority, Pki, Process, wait_until};
use vidimus_tls::{
    channel::{Channel, ClientTls},
    clock::Clock,
    identity::Fingerprint,
    material::{Material, MaterialFiles, Usage},
    watch::MaterialWatch,
};

use crate::support::{PATIENCE, Ran, vidimus, write};

const SERVER: &str = "provider.example.org";

/// A provider with its admin socket, and the folders of its manager.
struct House {
    dir: TempDir,
    provider: Process,
    address: String,
    metrics: String,
}

impl House {
    /// A provider whose certificate and roots come from `pki`.
    fn start(pki: &Pki) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        issue(pki, &dir.path().join("provider"), &[&pki.root]);
        let socket = dir.path().join("admin.sock");
        let mut provider = Process::spawn(run(&dir.path().join("provider"), &socket));
        let line = provider.wait_for_line("\"grpc\"", PATIENCE);
        let line: serde_json::Value = serde_json::from_str(&line).expect("a JSON log line");
        let address = |name: &str| line[name].as_str().expect("an address").to_owned();
        let (address, metrics) = (address("grpc"), address("metrics"));
        Self {
            dir,
            provider,
            address,
            metrics,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// `vidimus tls roots WHAT` for the provider's folder.
    fn roots(&self, what: &str, more: &[&str]) -> Ran {
        let folder = self.text("provider");
        Ran::of(["tls", "roots", what, &folder].iter().chain(more))
    }

    fn peers(&self, more: &[&str]) -> Ran {
        let socket = self.text("admin.sock");
        Ran::well(["tls", "peers", "--socket", &socket].iter().chain(more))
    }

    /// A manager that stays connected until it is dropped.
    fn connect(&self, pki: &Pki, name: &str) -> Peer {
        let folder = self.path(name);
        issue(pki, &folder, &[&pki.root]);
        write(folder.join("ca.crt"), self.roots_pem());
        let files = MaterialFiles::in_dir(&folder);
        let material = Material::load(&files, Usage::Client, Clock::system().now());
        let tls = ClientTls::Watch(MaterialWatch::fixed(material.expect("good files")));
        let runtime = Runtime::new().expect("a runtime");
        let channel = runtime.block_on(async {
            let channel = Channel::builder(&self.address, SERVER, tls).build();
            let channel = channel.expect("a channel");
            channel.ready().await.expect("a connection");
            channel
        });
        Peer {
            _channel: channel,
            _runtime: runtime,
        }
    }

    /// The lines of the metrics page that have all of these words.
    fn metrics(&self, words: &[&str]) -> Vec<String> {
        let mut stream = TcpStream::connect(&self.metrics).expect("a connection");
        let request = b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        stream.write_all(request).expect("a request");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("a page");
        assert!(!page.contains(SERVER), "no peer and no name: {page}");
        let all = |line: &&str| words.iter().all(|word| line.contains(word));
        page.lines().filter(all).map(str::to_owned).collect()
    }

    fn roots_pem(&self) -> String {
        fs::read_to_string(self.path("provider/ca.crt")).expect("the roots")
    }

    fn stop(mut self) {
        self.provider.terminate();
        let ended = self.provider.wait_exit(PATIENCE);
        assert!(ended.success(), "{:?}", self.provider.lines());
    }
}

/// A connected manager.
struct Peer {
    _channel: Channel,
    _runtime: Runtime,
}

fn run(tls: &Path, socket: &Path) -> Command {
    let mut command = vidimus(["provider", "run", "--bind", "127.0.0.1"]);
    command.args(["--port", "0", "--health-port", "0", "--log-format", "json"]);
    command.args(["--metrics", "127.0.0.1:0"]);
    command.arg("--tls-dir").arg(tls);
    command.arg("--admin-socket").arg(socket);
    command
        .env_remove("VIRTRIGAUD_PROVIDER_INSECURE")
        .env_remove("VIRTRIGAUD_PROVIDER_ALLOWED_SANS");
    command
}

/// Writes a certificate that is good for both sides; its name is the folder's, or the server's.
fn issue(pki: &Pki, folder: &Path, roots: &[&Authority]) {
    let name = folder.file_name().expect("a name").to_string_lossy();
    let name = if name == "provider" { SERVER } else { &name };
    let leaf = pki.leaf(name).dns(name).issue();
    leaf.write_dir(folder, roots);
}

fn print_of(authority: &Authority) -> String {
    Fingerprint::of(authority.der()).to_string()
}

/// T9, V14. Add, re-issue, see who still presents the old root, and remove: refused while somebody needs it.
#[test]
fn a_root_is_not_removed_while_a_live_peer_needs_it() {
    let (old, new) = (Pki::new("Old"), Pki::new("New"));
    let house = House::start(&old);
    let (old_print, new_print) = (print_of(&old.root), print_of(&new.root));
    let socket = house.text("admin.sock");
    house.last_root_stays(&old_print);
    house.add(&new.root);

    // Phase 2: re-issue, here the provider and one of two peers.
    let behind = house.connect(&old, "behind");
    let stays = house.roots("remove", &[&old_print, "--socket", &socket]);
    stays.failed(1, "issue it anew first");
    issue(&new, &house.path("provider"), &[&old.root, &new.root]);
    wait_until(PATIENCE, || {
        let page = house.peers(&["-o", "json"]).json();
        match page["generation"].as_u64() {
            Some(generation) if generation > 2 => Ok(()),
            generation => Err(format!("{generation:?}")),
        }
    });
    let ahead = house.connect(&new, "ahead");
    house.shows_both(&old_print, &new_print);

    // Phase 4: remove, refused while somebody needs it, and nothing is changed.
    let before = house.roots_pem();
    let stays = house.roots("remove", &[&old_print, "--socket", &socket]);
    stays.failed(1, "needed by behind");
    assert!(!stays.stderr.contains("by ahead"), "{}", stays.stderr);
    assert_eq!(house.roots_pem(), before);
    let blind = house.roots("remove", &[&old_print]);
    blind.failed(2, "--socket");

    drop(behind);
    let beginning: String = old_print.chars().take(12).collect();
    wait_until(PATIENCE, || {
        let removed = house.roots("remove", &[&beginning, "--socket", &socket]);
        match removed.code {
            Some(0) => Ok(()),
            _ => Err(removed.stderr),
        }
    });
    let page = house.peers(&["-o", "json"]).json();
    assert_eq!(page["roots"].as_array().map(Vec::len), Some(1), "{page}");
    assert_eq!(page["roots"][0]["fingerprint"], new_print.as_str());
    assert_eq!(page["connections"][0]["peer"]["dns_names"][0], "ahead");
    drop(ahead);
    house.stop();
}

/// The phases one by one.
impl House {
    fn last_root_stays(&self, print: &str) {
        self.roots("remove", &[print, "--force"])
            .failed(1, "the last root");
    }

    /// Phase 1. The provider has the root in use when the command returns.
    fn add(&self, root: &Authority) {
        write(self.path("new.pem"), root.pem());
        let (pem, socket) = (self.text("new.pem"), self.text("admin.sock"));
        let add = ["--root", &pem, "--socket", &socket];
        let added = self.roots("add", &add);
        assert_eq!(added.code, Some(0), "{}", added.stderr);
        let waited = added.stderr.contains("generation 2: in use");
        assert!(waited, "{}", added.stderr);
        self.roots("add", &add).failed(1, "already");
    }

    /// Phase 3: who still presents the old root.
    fn shows_both(&self, old_print: &str, new_print: &str) {
        let by_root = self.peers(&["--by", "root"]).stdout;
        for (subject, generation) in [("CN=Old root", "older"), ("CN=New root", "current")] {
            let line = by_root.lines().find(|line| line.contains(subject));
            let told = line.is_some_and(|line| line.contains(generation));
            assert!(told, "{by_root}");
        }
        let by_peer = self.peers(&[]).stdout;
        let both = by_peer.contains("behind") && by_peer.contains("ahead");
        assert!(both, "{by_peer}");
        let whole = self.peers(&["-o", "json"]).json();
        let judged = &whole["connections"][0]["judged_generation"];
        assert!(judged.is_u64(), "as the program wrote it: {whole}");

        let socket = self.text("admin.sock");
        let list = self.roots("list", &["--socket", &socket, "-o", "json"]);
        let list = list.json();
        assert_eq!(list[0]["connections"], 1, "{list}");
        let own = (&list[0]["own"], &list[1]["own"]);
        assert_eq!(own, (&false.into(), &true.into()), "{list}");

        for (print, generation) in [(old_print, "older"), (new_print, "current")] {
            let lines = self.metrics(&["vidimus_tls_connections{", print, generation]);
            let one = lines.first().is_some_and(|line| line.ends_with(" 1"));
            assert!(lines.len() == 1 && one, "{lines:?}");
        }
        let lines = self.metrics(&["vidimus_tls_handshakes_total{", "result=\"ok\""]);
        assert!(lines.iter().any(|line| line.ends_with(" 2")), "{lines:?}");
        let lines = self.metrics(&["vidimus_tls_leaf_expiry_seconds{"]);
        assert_eq!(lines.len(), 1, "{lines:?}");
    }
}

/// T9. A program that uses other files can't say who needs what is in these.
#[test]
fn the_answer_of_a_program_that_follows_other_files_counts_for_nothing() {
    let (one, other) = (Pki::new("One"), Pki::new("Other"));
    let house = House::start(&one);
    let socket = house.text("admin.sock");
    issue(&one, &house.path("elsewhere"), &[&one.root, &other.root]);
    let (folder, print) = (house.text("elsewhere"), print_of(&other.root));
    let ran = Ran::of([
        "tls", "roots", "remove", &folder, &print, "--socket", &socket,
    ]);
    ran.failed(1, "follows other files");
    house.stop();
}

/// V14. Forced, a root goes whoever needs it, and the provider ends the connection that rests on it.
#[test]
fn a_forced_removal_ends_the_connections_that_rest_on_the_root() {
    let (old, new) = (Pki::new("Old"), Pki::new("New"));
    let house = House::start(&old);
    let socket = house.text("admin.sock");
    issue(&new, &house.path("provider"), &[&old.root, &new.root]);
    let thief = house.connect(&old, "thief");
    let print = print_of(&old.root);
    let removed = house.roots("remove", &[&print, "--socket", &socket, "--force"]);
    removed.failed(0, "needed by thief");
    wait_until(PATIENCE, || {
        let page = house.peers(&["-o", "json"]).json();
        match page["connections"].as_array().map(Vec::len) {
            Some(0) => Ok(()),
            _ => Err(page.to_string()),
        }
    });
    drop(thief);
    house.stop();
}

/// T9. What is no root, and a folder that is not to be changed here, are refused in words.
#[test]
fn what_is_no_root_and_what_is_mounted_are_refused() {
    let (old, new) = (Pki::new("Old"), Pki::new("New"));
    let dir = tempfile::tempdir().expect("a folder");
    let text = |name: &str| dir.path().join(name).display().to_string();
    issue(&old, &dir.path().join("plain"), &[&old.root]);
    let leaf = new.leaf("leaf").dns("leaf.example.org").issue();
    write(dir.path().join("leaf.pem"), leaf.chain_pem());
    write(dir.path().join("new.pem"), new.root.pem());
    write(dir.path().join("none.pem"), "nothing\n");
    for (file, words) in [
        ("leaf.pem", "CA"),
        ("none.pem", "no CERTIFICATE block"),
        ("gone.pem", "does not exist"),
    ] {
        let ran = Ran::of(["tls", "roots", "add", &text("plain"), "--root", &text(file)]);
        ran.failed(1, words);
    }
    let _volume = leaf.write_volume(&dir.path().join("mounted"), &[&old.root]);
    let ran = Ran::of([
        "tls",
        "roots",
        "add",
        &text("mounted"),
        "--root",
        &text("new.pem"),
    ]);
    ran.failed(1, "in the Secret itself");

    // Text between the blocks stays, and several matches are not guessed at.
    let commented = format!("# ours\n{}# theirs\n{}", old.root.pem(), new.root.pem());
    write(dir.path().join("plain/ca.crt"), commented);
    let ran = Ran::of(["tls", "roots", "remove", &text("plain"), "", "--force"]);
    ran.failed(1, "may be any of");
    let ran = Ran::of([
        "tls",
        "roots",
        "remove",
        &text("plain"),
        "stranger",
        "--force",
    ]);
    ran.failed(1, "no root \"stranger\"");
    let print = print_of(&new.root);
    Ran::well(["tls", "roots", "remove", &text("plain"), &print, "--force"]);
    let left = fs::read_to_string(dir.path().join("plain/ca.crt")).expect("the roots");
    assert_eq!(left, format!("# ours\n{}# theirs\n", old.root.pem()));
}

/// Nobody answers: exit code 3, and the socket is named.
#[test]
fn a_socket_that_nobody_answers_on_is_named() {
    let ran = Ran::of(["tls", "peers", "--socket", "/nowhere/admin.sock"]);
    ran.failed(3, "/nowhere/admin.sock");
}
