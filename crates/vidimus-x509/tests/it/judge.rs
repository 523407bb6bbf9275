//! openssl and Go as judges.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;
use vidimus_x509::pem;

use crate::ca::{Ca, NOW_UNIX, data};

/// A folder with a CA's chain in it, for programs that read files.
pub(crate) struct Bench {
    dir: TempDir,
}

impl Bench {
    pub(crate) fn new(ca: &Ca) -> Self {
        let bench = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        let (root, between) = ca.chain.split_last().unwrap();
        bench.put("root.der", root);
        bench.put("root.pem", pem::encode(pem::CERTIFICATE, root).as_bytes());
        let between: String = between
            .iter()
            .map(|der| pem::encode(pem::CERTIFICATE, der))
            .collect();
        bench.put("between.pem", between.as_bytes());
        bench
    }

    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        #[expect(
            clippy::disallowed_methods,
            reason = "a scratch file for another program"
        )]
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// `openssl verify`, as strict as it gets; what it said where it refused.
    pub(crate) fn openssl(&self, certificate: &[u8], purpose: &str) -> Result<(), String> {
        let at = NOW_UNIX.to_string();
        self.openssl_at(certificate, purpose, &at)
    }

    pub(crate) fn openssl_at(
        &self,
        certificate: &[u8],
        purpose: &str,
        at: &str,
    ) -> Result<(), String> {
        let certificate = pem::encode(pem::CERTIFICATE, certificate);
        let certificate = self.put("certificate.pem", certificate.as_bytes());
        let root = self.dir.path().join("root.pem");
        let between = self.dir.path().join("between.pem");
        let mut command = Command::new("openssl");
        command
            .args(["verify", "-x509_strict", "-attime", at, "-purpose", purpose])
            .arg("-CAfile")
            .arg(root);
        if std::fs::metadata(&between).unwrap().len() > 0 {
            command.arg("-untrusted").arg(between);
        }
        let output = command.arg(certificate).output().unwrap();
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    /// Go's crypto/x509, for all of them; the public key infos, in hex.
    pub(crate) fn go(&self, usage: &str, certificates: &[&[u8]]) -> Result<Vec<String>, String> {
        let mut command = Command::new("go");
        command
            .env("GO111MODULE", "off")
            .arg("run")
            .arg(data("verify.go"))
            .arg(NOW_UNIX.to_string())
            .arg(usage)
            .arg(self.dir.path().join("root.der"))
            .arg(self.dir.path().join("between.pem"));
        for (index, der) in certificates.iter().enumerate() {
            command.arg(self.put(&format!("{index}.der"), der));
        }
        let output = command.output().expect("these tests need the go program");
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let text = String::from_utf8(output.stdout).unwrap();
        Ok(text
            .lines()
            .filter_map(|line| line.split_once(' ').map(|(_, hex)| hex.to_owned()))
            .collect())
    }
}

/// Runs openssl in a folder; it must succeed.
pub(crate) fn openssl<A: AsRef<OsStr>>(dir: &Path, args: &[A]) -> Vec<u8> {
    let output = Command::new("openssl")
        .current_dir(dir)
        .args(args)
        .output()
        .expect("these tests need the openssl program");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    output.stdout
}

/// `openssl x509 -text` of a certificate.
pub(crate) fn text(der: &[u8]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("certificate.der");
    #[expect(
        clippy::disallowed_methods,
        reason = "a scratch file for another program"
    )]
    std::fs::write(&path, der).unwrap();
    let args = [
        "x509",
        "-inform",
        "DER",
        "-in",
        "certificate.der",
        "-noout",
        "-text",
    ];
    String::from_utf8(openssl(dir.path(), &args)).unwrap()
}
