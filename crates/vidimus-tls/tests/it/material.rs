//! What is taken for material and what isn't, and what is said about it.

#![expect(clippy::string_slice, reason = "PEM is ASCII")]

use std::time::SystemTime;

use vidimus_testkit::pki::{Curve, Usage as LeafUsage};
use vidimus_testkit::{Authority, Credential, Pki, openssl};
use vidimus_tls::material::{Identity, Material, MaterialFiles, Trust, Usage};

use crate::support::{DEADLINE, Running, Setup, World, put};

#[expect(
    clippy::disallowed_methods,
    reason = "certificates made by the testkit are judged by the wall clock"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

fn text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

fn identity(certificates: &str, key: &str, usage: Usage) -> Result<Identity, String> {
    Identity::from_pem(certificates.as_bytes(), key.as_bytes(), usage, now()).map_err(|e| text(&e))
}

fn trust(roots: &str) -> Result<Trust, String> {
    Trust::from_pem(roots.as_bytes(), now()).map_err(|e| text(&e))
}

fn good(pki: &Pki) -> Credential {
    pki.leaf("server").dns("server.test").issue()
}

/// V10. The leaf is the certificate that has the key, wherever it stands; the others follow by issuer.
#[test]
fn the_leaf_is_found_and_the_chain_put_in_order() {
    let root = Authority::root("root");
    let upper = root.intermediate("upper");
    let lower = upper.intermediate("lower");
    let leaf = lower.leaf("server").dns("server.test").issue();
    let in_order: Vec<Vec<u8>> = leaf.chain_der().to_vec();
    assert_eq!(in_order.len(), 3);
    let [one, two, three] = [&leaf.chain_pem()[..], &upper.pem(), &lower.pem()].map(str::to_owned);
    let only_leaf = one
        .split_inclusive("-----END CERTIFICATE-----\n")
        .next()
        .expect("a leaf");
    for shuffled in [
        format!("{two}{three}{only_leaf}"),
        format!("{three}{only_leaf}{two}"),
        format!("{two}{only_leaf}{three}{two}"),
    ] {
        let identity = identity(&shuffled, leaf.key_pem(), Usage::Both).expect("an identity");
        let chain: Vec<Vec<u8>> = identity.chain().iter().map(|c| c.to_vec()).collect();
        assert_eq!(chain, in_order);
    }
}

/// V10. PKCS#8, SEC1 and PKCS#1 keys as openssl writes them.
#[test]
fn keys_of_every_pem_form_are_read() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = |name: &str| dir.path().join(name).display().to_string();
    for (name, generate, convert) in [
        (
            "ec",
            vec!["ecparam", "-name", "secp384r1", "-genkey", "-noout"],
            Some(vec!["pkcs8", "-topk8", "-nocrypt"]),
        ),
        ("rsa", vec!["genrsa", "-traditional", "2048"], None),
    ] {
        let (key, certificate) = (at(&format!("{name}.key")), at(&format!("{name}.crt")));
        // genrsa wants its size last.
        let mut args = generate.clone();
        args.splice(1..1, ["-out", &key]);
        openssl(args).success();
        openssl([
            "req",
            "-x509",
            "-new",
            "-key",
            &key,
            "-subj",
            "/CN=server",
            "-days",
            "2",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-out",
            &certificate,
        ])
        .success();
        let read = |path: &str| std::fs::read_to_string(path).expect("a file");
        let mut keys = vec![read(&key)];
        if let Some(convert) = convert {
            let pkcs8 = at("pkcs8.key");
            openssl([&convert[..], &["-in", &key, "-out", &pkcs8]].concat()).success();
            keys.push(read(&pkcs8));
        }
        for key in keys {
            let label = key.lines().next().expect("a label").to_owned();
            identity(&read(&certificate), &key, Usage::Both).expect(&label);
        }
    }
}

/// T11, T18. What doesn't fit is refused with the reason, the object and what would be right.
#[test]
fn an_identity_that_peers_would_refuse_is_refused_here() {
    let pki = Pki::new("Example");
    let (mine, other) = (good(&pki), good(&pki));
    let leaf = || pki.leaf("server").dns("server.test");
    let refused = |credential: &Credential, usage| {
        identity(&credential.chain_pem(), credential.key_pem(), usage).expect_err("refused")
    };
    for (error, parts) in [
        (
            identity(&mine.chain_pem(), other.key_pem(), Usage::Both).expect_err("refused"),
            &["private key in memory does not match any certificate in memory"][..],
        ),
        (
            refused(&leaf().expired().issue(), Usage::Server),
            &["has expired: now 20", "notBefore 20", "notAfter 20"],
        ),
        (
            refused(&leaf().not_yet_valid().issue(), Usage::Server),
            &["is not valid yet: now 20", "notBefore 20", "notAfter 20"],
        ),
        (
            refused(&leaf().ca().issue(), Usage::Server),
            &[
                "is a CA certificate",
                "CA:TRUE",
                "issue an end-entity certificate",
            ],
        ),
        (
            refused(&leaf().client().issue(), Usage::Server),
            &["lacks the extended key usage serverAuth: found clientAuth"],
        ),
        (
            refused(&leaf().server().issue(), Usage::Both),
            &["lacks the extended key usage clientAuth: found serverAuth"],
        ),
        (
            identity("", mine.key_pem(), Usage::Both).expect_err("refused"),
            &["memory"],
        ),
        (
            identity(&mine.chain_pem(), &mine.chain_pem(), Usage::Both).expect_err("refused"),
            &["private key in memory cannot be read as PEM"],
        ),
        (
            identity(&mine.chain_pem()[..700], mine.key_pem(), Usage::Both).expect_err("refused"),
            &["certificates in memory cannot be read as PEM"],
        ),
    ] {
        for part in parts {
            assert!(error.contains(part), "{error:?} lacks {part:?}");
        }
    }
    for (usage, want) in [
        (LeafUsage::Both, Usage::Both),
        (LeafUsage::None, Usage::Both),
        (LeafUsage::Server, Usage::Server),
        (LeafUsage::Client, Usage::Client),
    ] {
        let fits = leaf().usage(usage).curve(Curve::P256).issue();
        identity(&fits.chain_pem(), fits.key_pem(), want).expect("it fits");
    }
}

/// T15. One bad certificate among good ones refuses the set, with its position.
#[test]
fn a_bundle_counts_whole_or_not_at_all() {
    let (one, two) = (Authority::root("one"), Authority::root("two"));
    let bundle = format!("{}# comment\r\n{}", one.pem(), two.pem());
    assert_eq!(trust(&bundle).expect("two roots").roots().len(), 2);
    let cut = &bundle[..bundle.len() - 100];
    let error = trust(cut).expect_err("refused");
    assert!(
        error.contains("roots in memory cannot be read as PEM"),
        "{error}"
    );
    let damaged = format!("{bundle}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let error = trust(&damaged).expect_err("refused");
    assert!(error.contains("block 3"), "{error}");
    for (empty, reason) in [("", "memory"), ("just text\n", "memory")] {
        let error = trust(empty).expect_err("refused");
        assert!(error.contains(reason), "{error}");
    }
    let leaf = one.leaf("leaf").issue();
    let error = trust(&leaf.chain_pem()).expect_err("refused");
    assert!(
        error.contains("none of the certificates in memory is a CA certificate"),
        "{error}"
    );
    assert_eq!(
        trust(&format!("{}{}", one.pem(), one.pem()))
            .expect("one root")
            .roots()
            .len(),
        1
    );
}

/// An expired root is no reason to refuse the set; it verifies nobody, and peers are not asked for certificates under it.
#[tokio::test]
async fn an_expired_root_stays_in_the_set_and_is_not_asked_for() {
    use vidimus_testkit::pki::{AuthoritySpec, Validity};
    let world = World::new();
    let old = AuthoritySpec::new("old root")
        .validity(Validity::Expired)
        .root();
    let bundle = format!("{}{}", old.pem(), world.pki.root.pem());
    let set = trust(&bundle).expect("a set");
    assert_eq!(set.roots().len(), 2);
    assert!(!set.roots()[0].is_valid_at(now()));
    put(world.dir.path().join("ca.crt"), bundle);
    let (running, _) = Running::follow(world.dir.path(), Setup::default()).await;
    let asked = world.client().asked_for(running.address).await;
    let names = |der: &[u8]| {
        asked
            .iter()
            .filter(|name| name.windows(der.len()).any(|w| w == der))
            .count()
    };
    assert_eq!((names(b"old root"), names(b"Example root")), (0, 1));
    running.stop().await;
}

/// No key byte reaches a `Debug`, an error or the log.
#[test]
fn keys_are_never_shown() {
    let log = crate::support::LogCapture::start();
    let pki = Pki::new("Example");
    let dir = tempfile::tempdir().expect("a folder");
    let (mine, other) = (good(&pki), good(&pki));
    mine.write_dir(dir.path(), &[&pki.root]);
    let material = Material::load(&MaterialFiles::in_dir(dir.path()), Usage::Both, now());
    let mut shown = format!(
        "{material:?}{:?}",
        identity(&mine.chain_pem(), mine.key_pem(), Usage::Both)
    );
    let garbled = mine.key_pem().replace("-----END", "!!!!-----END");
    let cut = &mine.key_pem()[..mine.key_pem().len() / 2];
    for key in [&garbled, cut, other.key_pem()] {
        let error = Identity::from_pem(
            mine.chain_pem().as_bytes(),
            key.as_bytes(),
            Usage::Both,
            now(),
        );
        let error = error.expect_err("refused");
        shown.push_str(&format!("{error:?}{}", text(&error)));
    }
    // Line ends that were lost on the way, in each of the files that the key may have got into.
    let one_line = mine.key_pem().replace('\n', "");
    let first_lost = mine.key_pem().replacen('\n', "", 1);
    let escaped = mine.key_pem().replace('\n', "\\n");
    let files = MaterialFiles::in_dir(dir.path());
    for key in [&one_line, &first_lost, &escaped, mine.key_pem()] {
        for path in files.paths() {
            let good = std::fs::read(path).expect("a file");
            for before in [&b""[..], &good] {
                put(path, [before, key.as_bytes()].concat());
                match Material::load(&files, Usage::Both, now()) {
                    Ok(material) => shown.push_str(&format!("{material:?}")),
                    Err(error) => shown.push_str(&format!("{error:?}{}", text(&error))),
                }
            }
            put(path, good);
        }
    }
    shown.push_str(&log.text());
    for credential in [&mine, &other] {
        for line in credential
            .key_pem()
            .lines()
            .filter(|line| !line.starts_with('-'))
        {
            assert!(!shown.contains(&line[..16]), "a key's text is in {shown}");
        }
        // As numbers, the way a derived Debug would show bytes.
        let numbers = credential.key_der()[40..52]
            .iter()
            .map(u8::to_string)
            .collect::<Vec<_>>();
        assert!(
            !shown.contains(&numbers.join(", ")),
            "a key's bytes are in {shown}"
        );
    }
}

/// A FIFO in the place of a file is refused and not waited for.
#[test]
fn what_is_no_file_is_not_waited_for() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let pki = Pki::new("Example");
    let dir = tempfile::tempdir().expect("a folder");
    good(&pki).write_dir(dir.path(), &[&pki.root]);
    let files = MaterialFiles::in_dir(dir.path());
    std::fs::remove_file(&files.key).expect("removed");
    mknodat(CWD, &files.key, FileType::Fifo, Mode::RUSR, 0).expect("a FIFO");
    let (done, ended) = std::sync::mpsc::channel();
    let load = move || done.send(Material::load(&files, Usage::Both, now()));
    std::thread::spawn(load);
    let loaded = ended.recv_timeout(DEADLINE).expect("an answer");
    let error = text(&loaded.expect_err("refused"));
    assert!(
        error.contains("tls.key") && error.contains("not a regular file"),
        "{error}"
    );
}

/// Files larger than any real material are not read.
#[test]
fn files_are_read_up_to_a_bound() {
    let pki = Pki::new("Example");
    let dir = tempfile::tempdir().expect("a folder");
    good(&pki).write_dir(dir.path(), &[&pki.root]);
    let files = MaterialFiles::in_dir(dir.path());
    Material::load(&files, Usage::Both, now()).expect("good material");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(&files.key)
        .expect("the key");
    file.set_len(65 * 1024).expect("a longer file");
    let error = text(&Material::load(&files, Usage::Both, now()).expect_err("refused"));
    assert!(
        error.contains("tls.key") && error.contains("larger than"),
        "{error}"
    );
}
