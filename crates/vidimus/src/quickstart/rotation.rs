//! The rotations, each in phases that wait for both ends before the next begins.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use vidimus_provider::manager::{Manager, ManagerDriver};

use super::{
    authority::Root,
    child::Program,
    issuer::IssuingNode,
    layout::{Layout, Side},
    leaf::Leaf,
    load::{Counts, Load},
    sides::{End, Sides},
};

/// How long a phase may take: the provider polls its files every few seconds at worst.
const PHASE_DEADLINE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How long calls in flight may take at the end.
const CLOSE_GRACE: Duration = Duration::from_secs(5);
/// Calls that must succeed after the last phase.
const CALLS_AFTER: u64 = 50;

/// The running channel with everything that a rotation touches.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) layout: Layout,
    pub(crate) node: IssuingNode,
    pub(crate) provider: Program,
    pub(crate) manager: Manager,
    pub(crate) load: Load,
    pub(crate) root: Root,
    provider_leaf: Leaf,
    manager_leaf: Leaf,
    generations: BTreeSet<(&'static str, u64)>,
    upkeep: JoinSet<()>,
    end_upkeep: CancellationToken,
}

impl Stage {
    pub(crate) fn new(
        layout: Layout,
        node: IssuingNode,
        provider: Program,
        manager: Manager,
        root: Root,
        driver: ManagerDriver,
        leaves: (Leaf, Leaf),
    ) -> Self {
        let load = Load::start(&manager);
        let (provider_leaf, manager_leaf) = leaves;
        let end_upkeep = CancellationToken::new();
        let mut upkeep = JoinSet::new();
        upkeep.spawn(driver.run(end_upkeep.clone()));
        Self {
            layout,
            node,
            provider,
            manager,
            load,
            root,
            provider_leaf,
            manager_leaf,
            generations: BTreeSet::new(),
            upkeep,
            end_upkeep,
        }
    }

    /// Ends the calls first, then the programs, each in good order; answers what was counted.
    pub(crate) async fn stop(mut self) -> anyhow::Result<Arc<Counts>> {
        let counts = self.load.stop().await;
        self.manager.close(CLOSE_GRACE).await;
        self.end_upkeep.cancel();
        while self.upkeep.join_next().await.is_some() {}
        let provider = self.provider.stop().await;
        let node = self.node.program.stop().await;
        provider.and(node)?;
        Ok(counts)
    }

    /// How many generations new connections were served with, both ends together.
    pub(crate) fn generations_served(&self) -> u64 {
        self.generations.len().try_into().unwrap_or(u64::MAX)
    }

    /// Waits until calls have been answered.
    pub(crate) async fn calls_flow(&mut self) -> anyhow::Result<()> {
        let before = Counts::read(&self.load.counts.calls);
        let deadline = Instant::now() + PHASE_DEADLINE;
        while Counts::read(&self.load.counts.calls) < before.saturating_add(CALLS_AFTER) {
            if Instant::now() > deadline {
                bail!(
                    "no calls were answered: {}",
                    self.load.counts.last_failure().unwrap_or_default()
                );
            }
            sleep(LOOK_AGAIN).await;
        }
        self.wait("the channel is up", |sides| {
            !sides.provider.connections.is_empty() && !sides.manager.connections.is_empty()
        })
        .await
    }

    /// A new certificate for one end, under the same CA.
    pub(crate) async fn rotate_leaf(&mut self, side: Side) -> anyhow::Result<()> {
        let leaf = Leaf::for_side(&self.node.client, side).await?;
        let ca = self.root.certificate_pem.clone();
        self.replace_leaf(side, leaf, &ca).await
    }

    /// A new root and a new issuing CA: first both are trusted, then everything is issued anew, and only when no
    /// connection rests on the old root does it go.
    pub(crate) async fn rotate_ca(&mut self, mut step: impl FnMut(&str)) -> anyhow::Result<()> {
        let newest = self
            .layout
            .roots()?
            .last()
            .copied()
            .unwrap_or(self.root.number);
        let new = Root::make(&self.layout, newest.saturating_add(1)).await?;
        let (old_mark, new_mark) = (self.root.fingerprint(), new.fingerprint());

        step("both roots are trusted");
        let both = format!("{}{}", self.root.certificate_pem, new.certificate_pem);
        self.publish(&both)?;
        let marks = BTreeSet::from([old_mark.clone(), new_mark.clone()]);
        self.wait("both ends trust both roots", |sides| {
            both_ends(sides, |end| end.roots == marks)
        })
        .await?;

        step("the issuing CA has a certificate of the new root");
        self.node.rotate_to(&new).await?;

        for side in Side::BOTH {
            step(&format!(
                "the {} has a certificate of the new CA",
                side.folder()
            ));
            let leaf = Leaf::for_side(&self.node.client, side).await?;
            self.replace_leaf(side, leaf, &both).await?;
        }

        step("no connection rests on the old root");
        self.wait("every connection rests on the new root", |sides| {
            both_ends(sides, |end| end.all_under(&new_mark))
        })
        .await?;

        step("the old root is gone");
        self.publish(&new.certificate_pem.clone())?;
        let only_new = BTreeSet::from([new_mark]);
        self.wait("both ends trust the new root alone", |sides| {
            both_ends(sides, |end| end.roots == only_new)
        })
        .await?;
        self.root = new;

        // A handshake with what is trusted now proves that nothing rested on the old root.
        self.connect_anew().await?;
        self.calls_flow().await
    }

    async fn replace_leaf(&mut self, side: Side, leaf: Leaf, ca_pem: &str) -> anyhow::Result<()> {
        leaf.publish(&self.layout, side, ca_pem)?;
        let mark = leaf.fingerprint.clone();
        match side {
            Side::Manager => self.manager_leaf = leaf,
            Side::Provider => self.provider_leaf = leaf,
        }
        self.wait("the new certificate is in use", |sides| {
            end(sides, side).fingerprint == mark
        })
        .await?;
        self.connect_anew().await?;
        self.wait("every connection is to the new certificate", |sides| {
            other_end(sides, side).all_to(&mark)
        })
        .await
    }

    /// Moves calls and streams to a new connection; the old one ends by itself when nothing uses it.
    async fn connect_anew(&self) -> anyhow::Result<()> {
        self.manager.reconnect().await.context("connect anew")?;
        self.load.reopen_streams();
        Ok(())
    }

    fn publish(&self, ca_pem: &str) -> anyhow::Result<()> {
        self.provider_leaf
            .publish(&self.layout, Side::Provider, ca_pem)?;
        self.manager_leaf
            .publish(&self.layout, Side::Manager, ca_pem)
    }

    async fn wait(&mut self, what: &str, reached: impl Fn(&Sides) -> bool) -> anyhow::Result<()> {
        let deadline = Instant::now() + PHASE_DEADLINE;
        loop {
            let sides = Sides::look(&self.provider, &self.manager).await?;
            self.note_generations(&sides);
            if reached(&sides) {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!(
                    "waited {} s until {what}; the ends say: {sides:?}",
                    PHASE_DEADLINE.as_secs()
                );
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    fn note_generations(&mut self, sides: &Sides) {
        for (name, end) in [("provider", &sides.provider), ("manager", &sides.manager)] {
            self.generations.extend(
                end.connections
                    .iter()
                    .map(|connection| (name, connection.generation)),
            );
        }
    }
}

fn both_ends(sides: &Sides, fits: impl Fn(&End) -> bool) -> bool {
    fits(&sides.provider) && fits(&sides.manager)
}

fn end(sides: &Sides, side: Side) -> &End {
    match side {
        Side::Manager => &sides.manager,
        Side::Provider => &sides.provider,
    }
}

/// The end that sees this side as its peer.
fn other_end(sides: &Sides, side: Side) -> &End {
    match side {
        Side::Manager => &sides.provider,
        Side::Provider => &sides.manager,
    }
}
