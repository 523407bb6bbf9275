//! The JSON documents inside requests.
//!
//! Managers make them from Go structs without tags: keys are `PascalCase`, an absent list is
//! `null`, and zero means "not set". Go's own decoder takes keys in any case, so this does, too.
//! Keys that are not known here are other providers' settings and are ignored.

use serde_json::{Map, Value};

use super::{Limits, MemoryError};

const MAX_CPU: i64 = 1_024;
const MAX_MEMORY_MIB: i64 = 16 * 1_024 * 1_024;
const MAX_DISK_GIB: i64 = 65_536;
const MAX_URL: usize = 4_096;
/// Names of machines, disks, networks and images.
const MAX_NAME: usize = 255;
/// Words: tags, firmware, addresses.
const MAX_WORD: usize = 63;

/// What a request wants of a machine; `None` leaves it as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) cpu: Option<i32>,
    pub(super) memory_mib: Option<i64>,
    pub(super) firmware: Option<String>,
    pub(super) root_disk_gib: Option<i32>,
    pub(super) disks: Vec<DiskWish>,
    pub(super) networks: Vec<NetworkWish>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DiskWish {
    pub(super) name: String,
    pub(super) size_gib: i32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NetworkWish {
    pub(super) name: String,
    pub(super) mac: Option<String>,
    pub(super) static_ip: Option<String>,
}

/// Where an image comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ImageWish {
    pub(super) template: Option<String>,
    pub(super) path: Option<String>,
    pub(super) url: Option<String>,
}

impl Wish {
    /// `class_json`: `CPU`, `MemoryMiB`, `Firmware`, `DiskDefaults.SizeGiB`.
    pub(super) fn read_class(&mut self, text: &str) -> Result<(), MemoryError> {
        match Document::object("class_json", text)? {
            Some(class) => self.class(&class),
            None => Ok(()),
        }
    }

    /// `disks_json`: a list of `{Name, SizeGiB}`.
    pub(super) fn read_disks(&mut self, text: &str, limits: &Limits) -> Result<(), MemoryError> {
        if let Some(value) = parse("disks_json", text)? {
            self.disks = disks("disks_json", &value, limits)?;
        }
        Ok(())
    }

    /// `networks_json`: a list of `{Name | NetworkName, MacAddress, StaticIP}`.
    pub(super) fn read_networks(&mut self, text: &str, limits: &Limits) -> Result<(), MemoryError> {
        if let Some(value) = parse("networks_json", text)? {
            self.networks = networks("networks_json", &value, limits)?;
        }
        Ok(())
    }

    /// `desired_json` of a reconfiguration: a whole creation request (`Class`, `Disks`,
    /// `Networks`), or the class's fields at the top.
    pub(super) fn read_desired(text: &str, limits: &Limits) -> Result<Self, MemoryError> {
        let mut wish = Self::default();
        let Some(desired) = Document::object("desired_json", text)? else {
            return Err(invalid("desired_json", "nothing", "a JSON object"));
        };
        wish.class(&desired)?;
        if let Some(class) = desired.child("Class")? {
            wish.class(&class)?;
        }
        if let Some((field, value)) = desired.find("Disks") {
            wish.disks = disks(&field, value, limits)?;
        }
        if let Some((field, value)) = desired.find("Networks") {
            wish.networks = networks(&field, value, limits)?;
        }
        Ok(wish)
    }

    fn class(&mut self, class: &Document) -> Result<(), MemoryError> {
        if let Some(cpu) = class.number("CPU", MAX_CPU)? {
            self.cpu = Some(narrow(cpu));
        }
        if let Some(memory) = class.number("MemoryMiB", MAX_MEMORY_MIB)? {
            self.memory_mib = Some(memory);
        }
        if let Some(firmware) = class.word("Firmware")? {
            self.firmware = Some(firmware);
        }
        if let Some(defaults) = class.child("DiskDefaults")? {
            self.root_disk_gib = defaults.number("SizeGiB", MAX_DISK_GIB)?.map(narrow);
        }
        Ok(())
    }
}

impl ImageWish {
    /// `image_json`: `TemplateName`, `Path`, `URL`.
    pub(super) fn read(text: &str) -> Result<Self, MemoryError> {
        let Some(image) = Document::object("image_json", text)? else {
            return Ok(Self::default());
        };
        Ok(Self {
            template: image.name("TemplateName")?,
            path: image.name("Path")?,
            url: image.text("URL", MAX_URL)?,
        })
    }

    /// The template, else the path.
    pub(super) fn name(&self) -> Option<&str> {
        self.template.as_deref().or(self.path.as_deref())
    }
}

/// Checks that a document whose content means nothing here is an object at least.
pub(super) fn check_object(field: &'static str, text: &str) -> Result<(), MemoryError> {
    Document::object(field, text).map(drop)
}

/// A name that a caller gives to something.
pub(super) fn check_name(field: &str, name: &str) -> Result<(), MemoryError> {
    check_text(field, name, MAX_NAME)
}

/// A short text that a caller gives.
pub(super) fn check_word(field: &str, word: &str) -> Result<(), MemoryError> {
    check_text(field, word, MAX_WORD)
}

fn check_text(field: &str, name: &str, most: usize) -> Result<(), MemoryError> {
    let accepted = || format!("1 to {most} bytes without control characters");
    if name.is_empty() {
        return Err(invalid(field, "nothing", accepted()));
    }
    if name.len() > most || name.chars().any(char::is_control) {
        let found = format!("{} bytes of text", name.len());
        return Err(invalid(field, found, accepted()));
    }
    Ok(())
}

pub(super) fn invalid(
    field: impl Into<String>,
    found: impl Into<String>,
    accepted: impl Into<String>,
) -> MemoryError {
    MemoryError::Invalid {
        field: field.into(),
        found: found.into(),
        accepted: accepted.into(),
    }
}

/// A JSON object with the name of the field that it came in.
struct Document {
    field: String,
    map: Map<String, Value>,
}

impl Document {
    fn object(field: &str, text: &str) -> Result<Option<Self>, MemoryError> {
        match parse(field, text)? {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Self {
                field: field.to_owned(),
                map,
            })),
            Some(other) => Err(invalid(field, kind(&other), "a JSON object")),
        }
    }

    /// A member by its name in any case; `null` counts as absent.
    fn find(&self, key: &str) -> Option<(String, &Value)> {
        let value = self.map.get(key).or_else(|| {
            self.map
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(key))
                .map(|(_, value)| value)
        })?;
        (!value.is_null()).then(|| (format!("{}.{key}", self.field), value))
    }

    fn child(&self, key: &str) -> Result<Option<Self>, MemoryError> {
        match self.find(key) {
            None => Ok(None),
            Some((field, Value::Object(map))) => Ok(Some(Self {
                field,
                map: map.clone(),
            })),
            Some((field, other)) => Err(invalid(field, kind(other), "an object")),
        }
    }

    /// A number from 1 to `most`; 0 is Go's "not set".
    fn number(&self, key: &str, most: i64) -> Result<Option<i64>, MemoryError> {
        let Some((field, value)) = self.find(key) else {
            return Ok(None);
        };
        match value.as_i64() {
            Some(0) => Ok(None),
            Some(number) if (1..=most).contains(&number) => Ok(Some(number)),
            _ => {
                let found = if value.is_number() {
                    value.to_string()
                } else {
                    kind(value).into()
                };
                Err(invalid(
                    field,
                    found,
                    format!("a whole number from 1 to {most}"),
                ))
            }
        }
    }

    fn name(&self, key: &str) -> Result<Option<String>, MemoryError> {
        self.text(key, MAX_NAME)
    }

    fn word(&self, key: &str) -> Result<Option<String>, MemoryError> {
        self.text(key, MAX_WORD)
    }

    fn text(&self, key: &str, most: usize) -> Result<Option<String>, MemoryError> {
        let Some((field, value)) = self.find(key) else {
            return Ok(None);
        };
        match value {
            Value::String(text) if text.is_empty() => Ok(None),
            Value::String(text) => {
                check_text(&field, text, most)?;
                Ok(Some(text.clone()))
            }
            other => Err(invalid(field, kind(other), "text")),
        }
    }
}

fn parse(field: &str, text: &str) -> Result<Option<Value>, MemoryError> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    serde_json::from_str(text)
        .map(Some)
        .map_err(|error| invalid(field, format!("a text that is no JSON ({error})"), "JSON"))
}

fn disks(field: &str, value: &Value, limits: &Limits) -> Result<Vec<DiskWish>, MemoryError> {
    let mut disks = Vec::new();
    for item in items(field, value, limits.disks)? {
        let size = item.number("SizeGiB", MAX_DISK_GIB)?.ok_or_else(|| {
            let field = format!("{}.SizeGiB", item.field);
            invalid(
                field,
                "nothing",
                format!("a whole number from 1 to {MAX_DISK_GIB}"),
            )
        })?;
        let name = item
            .name("Name")?
            .unwrap_or_else(|| format!("disk{}", disks.len() + 1));
        if disks.iter().any(|disk: &DiskWish| disk.name == name) {
            return Err(invalid(
                format!("{}.Name", item.field),
                format!("{name:?} again"),
                "names that differ",
            ));
        }
        disks.push(DiskWish {
            name,
            size_gib: narrow(size),
        });
    }
    Ok(disks)
}

fn networks(field: &str, value: &Value, limits: &Limits) -> Result<Vec<NetworkWish>, MemoryError> {
    let mut networks = Vec::new();
    for item in items(field, value, limits.networks)? {
        let name = match item.name("Name")? {
            Some(name) => Some(name),
            None => item.name("NetworkName")?,
        };
        networks.push(NetworkWish {
            name: name.unwrap_or_else(|| format!("net{}", networks.len())),
            mac: item.word("MacAddress")?,
            static_ip: item.word("StaticIP")?,
        });
    }
    Ok(networks)
}

fn items(field: &str, value: &Value, most: usize) -> Result<Vec<Document>, MemoryError> {
    let list = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(list) => list,
        other => return Err(invalid(field, kind(other), "a list")),
    };
    if list.len() > most {
        return Err(invalid(
            field,
            format!("{} entries", list.len()),
            format!("up to {most}"),
        ));
    }
    list.iter()
        .enumerate()
        .map(|(index, item)| {
            let field = format!("{field}[{index}]");
            match item {
                Value::Object(map) => Ok(Document {
                    field,
                    map: map.clone(),
                }),
                other => Err(invalid(field, kind(other), "an object")),
            }
        })
        .collect()
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn narrow(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
