//! Ends a running call that is no longer permitted, by a new policy or because its peer is trusted by another path now,
//! while its connection goes on.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Request;
use http::uri::PathAndQuery;
use pin_project_lite::pin_project;
use tokio::sync::futures::OwnedNotified;

use super::Inner;
use super::registry::Entry;
use super::verdict::{Basis, Verdict, report};
use crate::policy::PolicyRefusal;

pin_project! {
    /// What a running call is held by.
    #[derive(Debug)]
    pub(super) struct Leash {
        #[pin]
        changed: OwnedNotified,
        server: Arc<Inner>,
        entry: Arc<Entry>,
        path: Option<PathAndQuery>,
        basis: Basis,
    }
}

impl Leash {
    /// For a call that this verdict permits; `None` if no verdict will ever permit the peer less.
    pub(super) fn new<B>(
        server: &Arc<Inner>,
        entry: &Arc<Entry>,
        request: &Request<B>,
        verdict: &Verdict,
    ) -> Option<Self> {
        let may_end = server.policy.may_change() || verdict.has_rules();
        may_end.then(|| Self {
            changed: Arc::clone(&entry.recheck).notified_owned(),
            server: Arc::clone(server),
            entry: Arc::clone(entry),
            path: request.uri().path_and_query().cloned(),
            basis: verdict.basis(),
        })
    }

    /// For the next part of the same call.
    pub(super) fn renewed(&self) -> Self {
        Self {
            changed: Arc::clone(&self.entry.recheck).notified_owned(),
            server: Arc::clone(&self.server),
            entry: Arc::clone(&self.entry),
            path: self.path.clone(),
            basis: self.basis,
        }
    }

    /// Why the call may not go on, if there is a new verdict that says so. Two atomic loads if there isn't.
    pub(super) fn refusal(self: Pin<&mut Self>) -> Option<PolicyRefusal> {
        let this = self.project();
        if this.entry.basis(this.server) == *this.basis {
            return None;
        }
        let verdict = this.entry.verdict(this.server);
        *this.basis = verdict.basis();
        let path = this.path.as_ref().map_or("", PathAndQuery::path);
        match verdict.permit(path) {
            // A peer that may not call at all loses its connection, with the time that takes.
            Err(refusal @ PolicyRefusal::MethodNotAllowed) if verdict.enforces(refusal) => {
                this.server.counters.ended_by_policy.add();
                report(this.server, this.entry, refusal, path);
                Some(refusal)
            }
            Ok(()) | Err(_) => None,
        }
    }

    /// Waits for a verdict that ends the call. To be asked whenever the call itself has to wait.
    pub(super) fn poll_refusal(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<PolicyRefusal> {
        loop {
            let mut changed = self.as_mut().project().changed;
            if changed.as_mut().poll(context).is_pending() {
                // What changed between the last look and the registration is seen here.
                return match self.refusal() {
                    Some(refusal) => Poll::Ready(refusal),
                    None => Poll::Pending,
                };
            }
            let next = Arc::clone(&self.as_mut().project().entry.recheck);
            self.as_mut().project().changed.set(next.notified_owned());
        }
    }
}
