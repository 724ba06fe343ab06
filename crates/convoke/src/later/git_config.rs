//! Changes of a repository's configuration that start no program and lead nowhere else.
//!
//! Git writes there in daily work: `git push -u`, `git switch --track` and `git init` do. Such keys are listed; a
//! change of any other key is not accepted, and neither is a file that is not plainly written.

use std::collections::BTreeMap;

/// Keys, in small letters, without the name in the middle. Source: git-config(1).
const HARMLESS: &[&str] = &[
    "branch.merge",
    "branch.rebase",
    "branch.remote",
    "core.autocrlf",
    "core.bare",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.precomposeunicode",
    "core.repositoryformatversion",
    "core.symlinks",
    "extensions.objectformat",
    "extensions.refstorage",
    "init.defaultbranch",
    "pull.ff",
    "pull.rebase",
    "push.autosetupremote",
    "push.default",
    "remote.fetch",
    "submodule.active",
    "user.email",
    "user.name",
];
/// Keys whose values are names: an address there would lead elsewhere.
const NAMES: &[&str] = &["branch.remote"];

/// The values of each key. A key is its section, its subsection and its name.
type Settings = BTreeMap<(String, Option<String>, String), Vec<String>>;

/// Tells whether everything that changed is harmless.
pub(super) fn is_harmless_change(before: &[u8], after: &[u8]) -> bool {
    let (Some(before), Some(after)) = (read(before), read(after)) else { return false };
    let changed = |one: &Settings, other: &Settings| {
        one.iter().all(|(key, values)| other.get(key) == Some(values) || is_harmless(key, values))
    };
    changed(&before, &after) && changed(&after, &before)
}

fn is_harmless(
    (section, subsection, name): &(String, Option<String>, String),
    values: &[String],
) -> bool {
    let key = format!("{section}.{name}");
    // Only these have a name in the middle.
    let named = ["branch", "remote", "submodule"].contains(&section.as_str());
    let is_name = |value: &String| {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        value.chars().all(fits) && !value.starts_with('-')
    };
    HARMLESS.contains(&key.as_str())
        && subsection.is_some() == named
        && (!NAMES.contains(&key.as_str()) || values.iter().all(is_name))
}

/// Reads a configuration that is plainly written: one section or one setting a line.
fn read(text: &[u8]) -> Option<Settings> {
    let text = std::str::from_utf8(text).ok()?;
    let (mut settings, mut place) = (Settings::new(), None);
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            place = Some(section(rest.strip_suffix(']')?)?);
            continue;
        }
        let (section, subsection) = place.clone()?;
        let (name, value) = line.split_once('=').unwrap_or((line, "true"));
        let name = name.trim();
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        // Quotes, comments behind values and lines that go on can say more than they seem to.
        if name.is_empty() || !name.chars().all(plain) || value.contains(['"', '\\', '#', ';']) {
            return None;
        }
        let key = (section, subsection, name.to_ascii_lowercase());
        settings.entry(key).or_default().push(value.trim().to_owned());
    }
    Some(settings)
}

fn section(text: &str) -> Option<(String, Option<String>)> {
    let plain = |name: &str| {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        !name.is_empty() && name.chars().all(fits)
    };
    let (name, subsection) = match text.split_once(' ') {
        None => (text, None),
        Some((name, quoted)) => {
            let inside = quoted.trim().strip_prefix('"')?.strip_suffix('"')?;
            (name, Some(inside).filter(|inside| !inside.contains(['"', '\\', ']']))?.into())
        }
    };
    plain(name).then(|| (name.to_ascii_lowercase(), subsection.map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str =
        "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://good.example/x\n";

    #[test]
    fn settings_of_daily_work_are_harmless() {
        for added in [
            "",
            "[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n",
            "[remote \"origin\"]\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
            "# a note\n[user]\n\tname = A B\n",
        ] {
            assert!(
                is_harmless_change(BEFORE.as_bytes(), format!("{BEFORE}{added}").as_bytes()),
                "{added}"
            );
        }
        let initial = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";
        assert!(is_harmless_change(b"", initial.as_bytes()));
    }

    #[test]
    fn settings_that_start_programs_or_lead_elsewhere_are_not() {
        for added in [
            "[core]\n\tfsmonitor = ./evil\n",
            "[core]\n\thooksPath = hooks\n",
            "[core]\n\tsshCommand = ./evil\n",
            "[core]\n\tpager = ./evil\n",
            "[core]\n\tworktree = /\n",
            "[core] fsmonitor = ./evil\n",
            "[CORE]\n\tFSMonitor = ./evil\n",
            "[core]\n\tbare = false \\\n fsmonitor = ./evil\n",
            "[alias]\n\tst = !./evil\n",
            "[include]\n\tpath = ../evil\n",
            "[includeIf \"gitdir:**\"]\n\tpath = ../evil\n",
            "[filter \"x\"]\n\tclean = ./evil\n",
            "[diff \"x\"]\n\ttextconv = ./evil\n",
            "[submodule \"x\"]\n\tupdate = !./evil\n",
            "[credential]\n\thelper = ./evil\n",
            "[remote \"origin\"]\n\turl = https://evil.example/x\n",
            "[remote \"origin\"]\n\tuploadpack = ./evil\n",
            "[branch \"main\"]\n\tremote = https://evil.example/x\n",
            "[branch \"main\"]\n\tremote = --upload-pack=evil\n",
            "[extensions]\n\tworktreeConfig = true\n",
            "[url \"https://evil.example/\"]\n\tinsteadOf = https://good.example/\n",
            "[core.x]\n\tbare = false\n",
            "not a setting\n",
        ] {
            assert!(
                !is_harmless_change(BEFORE.as_bytes(), format!("{BEFORE}{added}").as_bytes()),
                "{added}"
            );
        }
        assert!(
            !is_harmless_change(BEFORE.as_bytes(), b"[core]\n\tbare = false\n"),
            "a remote is gone"
        );
        assert!(!is_harmless_change(b"\xff", b"[core]\n"));
    }
}
