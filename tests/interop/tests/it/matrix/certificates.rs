//! The certificates of the cases.

use std::path::PathBuf;

use vidimus_testkit::pki::LeafSpec;
use vidimus_testkit::{Credential, Pki};

use super::{SERVER, put};

/// The serial number of what has been revoked.
const REVOKED: &[u8] = &[0x77];

/// What is wrong with a certificate, or nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Leaf {
    Expired,
    Good,
    NotYetValid,
    /// Good, but for another name.
    OtherName,
    /// A client's certificate for servers alone, a server's for clients alone.
    OtherPurpose,
    /// On its CA's revocation list.
    Revoked,
    /// Issued by a CA that nobody here trusts.
    Stranger,
}

/// Two CAs, and folders with what they signed. Everybody trusts the first.
pub(crate) struct Certificates {
    pub(crate) pki: Pki,
    stranger: Pki,
    dir: tempfile::TempDir,
}

impl Certificates {
    pub(crate) fn new() -> Self {
        Self {
            pki: Pki::new("Example"),
            stranger: Pki::new("Stranger"),
            dir: tempfile::tempdir().unwrap(),
        }
    }

    /// A client's certificate, with one name of each form.
    pub(crate) fn client(&self, leaf: Leaf) -> Credential {
        let spec = self
            .signer(leaf)
            .leaf("caller")
            .dns("caller.example")
            .uri("spiffe://example/caller");
        let spec = match leaf {
            Leaf::OtherPurpose => spec.server(),
            _ => spec.client(),
        };
        dated(spec, leaf).issue()
    }

    /// A server's certificate.
    pub(crate) fn server(&self, leaf: Leaf) -> Credential {
        let name = match leaf {
            Leaf::OtherName => "other.example",
            _ => SERVER,
        };
        let spec = self.signer(leaf).leaf("server").dns(name);
        let spec = match leaf {
            Leaf::OtherPurpose => spec.client(),
            _ => spec.server(),
        };
        dated(spec, leaf).issue()
    }

    /// The lists of both CAs, that of the one which signs leaves first.
    pub(crate) fn revocation_lists(&self) -> String {
        let of_leaves = self.pki.issuing.revocation_list(1).revoke(REVOKED);
        of_leaves.pem() + &self.pki.root.revocation_list(1).pem()
    }

    /// Writes the files of one side of one case.
    pub(crate) fn folder(&self, name: &str, credential: &Credential) -> PathBuf {
        let path = self.dir.path().join(name.replace(' ', "-"));
        credential.write_dir(&path, &[&self.pki.root]);
        put(&path.join("crl.pem"), self.revocation_lists());
        path
    }

    fn signer(&self, leaf: Leaf) -> &Pki {
        match leaf {
            Leaf::Stranger => &self.stranger,
            _ => &self.pki,
        }
    }
}

fn dated(spec: LeafSpec<'_>, leaf: Leaf) -> LeafSpec<'_> {
    match leaf {
        Leaf::Expired => spec.expired(),
        Leaf::NotYetValid => spec.not_yet_valid(),
        Leaf::Revoked => spec.serial(REVOKED),
        _ => spec,
    }
}
