//! `vidimus completion` and `vidimus man`: what clap makes from the arguments.

use std::{io, path::PathBuf};

use anyhow::Context as _;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use vidimus_fs::durable::{self, Mode};

use crate::{cli::Cli, output};

/// Arguments of `vidimus completion`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  vidimus completion bash > /etc/bash_completion.d/vidimus")]
pub(crate) struct CompletionArgs {
    /// The shell that is to complete.
    shell: Shell,
}

impl CompletionArgs {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "vidimus", &mut script);
        output::bytes(&script)
    }
}

/// Arguments of `vidimus man`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  vidimus man ./man && man ./man/vidimus.1")]
pub(crate) struct ManArgs {
    /// The folder for the pages; made if it isn't there.
    folder: PathBuf,
}

impl ManArgs {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        std::fs::create_dir_all(&self.folder)
            .with_context(|| format!("make the folder {}", self.folder.display()))?;
        let mut root = Cli::command();
        root.build();
        self.write(&root, "vidimus")
    }

    fn write(&self, command: &clap::Command, name: &str) -> anyhow::Result<()> {
        let mut page = Vec::new();
        render(command, name, &mut page).with_context(|| format!("make the page of {name}"))?;
        durable::write(self.folder.join(format!("{name}.1")), &page, Mode::Public)?;
        for child in command
            .get_subcommands()
            .filter(|child| child.get_name() != "help")
        {
            self.write(child, &format!("{name}-{}", child.get_name()))?;
        }
        Ok(())
    }
}

fn render(command: &clap::Command, name: &str, page: &mut Vec<u8>) -> io::Result<()> {
    clap_mangen::Man::new(command.clone())
        .title(name)
        .render(page)
}
