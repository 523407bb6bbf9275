//! The suite's certificates and revocation lists, as the Python package `cryptography-vectors` carries them: fetched once into the target folder.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use vidimus_testkit::command;
use vidimus_x509::cert::Certificate;

use crate::repository;

/// The release and the digest of its one file.
const RELEASE: &str = "50.0.2";
const DIGEST: &str = "51641f03a3eb4edbe9fb68e3a3574d25f86aa502d06391fffa886330d02778a0";

/// Where the suite lies in it.
const PLACE: &str = "cryptography_vectors/x509/PKITS_data/";

/// Extracts a wheel's certificates and lists: the arguments are the folder with the wheel, the prefix and the folder to fill.
const EXTRACT: &str = "\
import pathlib, sys, zipfile
wheel, = pathlib.Path(sys.argv[1]).glob('*.whl')
for entry in zipfile.ZipFile(wheel).infolist():
    folder, _, name = entry.filename.removeprefix(sys.argv[2]).rpartition('/')
    if (folder, name[-4:]) in [('certs', '.crt'), ('crls', '.crl')]:
        pathlib.Path(sys.argv[3], name).write_bytes(zipfile.ZipFile(wheel).read(entry))
";

/// The suite, in DER.
pub(super) struct Suite {
    /// The one trust anchor.
    pub(super) root: Vec<u8>,
    /// Every other CA.
    pub(super) authorities: Vec<Vec<u8>>,
    /// The ends of the paths, by file name without ending.
    pub(super) ends: Vec<(String, Vec<u8>)>,
    /// The revocation lists, by file name without ending.
    pub(super) lists: Vec<(String, Vec<u8>)>,
}

impl Suite {
    /// The CAs that may stand above `end`, by name: compared as people read them, since the suite has paths on which the
    /// names differ in case and spaces alone.
    pub(super) fn above(&self, end: &[u8]) -> Vec<&[u8]> {
        let read = |text: &str| text.split_whitespace().collect::<String>().to_lowercase();
        let names = |der: &[u8]| match Certificate::parse(der) {
            Ok(certificate) => (
                read(certificate.subject_text()),
                read(certificate.issuer_text()),
            ),
            // Whatever can't be read can't be in a path either.
            Err(_) => (String::new(), String::new()),
        };
        let mut wanted = vec![names(end).1];
        let mut left: Vec<_> = self
            .authorities
            .iter()
            .map(|der| (der, names(der)))
            .collect();
        let mut above = Vec::new();
        while let Some(name) = wanted.pop() {
            let (found, others): (Vec<_>, Vec<_>) = left
                .into_iter()
                .partition(|(_, (subject, _))| *subject == name);
            left = others;
            for (der, (_, issuer)) in found {
                above.push(der.as_slice());
                wanted.push(issuer);
            }
        }
        above
    }
}

/// Reads the suite, and fetches it first where it isn't there.
pub(super) fn suite() -> Suite {
    let folder = folder();
    let mut suite = Suite {
        root: Vec::new(),
        authorities: Vec::new(),
        ends: Vec::new(),
        lists: Vec::new(),
    };
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| repository::fail(&folder, &error));
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    for path in paths {
        let der = fs::read(&path).unwrap_or_else(|error| repository::fail(&path, &error));
        let name = path.file_stem().expect("a file name").to_string_lossy();
        if path.extension().is_some_and(|ending| ending == "crl") {
            suite.lists.push((name.into_owned(), der));
        } else if name == "TrustAnchorRootCertificate" {
            suite.root = der;
        } else if name.ends_with("EE") {
            suite.ends.push((name.into_owned(), der));
        } else {
            suite.authorities.push(der);
        }
    }
    suite
}

fn folder() -> PathBuf {
    let this = env::current_exe().expect("the path of this test");
    let target = this
        .ancestors()
        .nth(3)
        .expect("test binaries lie in target/<profile>/deps");
    let folder = target
        .join("conformance")
        .join(format!("pkits-lists-{RELEASE}"));
    if !folder.is_dir() {
        fetch(&folder);
    }
    folder
}

/// All or nothing, so that a fetch that was cut short or ran twice at once leaves no half of the suite.
fn fetch(folder: &Path) {
    let parent = folder.parent().expect("it has one");
    fs::create_dir_all(parent).unwrap_or_else(|error| repository::fail(parent, &error));
    let work = tempfile::tempdir_in(parent).expect("a folder to work in");
    let (wheels, filled) = (work.path().join("wheels"), work.path().join("suite"));
    fs::create_dir(&filled).expect("a folder in a new one");

    let wanted = format!("cryptography-vectors=={RELEASE} --hash=sha256:{DIGEST}\n");
    let pip = "pip download --quiet --no-deps --only-binary=:all: --require-hashes --requirement /dev/stdin --dest";
    let mut download = Command::new("python3");
    download.arg("-m").args(pip.split(' ')).arg(&wheels);
    let fetched = command::run(download, wanted.as_bytes(), Duration::from_secs(300));
    assert!(
        fetched.status.success(),
        "PKITS is not in {} and could not be fetched: {fetched}",
        folder.display()
    );
    let mut extract = Command::new("python3");
    extract
        .args(["-c", EXTRACT])
        .arg(&wheels)
        .arg(PLACE)
        .arg(&filled);
    command::run(extract, b"", Duration::from_secs(60)).success();
    if let Err(error) = fs::rename(&filled, folder) {
        // Another run of this test was faster.
        assert!(folder.is_dir(), "{}: {error}", folder.display());
    }
}
