//! One virtual machine.

use std::collections::BTreeMap;

use serde_json::json;
use tokio::time::Instant;
use vidimus_proto::provider::v1 as pb;

use super::{
    Limits, MemoryError,
    spec::{DiskWish, NetworkWish, Wish, invalid},
    tasks::TaskId,
};

const GIB: i64 = 1 << 30;
const DEFAULT_DISK_GIB: i32 = 10;
const FIRST_HARDWARE_VERSION: i32 = 1;
const ROOT_DISK: &str = "root";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PowerState {
    #[default]
    Off,
    On,
}

/// What a snapshot keeps and a revert brings back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) power: PowerState,
    pub(super) boots: u64,
    pub(super) hardware: Hardware,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hardware {
    pub(super) version: i32,
    pub(super) cpu: i32,
    pub(super) memory_mib: i64,
    pub(super) firmware: String,
    pub(super) disks: Vec<Disk>,
    pub(super) networks: Vec<Network>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Disk {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) size_gib: i32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Network {
    pub(super) name: String,
    pub(super) mac: String,
    pub(super) ip: String,
}

#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) with_memory: bool,
    /// `None` until its task is done.
    pub(super) state: Option<State>,
}

#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) image: Option<String>,
    pub(super) cloned_from: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) state: State,
    pub(super) snapshots: BTreeMap<String, Snapshot>,
    /// When the last of its tasks ends: a machine does one thing at a time.
    pub(super) busy_until: Instant,
    /// Its creation, as long as that runs.
    pub(super) creation: Option<TaskId>,
    /// Its deletion, once that was asked for.
    pub(super) deletion: Option<TaskId>,
}

/// Gives out numbers that no machine, disk or interface had before.
#[derive(Debug, Default)]
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) const fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

impl PowerState {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Off => "Off",
            Self::On => "On",
        }
    }
}

impl Hardware {
    /// A new machine's hardware: what the wish says, else one CPU, 1 GiB and a root disk of 10 GiB.
    pub(super) fn new(wish: &Wish, numbers: &mut Numbers) -> Self {
        let mut hardware = Self {
            version: FIRST_HARDWARE_VERSION,
            cpu: 1,
            memory_mib: 1_024,
            firmware: "BIOS".to_owned(),
            disks: vec![Disk::new(ROOT_DISK, DEFAULT_DISK_GIB, numbers)],
            networks: Vec::new(),
        };
        hardware.apply(wish, numbers);
        hardware
    }

    /// Checks a wish against what is there: disks grow but never shrink, and have a bound.
    pub(super) fn check(
        &self,
        field: &str,
        wish: &Wish,
        limits: &Limits,
    ) -> Result<(), MemoryError> {
        for DiskWish { name, size_gib } in &wish.disks {
            if let Some(disk) = self.disks.iter().find(|disk| disk.name == *name)
                && disk.size_gib > *size_gib
            {
                let found = format!("{size_gib} GiB for disk {name:?}");
                let accepted = format!("{} GiB or more: disks cannot shrink", disk.size_gib);
                return Err(invalid(format!("{field}.Disks"), found, accepted));
            }
        }
        let added = wish
            .disks
            .iter()
            .filter(|wish| self.find_disk(&wish.name).is_none())
            .count();
        if self.disks.len() + added > limits.disks {
            return Err(MemoryError::Exhausted {
                what: "disks",
                limit: limits.disks,
            });
        }
        Ok(())
    }

    pub(super) fn apply(&mut self, wish: &Wish, numbers: &mut Numbers) {
        self.cpu = wish.cpu.unwrap_or(self.cpu);
        self.memory_mib = wish.memory_mib.unwrap_or(self.memory_mib);
        if let Some(firmware) = &wish.firmware {
            self.firmware.clone_from(firmware);
        }
        if let (Some(size), Some(root)) = (wish.root_disk_gib, self.disks.first_mut()) {
            root.size_gib = root.size_gib.max(size);
        }
        for DiskWish { name, size_gib } in &wish.disks {
            match self.disks.iter_mut().find(|disk| disk.name == *name) {
                Some(disk) => disk.size_gib = disk.size_gib.max(*size_gib),
                None => self.disks.push(Disk::new(name, *size_gib, numbers)),
            }
        }
        for wish in &wish.networks {
            match self
                .networks
                .iter_mut()
                .find(|network| network.name == wish.name)
            {
                Some(network) => network.apply(wish),
                None => self.networks.push(Network::new(wish, numbers)),
            }
        }
    }

    /// The same hardware with identities of its own, for a clone.
    pub(super) fn copy(&self, numbers: &mut Numbers) -> Self {
        let mut copy = self.clone();
        for disk in &mut copy.disks {
            *disk = Disk::new(&disk.name, disk.size_gib, numbers);
        }
        for network in &mut copy.networks {
            let wish = NetworkWish {
                name: network.name.clone(),
                mac: None,
                static_ip: None,
            };
            *network = Network::new(&wish, numbers);
        }
        copy
    }

    /// A disk by id or name; the first one if neither is given.
    pub(super) fn find_disk(&self, id: &str) -> Option<&Disk> {
        if id.is_empty() {
            return self.disks.first();
        }
        self.disks
            .iter()
            .find(|disk| disk.id == id || disk.name == id)
    }
}

impl Disk {
    fn new(name: &str, size_gib: i32, numbers: &mut Numbers) -> Self {
        Self {
            id: format!("disk-{}", numbers.next()),
            name: name.to_owned(),
            size_gib,
        }
    }

    pub(super) fn path(&self) -> String {
        format!("memory:///disks/{}", self.id)
    }

    pub(super) fn size_bytes(&self) -> i64 {
        i64::from(self.size_gib) * GIB
    }
}

impl Network {
    /// A locally administered address and one of 10/8, both from a number of its own.
    fn new(wish: &NetworkWish, numbers: &mut Numbers) -> Self {
        let [.., a, b, c] = numbers.next().to_be_bytes();
        let mut network = Self {
            name: wish.name.clone(),
            mac: format!("52:54:00:{a:02x}:{b:02x}:{c:02x}"),
            ip: format!("10.{a}.{b}.{c}"),
        };
        network.apply(wish);
        network
    }

    fn apply(&mut self, wish: &NetworkWish) {
        if let Some(mac) = &wish.mac {
            self.mac.clone_from(mac);
        }
        if let Some(ip) = &wish.static_ip {
            self.ip.clone_from(ip);
        }
    }
}

impl Machine {
    /// Its addresses; a machine that is off has none.
    pub(super) fn ips(&self) -> Vec<String> {
        match self.state.power {
            PowerState::Off => Vec::new(),
            PowerState::On => self
                .state
                .hardware
                .networks
                .iter()
                .map(|network| network.ip.clone())
                .collect(),
        }
    }

    /// What else there is to say, as texts: managers read it into a map of strings.
    pub(super) fn raw(&self) -> BTreeMap<String, String> {
        let hardware = &self.state.hardware;
        let mut raw = BTreeMap::from([
            ("name".to_owned(), self.name.clone()),
            ("cpu".to_owned(), hardware.cpu.to_string()),
            ("memory_mib".to_owned(), hardware.memory_mib.to_string()),
            ("firmware".to_owned(), hardware.firmware.clone()),
            ("hardware_version".to_owned(), hardware.version.to_string()),
            ("boots".to_owned(), self.state.boots.to_string()),
            ("disks".to_owned(), hardware.disks.len().to_string()),
            ("snapshots".to_owned(), self.snapshots.len().to_string()),
            ("tags".to_owned(), self.tags.join(",")),
        ]);
        if let Some(image) = &self.image {
            raw.insert("image".to_owned(), image.clone());
        }
        if let Some(source) = &self.cloned_from {
            raw.insert("cloned_from".to_owned(), source.clone());
        }
        raw
    }

    pub(super) fn describe(&self) -> pb::DescribeResponse {
        let mut raw = self.raw();
        for (id, snapshot) in &self.snapshots {
            raw.insert(format!("{id}.name"), snapshot.name.clone());
            raw.insert(format!("{id}.description"), snapshot.description.clone());
        }
        pb::DescribeResponse {
            exists: true,
            power_state: self.state.power.text().to_owned(),
            ips: self.ips(),
            console_url: String::new(),
            provider_raw_json: json!(raw).to_string(),
        }
    }

    pub(super) fn info(&self) -> pb::VmInfo {
        let hardware = &self.state.hardware;
        pb::VmInfo {
            id: self.id.clone(),
            name: self.name.clone(),
            power_state: self.state.power.text().to_owned(),
            ips: self.ips(),
            cpu: hardware.cpu,
            memory_mib: hardware.memory_mib,
            disks: hardware.disks.iter().map(disk_info).collect(),
            networks: hardware.networks.iter().map(network_info).collect(),
            provider_raw: self.raw().into_iter().collect(),
        }
    }
}

fn disk_info(disk: &Disk) -> pb::DiskInfo {
    pb::DiskInfo {
        id: disk.id.clone(),
        path: disk.path(),
        size_gib: disk.size_gib,
        format: "raw".to_owned(),
    }
}

fn network_info(network: &Network) -> pb::NetworkInfo {
    pb::NetworkInfo {
        name: network.name.clone(),
        mac: network.mac.clone(),
        ip_address: network.ip.clone(),
    }
}
