//! Who calls, and whether they may.

use prost::Message;
use tonic::{Extensions, Request, Status};
use vidimus_audit::entry::{Draft, Outcome};
use vidimus_tls::{
    identity::{CertificateIdentity, PeerIdentity},
    server::LocalPeers,
};

use super::Rpc;
use crate::call::Call;

/// In the extensions of a call that an offline command makes in this process; nothing from outside can put it there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InProcess;

/// Somebody who may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    /// The holder of the pinned certificate.
    Administrator {
        /// The certificate's subject.
        subject: String,
    },
    /// The owner of the process, on this machine.
    Local,
}

/// Why a call is not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Nobody in particular.
    Unauthenticated,
    /// Somebody else.
    Stranger {
        /// Who, for the audit log.
        label: String,
    },
}

impl Refused {
    /// The caller learns nothing about who would be let in.
    pub(crate) fn to_status(&self) -> Status {
        match self {
            Self::Unauthenticated => Status::unauthenticated("a client certificate is required"),
            Self::Stranger { .. } => Status::permission_denied("not allowed"),
        }
    }

    fn label(&self) -> &str {
        match self {
            Self::Unauthenticated => "",
            Self::Stranger { label } => label,
        }
    }
}

impl Rpc {
    /// Admits an audited call, or writes down that it was refused.
    pub(super) async fn admit<M: Message>(
        &self,
        method: &'static str,
        request: &Request<M>,
    ) -> Result<Call, Status> {
        let encoded = request.get_ref().encode_to_vec();
        let caller = match self.caller(request.extensions()) {
            Ok(caller) => caller,
            Err(refused) => {
                tracing::warn!(method, peer = refused.label(), "call refused");
                let draft = Draft::new(refused.label(), method, Outcome::Denied);
                let recorded = self
                    .node
                    .store()
                    .append_audit(draft.with_request(&encoded))
                    .await;
                return Err(match recorded {
                    Ok(_) => refused.to_status(),
                    Err(source) => super::RpcError::from(source).into_status(),
                });
            }
        };
        let mut call = Call::local(method);
        call.request_digest_sha256 = Some(sha256(&encoded));
        if let Caller::Administrator { subject } = caller {
            call.actor_subject = subject;
            call.requester = "admin";
        }
        Ok(call)
    }

    /// Admits a call that has no audit entry.
    pub(super) fn admit_unaudited<M>(&self, request: &Request<M>) -> Result<Caller, Status> {
        self.caller(request.extensions())
            .map_err(|refused| refused.to_status())
    }

    fn caller(&self, extensions: &Extensions) -> Result<Caller, Refused> {
        if extensions.get::<InProcess>().is_some() {
            return Ok(Caller::Local);
        }
        match extensions.get::<PeerIdentity>() {
            Some(PeerIdentity::Certificate(certificate)) => self.administrator(certificate),
            Some(peer @ PeerIdentity::Unix(unix)) => {
                if LocalPeers::owner().admit(unix) {
                    Ok(Caller::Local)
                } else {
                    Err(Refused::Stranger {
                        label: peer.label(),
                    })
                }
            }
            Some(_) | None => Err(Refused::Unauthenticated),
        }
    }

    /// The verifier of the listener has checked the same before; a method must not depend on which listener it is behind.
    /// The dates are checked per call, since a connection may outlive its certificate.
    fn administrator(&self, certificate: &CertificateIdentity) -> Result<Caller, Refused> {
        let now = self.node.service().now();
        let pinned = certificate.fingerprint().as_bytes() == self.node.admin().as_bytes();
        if pinned && certificate.not_before() <= now && now <= certificate.not_after() {
            Ok(Caller::Administrator {
                subject: certificate.subject().to_owned(),
            })
        } else {
            Err(Refused::Stranger {
                label: certificate.subject().to_owned(),
            })
        }
    }
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    *vidimus_tls::identity::Fingerprint::of(bytes).as_bytes()
}
