//! Which directories our control group and the one above it are, from what the kernel says about us.
//!
//! A mount may show a part of the hierarchy only, from its root on; a namespace moves where names begin.
//! Where the two do not meet, there is no directory for us.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A mount of the unified hierarchy.
struct Mount {
    /// The group that is seen at its top.
    root: PathBuf,
    /// Where it is mounted.
    point: PathBuf,
}

/// Lists our own group and the one above it, out of `/proc/self/mountinfo` and `/proc/self/cgroup`.
pub(super) fn places(mounts: &str, groups: &str) -> Result<Vec<PathBuf>, String> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let own = Path::new(own.ok_or("this kernel has no control groups of version 2")?);
    let mounts: Vec<Mount> = mounts.lines().filter_map(mount).collect();
    if mounts.is_empty() {
        return Err("control groups of version 2 are not mounted".to_owned());
    }
    mounts.iter().find_map(|mount| within(mount, own)).ok_or_else(|| {
        format!("our own control group, `{}`, is not in what is mounted", own.display())
    })
}

/// Lists where the hierarchy is mounted.
pub(super) fn points(mounts: &str) -> Vec<PathBuf> {
    mounts.lines().filter_map(mount).map(|mount| mount.point).collect()
}

fn within(mount: &Mount, own: &Path) -> Option<Vec<PathBuf>> {
    let below = own.strip_prefix(&mount.root).ok()?;
    // A group outside of our namespace is told by how far up it is, which is no name of it.
    if below.components().any(|part| part.as_os_str() == "..") {
        return None;
    }
    // Nothing is joined at the top itself: it would end in a slash.
    let top = below.as_os_str().is_empty();
    let place = if top { mount.point.clone() } else { mount.point.join(below) };
    let above = place.parent().filter(|_| !top).map(Path::to_owned);
    Some(std::iter::once(place).chain(above).collect())
}

fn mount(line: &str) -> Option<Mount> {
    let (where_to, what) = line.split_once(" - ")?;
    if what.split(' ').next()? != "cgroup2" {
        return None;
    }
    let mut fields = where_to.split(' ').skip(3).map(unescaped);
    Some(Mount { root: fields.next()?, point: fields.next()? })
}

/// Blanks and the like are written as octal numbers.
fn unescaped(field: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let digits = more.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        let (byte, left) = match escaped.filter(|_| *first == b'\\') {
            Some(byte) => (byte, more.get(3..).unwrap_or_default()),
            None => (*first, more),
        };
        bytes.push(byte);
        rest = left;
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIFIED: &str = "24 30 0:22 / /sys rw - sysfs sysfs rw\n\
         35 24 0:29 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate";
    const HYBRID: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
         35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
         41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";
    const OLD: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
    const PART: &str = "9 8 0:29 /docker/4711 /sys/fs/cgroup ro - cgroup2 cgroup rw";
    const ABOVE: &str = "9 8 0:29 /../.. /sys/fs/cgroup ro - cgroup2 cgroup rw";
    const ODD: &str = "9 8 0:29 / /mnt/my\\040groups rw - cgroup2 cgroup rw";

    #[test]
    fn our_group_and_the_one_above_are_found_where_they_are_mounted() {
        let cases: [(&str, &str, &[&str]); 8] = [
            (
                UNIFIED,
                "0::/user.slice/app.slice/run-1.scope\n",
                &[
                    "/sys/fs/cgroup/user.slice/app.slice/run-1.scope",
                    "/sys/fs/cgroup/user.slice/app.slice",
                ],
            ),
            (UNIFIED, "0::/init.scope", &["/sys/fs/cgroup/init.scope", "/sys/fs/cgroup"]),
            // A machine's root, or a namespace's.
            (UNIFIED, "0::/", &["/sys/fs/cgroup"]),
            (HYBRID, "4:memory:/a/b\n1:name=systemd:/\n0::/", &["/sys/fs/cgroup/unified"]),
            (
                HYBRID,
                "4:memory:/a/b\n0::/c",
                &["/sys/fs/cgroup/unified/c", "/sys/fs/cgroup/unified"],
            ),
            // A container that sees its own part, and nothing above.
            (PART, "0::/docker/4711", &["/sys/fs/cgroup"]),
            (PART, "0::/docker/4711/in", &["/sys/fs/cgroup/in", "/sys/fs/cgroup"]),
            (ODD, "0::/a", &["/mnt/my groups/a", "/mnt/my groups"]),
        ];
        for (mounts, groups, expected) in cases {
            let found = places(mounts, groups).unwrap();
            assert_eq!(found, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{groups}");
        }
    }

    #[test]
    fn where_there_is_no_directory_for_us_that_is_said() {
        let cases = [
            (OLD, "4:memory:/a\n1:name=systemd:/", "no control groups of version 2"),
            (OLD, "4:memory:/a\n0::/", "are not mounted"),
            ("", "", "no control groups of version 2"),
            (PART, "0::/docker/other", "is not in what is mounted"),
            // A namespace that we are outside of, and one that the mount begins above of.
            (UNIFIED, "0::/../elsewhere", "is not in what is mounted"),
            (ABOVE, "0::/", "is not in what is mounted"),
            ("24 30 0:22 garbage", "0::/a", "are not mounted"),
        ];
        for (mounts, groups, expected) in cases {
            let said = places(mounts, groups).unwrap_err();
            assert!(said.contains(expected), "{mounts} {groups}: {said}");
        }
    }

    #[test]
    fn every_mount_is_listed() {
        let both = format!("{UNIFIED}\n{ODD}\n{OLD}");
        let expected = ["/sys/fs/cgroup", "/mnt/my groups"].map(PathBuf::from);
        assert_eq!(points(&both), expected);
    }
}
