//! Whether tools are kept inside the allowed paths, tried out.

use std::io;
use std::os::unix::fs::symlink;

use convoke_tool::Roots;

use super::Check;

const NAME: &str = "confinement";

/// Puts a link that leads out of an allowed directory, and tries to read through it.
pub(super) fn check() -> Check {
    match attempt() {
        Ok(true) => {
            Check::ok(NAME, format!("a link out of the allowed paths is refused ({})", how()))
        }
        Ok(false) => Check::fail(NAME, "a link out of the allowed paths was followed"),
        Err(error) => Check::warn(NAME, format!("it could not be tried: {error}")),
    }
}

fn attempt() -> io::Result<bool> {
    let directory = tempfile::tempdir()?;
    let (inside, outside) = (directory.path().join("inside"), directory.path().join("outside"));
    crate::files::make_directory(&inside)?;
    crate::files::write(&outside, "secret")?;
    crate::files::write(&inside.join("plain"), "public")?;
    symlink(&outside, inside.join("link"))?;
    let roots = Roots::open([&inside]).map_err(|error| error.source)?;
    let opens =
        |name: &str| roots.locate(&inside, name).is_ok_and(|place| place.open_file().is_ok());
    if !opens("plain") {
        return Err(io::Error::other("a plain file cannot be opened"));
    }
    Ok(!opens("link"))
}

/// Says who refuses.
#[cfg(target_os = "linux")]
fn how() -> &'static str {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match openat2(CWD, ".", flags, Mode::empty(), ResolveFlags::BENEATH) {
        Ok(_) => "by the kernel, openat2",
        Err(_) => "step by step; this kernel has no openat2",
    }
}

#[cfg(not(target_os = "linux"))]
fn how() -> &'static str {
    "step by step"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_out_are_refused() {
        assert!(attempt().unwrap());
    }
}
