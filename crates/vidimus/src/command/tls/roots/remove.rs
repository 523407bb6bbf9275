//! `vidimus tls roots remove`: the last phase of a rotation, which is where outages come from.

use std::path::PathBuf;

use clap::Args;
use vidimus_tls::{check, material::Root};

use super::{bundle::Bundle, now, take_turn, wait_until_in_use};
use crate::{
    command::tls::page::{self, Page},
    exit::Stop,
    output,
};

/// Peers that are named in the refusal.
const NAMED: usize = 20;

/// Arguments of `vidimus tls roots remove`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    vidimus tls roots remove ./tls 5a1f0c27 --socket ./admin.sock\n\n\
    Refused while a connected peer's certificate leads to no other root in the file, or the folder's own certificate \
    does not. Peers that are not connected at the moment can't be seen: let the longest pause between two of their \
    connections pass first. Once the root is gone, programs that follow the folder end the connections of whoever still \
    needs it within five seconds.\n\n\
    Exit code 0: removed; 1: refused, or the folder can't be changed; 3: a program did not answer.")]
pub(crate) struct RemoveArgs {
    /// The folder with `ca.crt`.
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// SHA-256 of the root or its beginning, or its whole subject, as `vidimus tls roots list` shows them.
    #[arg(value_name = "ROOT")]
    root: String,

    /// Admin socket of a program that uses the folder; give every one of them.
    #[arg(long, value_name = "PATH", required_unless_present = "force")]
    socket: Vec<PathBuf>,

    /// Removes it whoever needs it, as when its key was stolen.
    #[arg(long)]
    force: bool,
}

impl RemoveArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let bundle = Bundle::read(&self.folder)?;
        bundle.require_own_files()?;
        let root = bundle.find(&self.root)?;
        let print = root.fingerprint();
        if bundle.trust.roots().len() == 1 {
            return Err(Stop::failure(format!(
                "{:?} is the last root in {}: without it nobody could connect; add the next one first",
                root.subject(),
                bundle.files.ca.display()
            )));
        }
        let mut objections = self.peers_that_need(root).await?;
        // A program may take long to answer, so others may change the folder until here.
        let turn = take_turn(&self.folder).await?;
        if !Bundle::read(&self.folder)?.is_as(&bundle) {
            return Err(Stop::failure(format!(
                "{} was changed while the programs were asked who needs the root; nothing is removed: try again",
                bundle.files.ca.display()
            )));
        }
        objections.extend(own_objection(&bundle, root));
        for objection in &objections {
            output::note(objection);
        }
        if !objections.is_empty() && !self.force {
            return Err(Stop::failure(format!(
                "{:?} is still needed and stays; --force removes it all the same",
                root.subject()
            )));
        }
        bundle.write_without(&turn, print)?;
        drop(turn);
        let ca = bundle.files.ca.display();
        output::note(&format!("removed from {ca}: {print} ({})", root.subject()));
        wait_until_in_use(&self.socket, print, false).await;
        Ok(())
    }

    /// Which connected peers still need the root.
    async fn peers_that_need(&self, root: &Root) -> anyhow::Result<Vec<String>> {
        let mut objections = Vec::new();
        for socket in &self.socket {
            match page::ask(socket, Some(root.fingerprint())).await {
                Ok(page) => objections.extend(peers(&page, socket, root)),
                Err(error) if self.force => output::note(&format!("{error:#}")),
                Err(error) => return Err(error),
            }
        }
        Ok(objections)
    }
}

/// That the folder's own certificate, as it is now, needs the root.
fn own_objection(bundle: &Bundle, root: &Root) -> Option<String> {
    let rest = bundle.trust.without(root.fingerprint());
    let own = |trust| check::own_root(&bundle.files, trust, now());
    (own(&bundle.trust).is_some() && own(&rest).is_none()).then(|| {
        format!(
            "the certificate in {} leads to this root and to no other one: issue it anew first",
            bundle.files.certificate.display()
        )
    })
}

/// The peers of one program that need the root.
fn peers(page: &Page, socket: &std::path::Path, root: &Root) -> Vec<String> {
    let socket = socket.display();
    let Some(without) = &page.without else {
        return vec![format!(
            "{socket}: the program did not say who needs the root"
        )];
    };
    if !without.known {
        // It was asked about another bundle, and its answer is worth nothing.
        return vec![format!(
            "{socket}: the program does not use {:?}: it follows other files, or has not taken these into use",
            root.subject()
        )];
    }
    let needing = page
        .connections
        .iter()
        .filter(|connection| without.needed_by.contains(&connection.id));
    let line = |connection: &page::Connection| {
        format!(
            "{socket}: needed by {} at {}, connected since {}, certificate until {}",
            connection.label(),
            connection.remote,
            connection.since,
            connection.not_after.as_deref().unwrap_or("-"),
        )
    };
    let mut lines: Vec<String> = needing.take(NAMED).map(line).collect();
    let more = without.needed_by.len().saturating_sub(NAMED);
    if more > 0 {
        lines.push(format!("{socket}: needed by {more} more"));
    }
    lines
}
