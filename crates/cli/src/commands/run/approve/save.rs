//! Keeps a rule for all runs to come.
//!
//! Saved rules have a file of their own beside the user's configuration, so that nothing a person wrote is
//! ever changed. It is a configuration file like any other: `policy check` names its lines, and a rule that
//! is not wanted any more is a line to delete.

use std::io;
use std::path::Path;

use convoke::config::{Sources, load};
use convoke_core::policy::RuleSpec;

use crate::files;

const HEAD: &str =
    "# Rules that were saved when somebody was asked. Delete a line to be asked again.
policy:
  rules:
";

/// Adds rules to the file. One that somebody wrote so that nothing can be added is left as it is.
pub(crate) fn save(path: &Path, rules: &[RuleSpec]) -> io::Result<()> {
    let _held = files::hold(path)?;
    let before = files::read_if_there(path)?.filter(|text| !text.trim().is_empty());
    let mut text = before.clone().unwrap_or_else(|| HEAD.to_owned());
    if !text.ends_with('\n') {
        text.push('\n');
    }
    for rule in rules {
        // JSON is YAML, and leaves nothing open.
        text.push_str(&format!("    - {}\n", serde_json::to_string(rule)?));
    }
    let known = before.map_or(Ok(Vec::new()), |text| read(&text))?;
    let expected: Vec<RuleSpec> = known.into_iter().chain(rules.iter().cloned()).collect();
    match read(&text) {
        Ok(found) if found == expected => files::rewrite(path, &text),
        _ => Err(io::Error::other("rules cannot be added at its end; put its list in order first")),
    }
}

/// Reads the rules of a text as the configuration would.
fn read(text: &str) -> io::Result<Vec<RuleSpec>> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("rules.yml");
    files::write_private(&file, text)?;
    let mut sources = Sources::new(directory.path());
    sources.project_directory = None;
    sources.rules_file = Some(file);
    let loaded = load(&sources).map_err(|_| io::Error::other("what is in it is not in order"))?;
    Ok(loaded.config.policy.rules)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use convoke_core::Permission;

    use super::*;

    #[test]
    fn saved_rules_come_after_those_of_the_user() {
        let directory = tempfile::tempdir().unwrap();
        let (own, saved) =
            (directory.path().join("convoke.yml"), directory.path().join("d/rules.yml"));
        let rule = |pattern: &str| RuleSpec::command(Permission::Allow, pattern);
        save(&saved, &[rule("cargo test *")]).unwrap();
        save(&saved, &[rule("say \"hi\": #no *"), RuleSpec::tool(Permission::Allow, "t")]).unwrap();
        let mut sources = Sources::new(directory.path());
        sources.project_directory = None;
        sources.user_file = Some(own.clone());
        sources.rules_file = Some(saved.clone());
        let expected = [
            rule("cargo test *"),
            rule("say \"hi\": #no *"),
            RuleSpec::tool(Permission::Allow, "t"),
        ];
        assert_eq!(load(&sources).unwrap().config.policy.rules, expected);

        files::write(&own, "policy:\n  rules:\n    - {effect: deny, command: rm *}\n").unwrap();
        let rules = load(&sources).unwrap().config.policy.rules;
        assert_eq!(rules[0], RuleSpec::command(Permission::Deny, "rm *"));
        assert_eq!(rules[1..], expected);
        files::write(&own, "tools:\n  timeout: 5s\n").unwrap();
        assert_eq!(load(&sources).unwrap().config.policy.rules, expected);
    }

    #[test]
    fn the_last_rule_can_be_deleted_and_others_be_saved_after_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rules.yml");
        files::write(&path, HEAD).unwrap();
        let mut sources = Sources::new(directory.path());
        sources.project_directory = None;
        sources.rules_file = Some(path.clone());
        assert!(load(&sources).unwrap().config.policy.rules.is_empty());
        let rules = [RuleSpec::tool(Permission::Allow, "t")];
        save(&path, &rules).unwrap();
        assert_eq!(load(&sources).unwrap().config.policy.rules, rules);
    }

    #[test]
    fn what_somebody_wrote_by_hand_is_never_broken() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rules.yml");
        for text in [
            "policy: { rules: [ {effect: deny, tool: x} ] }\n",
            "policy:\n  rules:\n    - {effect: deny, tool: x}\ntools:\n  timeout: 5s\n",
            "policy: [\n",
        ] {
            files::write(&path, text).unwrap();
            assert!(save(&path, &[RuleSpec::tool(Permission::Allow, "t")]).is_err(), "{text}");
            assert_eq!(files::read(&path).unwrap(), text);
        }
        let own = "policy:\n  rules:\n    - {effect: deny, tool: x}\n";
        files::write(&path, own).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
        let refused = save(&path, &[RuleSpec::tool(Permission::Allow, "t")]).unwrap_err();
        assert_eq!(refused.to_string(), "it is read-only");
        assert_eq!(files::read(&path).unwrap(), own);
    }
}
