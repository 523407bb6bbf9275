//! All machines, and the effects that are still to come. Without I/O and without a clock: callers
//! say what time it is.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;
use vidimus_proto::provider::v1 as pb;

use super::{
    Limits, MemoryConfig, MemoryError,
    effect::{After, Effect, busy, kept},
    machine::{Disk, Hardware, Machine, Numbers, PowerState, Snapshot, State},
    spec::{Wish, check_name},
    tasks::{TaskId, TaskLog},
};

/// The machines of one provider.
#[derive(Debug)]
pub(super) struct Hypervisor {
    limits: Limits,
    task_time: Duration,
    numbers: Numbers,
    machines: BTreeMap<String, Machine>,
    ids: BTreeMap<String, String>,
    images: BTreeMap<String, String>,
    tasks: TaskLog,
    /// In the order in which they happen.
    due: BTreeMap<(Instant, TaskId), (String, Effect)>,
}

/// A new machine, checked.
#[derive(Debug)]
pub(super) struct NewMachine {
    pub(super) name: String,
    pub(super) image: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) wish: Wish,
}

type Work<T> = Result<(T, Option<TaskId>), MemoryError>;

impl Hypervisor {
    pub(super) fn new(config: MemoryConfig) -> Self {
        Self {
            limits: config.limits,
            task_time: config.task_time,
            numbers: Numbers::default(),
            machines: BTreeMap::new(),
            ids: BTreeMap::new(),
            images: BTreeMap::new(),
            tasks: TaskLog::default(),
            due: BTreeMap::new(),
        }
    }

    pub(super) const fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn machine_count(&self) -> usize {
        self.machines.len()
    }

    /// Lets everything happen that is due.
    pub(super) fn advance(&mut self, now: Instant) {
        while let Some(next) = self.due.first_entry()
            && next.key().0 <= now
        {
            let ((_, task), (id, effect)) = next.remove_entry();
            let result = self.apply(&id, effect);
            self.tasks.end(task, result, &self.limits);
        }
    }

    /// Creates a machine, or answers with the one that has the name.
    pub(super) fn create(&mut self, new: NewMachine, now: Instant) -> Work<String> {
        if let Some(machine) = self.by_name(&new.name) {
            if machine.deletion.is_some() {
                return Err(busy(machine, "it is being deleted"));
            }
            return Ok((machine.id.clone(), machine.creation));
        }
        let hardware = Hardware::new(&new.wish, &mut self.numbers);
        self.insert(new.name, new.image, None, new.tags, hardware, now)
    }

    /// Copies a machine, or answers with its copy that has the name.
    pub(super) fn clone_machine(
        &mut self,
        source: &str,
        name: String,
        wish: &Wish,
        now: Instant,
    ) -> Work<String> {
        let original = self.machine(source)?;
        if let Some(machine) = self.by_name(&name) {
            return match &machine.cloned_from {
                Some(from) if from == source && machine.deletion.is_none() => {
                    Ok((machine.id.clone(), machine.creation))
                }
                _ => Err(MemoryError::AlreadyExists {
                    name,
                    id: machine.id.clone(),
                    source_id: source.to_owned(),
                }),
            };
        }
        original
            .state
            .hardware
            .check("class_json", wish, &self.limits)?;
        let (original, image) = (original.state.hardware.clone(), original.image.clone());
        let mut hardware = original.copy(&mut self.numbers);
        hardware.apply(wish, &mut self.numbers);
        self.insert(
            name,
            image,
            Some(source.to_owned()),
            Vec::new(),
            hardware,
            now,
        )
    }

    /// Deletes a machine; one that isn't there is deleted already.
    pub(super) fn delete(&mut self, id: &str, now: Instant) -> Result<Option<TaskId>, MemoryError> {
        match self.machines.get(id) {
            None => return Ok(None),
            Some(machine) if machine.deletion.is_some() => return Ok(machine.deletion),
            Some(_) => {}
        }
        let task = self.schedule(id, Effect::Delete, now)?;
        if let Some(machine) = self.machines.get_mut(id) {
            machine.deletion = task;
        }
        Ok(task)
    }

    /// Starts work on a machine that is there.
    pub(super) fn change(
        &mut self,
        id: &str,
        effect: Effect,
        now: Instant,
    ) -> Result<Option<TaskId>, MemoryError> {
        let machine = self.machine(id)?;
        if machine.deletion.is_some() {
            return Err(busy(machine, "it is being deleted"));
        }
        if machine.busy_until <= now {
            // said at once rather than by a task; behind other work the task says it
            effect.check(machine, &self.limits)?;
        }
        self.schedule(id, effect, now)
    }

    /// Takes a snapshot.
    pub(super) fn snapshot(
        &mut self,
        id: &str,
        name: String,
        description: String,
        with_memory: bool,
        now: Instant,
    ) -> Work<String> {
        let limit = self.limits.snapshots;
        let machine = self.machine(id)?;
        if machine.snapshots.len() >= limit {
            return Err(MemoryError::Exhausted {
                what: "snapshots",
                limit,
            });
        }
        let number = self.numbers.next();
        let snapshot_id = format!("snapshot-{number}");
        let name = if name.is_empty() {
            snapshot_id.clone()
        } else {
            name
        };
        check_name("name_hint", &name)?;
        let snapshot = Snapshot {
            name,
            description,
            with_memory,
            state: None,
        };
        if let Some(machine) = self.machines.get_mut(id) {
            machine.snapshots.insert(snapshot_id.clone(), snapshot);
        }
        match self.change(id, Effect::Snapshot(snapshot_id.clone()), now) {
            Ok(task) => Ok((snapshot_id, task)),
            Err(error) => {
                if let Some(machine) = self.machines.get_mut(id) {
                    machine.snapshots.remove(&snapshot_id);
                }
                Err(error)
            }
        }
    }

    /// Notes an image under a name of its own; the same image again is the same one.
    pub(super) fn prepare_image(
        &mut self,
        name: String,
        source: String,
    ) -> Result<(String, String), MemoryError> {
        let limit = self.limits.images;
        if !self.images.contains_key(&name) && self.images.len() >= limit {
            return Err(MemoryError::Exhausted {
                what: "images",
                limit,
            });
        }
        let path = format!("memory:///images/{name}");
        self.images.insert(name.clone(), source);
        Ok((name, path))
    }

    pub(super) fn machine(&self, id: &str) -> Result<&Machine, MemoryError> {
        self.machines.get(id).ok_or_else(|| MemoryError::Missing {
            kind: "virtual machine",
            id: id.to_owned(),
        })
    }

    pub(super) fn describe(&self, id: &str) -> pb::DescribeResponse {
        self.machines
            .get(id)
            .map_or_else(pb::DescribeResponse::default, Machine::describe)
    }

    pub(super) fn list(&self) -> Vec<pb::VmInfo> {
        self.machines.values().map(Machine::info).collect()
    }

    /// A disk as it is now, or as a snapshot keeps it.
    pub(super) fn disk(
        &self,
        id: &str,
        disk: &str,
        snapshot: &str,
    ) -> Result<(&Machine, &Disk), MemoryError> {
        let machine = self.machine(id)?;
        let hardware = if snapshot.is_empty() {
            &machine.state.hardware
        } else {
            &kept(machine, snapshot)?.hardware
        };
        let disk = hardware
            .find_disk(disk)
            .ok_or_else(|| MemoryError::Missing {
                kind: "disk",
                id: disk.to_owned(),
            })?;
        Ok((machine, disk))
    }

    /// How far a task is.
    pub(super) fn task(&self, id: &str) -> Result<pb::TaskStatusResponse, MemoryError> {
        let found = TaskId::parse(id).and_then(|task| self.tasks.find(task));
        match found {
            None => Err(MemoryError::Missing {
                kind: "task",
                id: id.to_owned(),
            }),
            Some(None) => Ok(pb::TaskStatusResponse::default()),
            Some(Some(Ok(()))) => Ok(pb::TaskStatusResponse {
                done: true,
                error: String::new(),
            }),
            Some(Some(Err(error))) => Ok(pb::TaskStatusResponse {
                done: true,
                error: error.to_string(),
            }),
        }
    }

    fn by_name(&self, name: &str) -> Option<&Machine> {
        self.ids.get(name).and_then(|id| self.machines.get(id))
    }

    fn insert(
        &mut self,
        name: String,
        image: Option<String>,
        cloned_from: Option<String>,
        tags: Vec<String>,
        hardware: Hardware,
        now: Instant,
    ) -> Work<String> {
        if self.machines.len() >= self.limits.machines {
            let limit = self.limits.machines;
            return Err(MemoryError::Exhausted {
                what: "virtual machines",
                limit,
            });
        }
        let id = format!("vm-{}", self.numbers.next());
        let machine = Machine {
            id: id.clone(),
            name: name.clone(),
            image,
            cloned_from,
            tags,
            state: State {
                power: PowerState::Off,
                boots: 0,
                hardware,
            },
            snapshots: BTreeMap::new(),
            busy_until: now,
            creation: None,
            deletion: None,
        };
        self.machines.insert(id.clone(), machine);
        match self.schedule(&id, Effect::Create, now) {
            Ok(task) => {
                self.ids.insert(name, id.clone());
                if let Some(machine) = self.machines.get_mut(&id) {
                    machine.creation = task;
                }
                Ok((id, task))
            }
            Err(error) => {
                self.machines.remove(&id);
                Err(error)
            }
        }
    }

    /// Puts work behind whatever the machine does already; without a task time it happens here.
    fn schedule(
        &mut self,
        id: &str,
        effect: Effect,
        now: Instant,
    ) -> Result<Option<TaskId>, MemoryError> {
        if self.task_time.is_zero() {
            return self.apply(id, effect).map(|()| None);
        }
        let task = self.tasks.begin(&self.limits)?;
        let done = self
            .machines
            .get(id)
            .map_or(now, |machine| machine.busy_until.max(now))
            + self.task_time;
        if let Some(machine) = self.machines.get_mut(id) {
            machine.busy_until = done;
        }
        self.due.insert((done, task), (id.to_owned(), effect));
        Ok(Some(task))
    }

    fn apply(&mut self, id: &str, effect: Effect) -> Result<(), MemoryError> {
        let Some(machine) = self.machines.get_mut(id) else {
            return Err(MemoryError::Missing {
                kind: "virtual machine",
                id: id.to_owned(),
            });
        };
        let after = effect.perform(machine, &mut self.numbers, &self.limits)?;
        if let After::Gone = after
            && let Some(machine) = self.machines.remove(id)
        {
            self.ids.remove(&machine.name);
        }
        Ok(())
    }
}
