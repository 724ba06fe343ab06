//! Opens a page in the person's browser, where there is a desktop to open it on.

use std::process::{Command, Stdio};

use crate::environment::Environment;

/// Says that a program runs where nobody looks, or looks from elsewhere.
const ELSEWHERE: [&str; 4] = ["CI", "SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"];

/// Returns the program that opens pages here, if somebody would see them.
pub(super) fn opener(environment: &Environment) -> Option<&'static str> {
    let variables = environment.variables();
    let is_set = |name: &str| variables.get(name).is_some_and(|value| !value.is_empty());
    if ELSEWHERE.into_iter().any(is_set) {
        return None;
    }
    if cfg!(target_os = "macos") {
        return Some("open");
    }
    ["DISPLAY", "WAYLAND_DISPLAY"].into_iter().any(is_set).then_some("xdg-open")
}

/// Opens a page, and tells whether that was possible. It is not waited for.
#[expect(
    clippy::disallowed_methods,
    reason = "the person asked to log in, in the person's own browser and with the person's own rights"
)]
pub(super) fn show(url: &str, opener: &str) -> bool {
    // Nothing else is ever handed to a desktop.
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return false;
    }
    let mut command = Command::new(opener);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(mut child) => {
            // It may stay for as long as the browser does.
            drop(std::thread::spawn(move || child.wait()));
            true
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_opened_only_where_somebody_sits() {
        let at = |pairs: &[(&str, &str)]| opener(&Environment::of(pairs));
        for elsewhere in [
            &[("DISPLAY", ":0"), ("CI", "true")][..],
            &[("DISPLAY", ":0"), ("SSH_TTY", "/dev/pts/0")],
        ] {
            assert_eq!(at(elsewhere), None, "{elsewhere:?}");
        }
        if !cfg!(target_os = "macos") {
            assert_eq!(at(&[("DISPLAY", ":0")]), Some("xdg-open"));
            assert_eq!(at(&[("WAYLAND_DISPLAY", "wayland-0")]), Some("xdg-open"));
            assert_eq!(at(&[("DISPLAY", "")]), None);
            assert_eq!(at(&[]), None);
        }
        assert!(!show("file:///etc/passwd", "true") && !show("javascript:x", "true"));
    }
}
