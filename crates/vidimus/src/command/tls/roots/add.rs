//! `vidimus tls roots add`: the first phase of a rotation.

use std::path::PathBuf;

use clap::Args;
use vidimus_tls::identity::Fingerprint;

use super::{bundle, bundle::Bundle, take_turn, wait_until_in_use};
use crate::{exit::Stop, output};

/// Arguments of `vidimus tls roots add`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    vidimus tls roots add ./tls --root new-root.pem --socket ./admin.sock\n\n\
    Programs that follow the folder take the root into use within a second; no call notices. Add it on every side \
    before anything is issued under it. Where revocation lists are checked, the lists of the CAs that will issue under it \
    have to be in `crl.pem` by then, or the certificates that they issue are refused.\n\n\
    Exit code 0: added; 1: the root is there already, is none, or the folder can't be changed.")]
pub(crate) struct AddArgs {
    /// The folder with `ca.crt`.
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// The new root, PEM.
    #[arg(long, value_name = "FILE")]
    root: PathBuf,

    /// Admin socket of a program that follows the folder, to wait until it has the root in use; may be given several times.
    #[arg(long, value_name = "PATH")]
    socket: Vec<PathBuf>,
}

impl AddArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let turn = take_turn(&self.folder).await?;
        let bundle = Bundle::read(&self.folder)?;
        bundle.require_own_files()?;
        let new = bundle::new_roots(&self.root)?;
        let prints: Vec<Fingerprint> = new.iter().map(|der| Fingerprint::of(der)).collect();
        for print in &prints {
            if let Some(root) = bundle.trust.find(*print) {
                return Err(Stop::failure(format!(
                    "{} has {:?} with SHA-256 {print} already",
                    bundle.files.ca.display(),
                    root.subject()
                )));
            }
        }
        bundle.write_with(&turn, &new)?;
        drop(turn);
        let ca = bundle.files.ca.display();
        for print in &prints {
            output::note(&format!("added to {ca}: {print}"));
            wait_until_in_use(&self.socket, *print, true).await;
        }
        bundle.note_lists();
        Ok(())
    }
}
