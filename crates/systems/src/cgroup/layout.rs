//! Where control groups are mounted, and which of them this process is in: `/proc/self/mountinfo` and
//! `/proc/self/cgroup` (proc(5), cgroups(7)), read by a pure function.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Versions of control groups on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// No version is mounted.
    None,
    /// Version 1 alone.
    One,
    /// Version 2 alone.
    Two,
    /// Both: the controllers used here belong to version 1; version 2 counts CPU time and kills process trees.
    Both,
}

impl Version {
    /// Text for records and users.
    pub fn shown(self) -> &'static str {
        match self {
            Version::None => "none",
            Version::One => "cgroup v1",
            Version::Two => "cgroup v2",
            Version::Both => "cgroup v1 and v2",
        }
    }
}

/// A mounted hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// Folder of the group that this process is in.
    pub own: PathBuf,
    /// Mount point: the highest group that is visible.
    pub top: PathBuf,
}

/// All hierarchies that are used here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The hierarchy of version 2.
    pub unified: Option<Hierarchy>,
    /// Hierarchies of version 1, by controller: `cpu`, `cpuacct`, `memory`, `cpuset`. Controllers may share a
    /// hierarchy.
    pub controllers: BTreeMap<&'static str, Hierarchy>,
}

/// Controllers of version 1 that are used here.
pub const CONTROLLERS: [&str; 4] = ["cpu", "cpuacct", "memory", "cpuset"];

impl Layout {
    /// Reads the layout of this machine, with the groups of this process.
    pub fn read() -> io::Result<Layout> {
        Layout::of("/proc/self/cgroup")
    }

    /// Reads the layout with the groups of another process.
    pub fn read_for(pid: u32) -> io::Result<Layout> {
        Layout::of(&format!("/proc/{pid}/cgroup"))
    }

    fn of(cgroup: &str) -> io::Result<Layout> {
        Ok(parse(&std::fs::read_to_string("/proc/self/mountinfo")?, &std::fs::read_to_string(cgroup)?))
    }

    /// Versions that are mounted.
    pub fn version(&self) -> Version {
        match (self.controllers.is_empty(), &self.unified) {
            (true, None) => Version::None,
            (true, Some(_)) => Version::Two,
            (false, None) => Version::One,
            (false, Some(_)) => Version::Both,
        }
    }
}

/// Parses the texts of `/proc/self/mountinfo` and `/proc/PID/cgroup`. Lines that cannot be parsed are ignored.
pub fn parse(mountinfo: &str, groups: &str) -> Layout {
    let mut layout = Layout::default();
    for mount in mountinfo.lines().filter_map(Mount::parse) {
        if mount.kind == "cgroup2" {
            let group = groups.lines().find_map(|line| line.strip_prefix("0::"));
            layout.unified = layout.unified.or_else(|| group.map(|group| mount.hierarchy(group)));
            continue;
        }
        for controller in CONTROLLERS.into_iter().filter(|name| mount.options.split(',').any(|option| option == *name))
        {
            if let Some(group) = group_of(groups, controller) {
                layout.controllers.entry(controller).or_insert_with(|| mount.hierarchy(group));
            }
        }
    }
    layout
}

/// The group of a version 1 controller: lines are `hierarchy:controller,controller:path`.
fn group_of<'a>(groups: &'a str, controller: &str) -> Option<&'a str> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (names, path) = (fields.next()?, fields.next()?);
        names.split(',').any(|name| name == controller).then_some(path)
    })
}

/// One line of mountinfo: `id parent device root place options [more…] - kind source options`.
struct Mount<'a> {
    /// The group that is mounted at the mount point: not `/` inside a container.
    root: String,
    place: PathBuf,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Mount<'a>> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let (root, place) = (unescaped(left.next()?), PathBuf::from(unescaped(left.next()?)));
        let mut right = right.split(' ');
        let kind = right.next().filter(|kind| matches!(*kind, "cgroup" | "cgroup2"))?;
        Some(Mount { root, place, kind, options: right.nth(1).unwrap_or("") })
    }

    fn hierarchy(&self, group: &str) -> Hierarchy {
        let below = if self.root == "/" { Some(group) } else { group.strip_prefix(&self.root) };
        // A group above the mounted one (`/..`) is not visible: the mount point is used instead.
        let below = below.filter(|path| !Path::new(path).components().any(|part| part.as_os_str() == ".."));
        let own = match below.map(|path| path.trim_matches('/')).filter(|path| !path.is_empty()) {
            Some(path) => self.place.join(path),
            None => self.place.clone(),
        };
        Hierarchy { own, top: self.place.clone() }
    }
}

/// In mountinfo, spaces, tabs, newlines and backslashes are written as octal numbers.
fn unescaped(text: &str) -> String {
    ["\\040", "\\011", "\\012", "\\134"]
        .iter()
        .zip([" ", "\t", "\n", "\\"])
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_with_version_2_has_one_hierarchy() {
        // Fedora, in a terminal of a desktop session.
        let layout = parse(
            "22 61 0:20 / /proc rw,nosuid shared:14 - proc proc rw\n\
             28 23 0:25 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n",
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-r1.scope\n",
        );
        assert_eq!(layout.version(), Version::Two);
        let unified = layout.unified.unwrap();
        assert_eq!(unified.top, Path::new("/sys/fs/cgroup"));
        assert_eq!(
            unified.own,
            Path::new("/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/run-r1.scope")
        );
    }

    #[test]
    fn a_machine_with_version_1_has_a_hierarchy_for_each_mount() {
        // CentOS 7: cpu and cpuacct share a hierarchy.
        let layout = parse(
            "31 24 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:10 - cgroup cgroup rw,cpuacct,cpu\n\
             32 24 0:27 / /sys/fs/cgroup/memory rw,nosuid shared:11 - cgroup cgroup rw,memory\n\
             33 24 0:28 / /sys/fs/cgroup/systemd rw shared:12 - cgroup cgroup rw,xattr,name=systemd\n",
            "11:memory:/user.slice\n4:cpuacct,cpu:/user.slice\n1:name=systemd:/user.slice/session-1.scope\n",
        );
        assert_eq!(layout.version(), Version::One);
        let own = |name: &str| layout.controllers.get(name).map(|found| found.own.display().to_string());
        assert_eq!(own("cpu").unwrap(), "/sys/fs/cgroup/cpu,cpuacct/user.slice");
        assert_eq!(own("cpu"), own("cpuacct"));
        assert_eq!(own("memory").unwrap(), "/sys/fs/cgroup/memory/user.slice");
        assert_eq!(own("cpuset"), None);
    }

    #[test]
    fn a_machine_with_both_takes_controllers_from_version_1() {
        let layout = parse(
            "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
             35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
            "4:memory:/process_api/32\n1:cpu:/\n0::/\n",
        );
        assert_eq!(layout.version(), Version::Both);
        assert_eq!(layout.controllers["memory"].own, Path::new("/sys/fs/cgroup/memory/process_api/32"));
        assert_eq!(layout.controllers["cpu"].own, Path::new("/sys/fs/cgroup/cpu"));
        assert_eq!(layout.unified.unwrap().own, Path::new("/sys/fs/cgroup/unified"));
    }

    #[test]
    fn in_a_container_the_mounted_group_is_the_top() {
        // Docker with version 1: the container's group is the mounted one.
        let one = parse(
            "650 649 0:33 /docker/abc /sys/fs/cgroup/memory ro,nosuid master:15 - cgroup cgroup rw,memory\n",
            "9:memory:/docker/abc\n",
        );
        assert_eq!(one.controllers["memory"].own, Path::new("/sys/fs/cgroup/memory"));
        // A cgroup namespace with a mount from another namespace.
        let two = parse("28 23 0:25 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/../other\n");
        assert_eq!(two.unified.unwrap().own, Path::new("/sys/fs/cgroup"));
        assert_eq!(parse("", "0::/\n").version(), Version::None);
    }

    #[test]
    fn spaces_in_names_are_read() {
        let layout = parse("28 23 0:25 / /mnt/my\\040groups rw - cgroup2 cgroup2 rw\n", "0::/a\n");
        assert_eq!(layout.unified.unwrap().own, Path::new("/mnt/my groups/a"));
    }
}
