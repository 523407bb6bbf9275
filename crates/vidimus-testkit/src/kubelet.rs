//! A folder as the kubelet mounts a Secret: the files are links through `..data`, which is itself
//! a link to a timestamped folder and is swapped by a rename.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

/// A mounted Secret.
#[derive(Debug)]
pub struct Volume {
    dir: PathBuf,
    swaps: u32,
}

impl Volume {
    /// Writes the first content.
    ///
    /// # Panics
    ///
    /// When a file or link cannot be made.
    #[must_use]
    pub fn create<C: AsRef<[u8]>>(dir: &Path, files: &[(&str, C)]) -> Self {
        fs::create_dir_all(dir).expect("the volume's folder");
        let mut volume = Self {
            dir: dir.to_owned(),
            swaps: 0,
        };
        volume.swap(files);
        volume
    }

    /// Replaces the whole content at once, and removes what it replaced.
    ///
    /// # Panics
    ///
    /// When a file or link cannot be made.
    pub fn swap<C: AsRef<[u8]>>(&mut self, files: &[(&str, C)]) {
        let old = fs::read_link(self.dir.join("..data")).ok();
        let stamp = format!("..2026_01_01_00_00_00.{:09}", self.swaps);
        self.swaps += 1;
        let folder = self.dir.join(&stamp);
        fs::create_dir(&folder).expect("the timestamped folder");
        for (name, content) in files {
            write(&folder.join(name), content.as_ref());
        }
        let link = self.dir.join("..data_tmp");
        symlink(&stamp, &link).expect("the new ..data link");
        fs::rename(&link, self.dir.join("..data")).expect("the swap of ..data");
        for (name, _) in files {
            let top = self.dir.join(name);
            if top.symlink_metadata().is_err() {
                symlink(Path::new("..data").join(name), top).expect("the link to the file");
            }
        }
        if let Some(old) = old {
            fs::remove_dir_all(self.dir.join(old)).expect("the old folder's removal");
        }
    }

    /// The folder that a pod sees.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test's files need not survive a crash"
)]
fn write(path: &Path, content: &[u8]) {
    fs::write(path, content).expect("a file of the volume");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_the_new_content_through_the_same_path() {
        let parent = tempfile::tempdir().expect("a folder");
        let dir = parent.path().join("secret");
        let mut volume = Volume::create(&dir, &[("tls.crt", "one")]);
        assert_eq!(
            fs::read_to_string(dir.join("tls.crt")).expect("the file"),
            "one"
        );
        volume.swap(&[("tls.crt", "two"), ("ca.crt", "root")]);
        assert_eq!(
            fs::read_to_string(dir.join("tls.crt")).expect("the file"),
            "two"
        );
        assert_eq!(
            fs::read_to_string(dir.join("ca.crt")).expect("the file"),
            "root"
        );
        let folders = fs::read_dir(&dir).expect("the folder").count();
        assert_eq!(folders, 4, "..data, one stamped folder and two links");
    }
}
