//! Ends a running call that a new policy no longer permits, while its connection goes on.

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
use super::verdict::report;
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
        generation: u64,
    }
}

impl Leash {
    /// For a call that the policy of this generation permits; `None` if no other policy will ever come.
    pub(super) fn new<B>(
        server: &Arc<Inner>,
        entry: &Arc<Entry>,
        request: &Request<B>,
        generation: u64,
    ) -> Option<Self> {
        server.policy.may_change().then(|| Self {
            changed: Arc::clone(&entry.policy_changed).notified_owned(),
            server: Arc::clone(server),
            entry: Arc::clone(entry),
            path: request.uri().path_and_query().cloned(),
            generation,
        })
    }

    /// For the next part of the same call.
    pub(super) fn renewed(&self) -> Self {
        Self {
            changed: Arc::clone(&self.entry.policy_changed).notified_owned(),
            server: Arc::clone(&self.server),
            entry: Arc::clone(&self.entry),
            path: self.path.clone(),
            generation: self.generation,
        }
    }

    /// Why the call may not go on, if there is a new policy that says so. One atomic load if there isn't.
    pub(super) fn refusal(self: Pin<&mut Self>) -> Option<PolicyRefusal> {
        let this = self.project();
        if this.server.policy.generation() == *this.generation {
            return None;
        }
        let verdict = this.entry.verdict(this.server);
        *this.generation = verdict.generation();
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

    /// Waits for a policy that ends the call. To be asked whenever the call itself has to wait.
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
            let next = Arc::clone(&self.as_mut().project().entry.policy_changed);
            self.as_mut().project().changed.set(next.notified_owned());
        }
    }
}
