//! The environment variables that cannot change what a program does.
//!
//! The policy reads this list for `NAME=value command`, and for variables that a session sets.

const HARMLESS: &str = include_str!("../data/harmless_variables.txt");

/// Tells whether a program can be given this variable without changing what it does.
pub fn is_harmless(name: &str) -> bool {
    let mut names = HARMLESS.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    names.any(|known| match known.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => known == name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_change_what_runs_are_not_harmless() {
        for name in ["CI", "LANG", "LC_ALL", "NO_COLOR", "TZ", "RUST_BACKTRACE"] {
            assert!(is_harmless(name), "{name}");
        }
        for name in [
            "",
            "#",
            "ci",
            "HOME",
            "XDG_CONFIG_HOME",
            "VISUAL",
            "RUSTC_WRAPPER",
            "GCONV_PATH",
            "LESSOPEN",
            "MAKEFLAGS",
            "JAVA_TOOL_OPTIONS",
            "npm_config_script_shell",
            "HTTPS_PROXY",
            "LANGUAGES",
        ] {
            assert!(!is_harmless(name), "{name}");
        }
    }
}
