//! Rules that can never hold, and say so only by not holding.
//!
//! Such a rule is no mistake of the kind that stops everything: it may be one for another machine. But who
//! wrote it believes that something is denied or allowed, so they are told.

use super::{RuleError, RuleSpec};
use crate::message::SERVER_TOOL_PREFIX;
use crate::nearest::{did_you_mean, nearest};
use crate::permission::Permission;
use crate::spec::{Category, Kind, ToolSpec};

/// The tools that are known when a rule is looked at. Those of servers, whose names start with `mcp__`, are
/// never among them.
#[derive(Clone, Copy, Debug)]
pub enum KnownTools<'t> {
    /// All there are.
    All(&'t [ToolSpec]),
    /// Some: others may be added later, by the program that embeds us for instance.
    Some(&'t [ToolSpec]),
}

impl RuleSpec {
    /// Says why it can never hold, as far as its own text shows; nothing if it may.
    pub fn doubts(&self) -> Vec<RuleError> {
        let texts = [
            ("tool", &self.tool),
            ("agent", &self.agent),
            ("path", &self.path),
            ("directory", &self.directory),
        ];
        let empty = texts.into_iter().filter_map(|(key, text)| {
            let is_empty = text.as_deref().is_some_and(|text| text.trim().is_empty());
            is_empty.then(|| doubt(key, "the rule never holds: an empty pattern fits nothing"))
        });
        let places = [("path", &self.path), ("directory", &self.directory)];
        let places = places.into_iter().filter_map(|(key, text)| {
            text.as_deref().and_then(misread_place).map(|message| doubt(key, message))
        });
        let command = self.command.as_deref().filter(|text| is_expression(text)).map(|text| {
            let message = format!(
                "the rule never holds: `{text}` looks like a regular expression, but a command is \
                 matched word by word, with `*` for anything"
            );
            doubt("command", message)
        });
        empty.chain(places).chain(command).collect()
    }

    /// Says why it can never hold with these tools, and with these kinds of calls denied.
    pub fn doubts_about(
        &self,
        known: KnownTools<'_>,
        is_denied: impl Fn(Kind) -> bool,
    ) -> Vec<RuleError> {
        let (KnownTools::All(tools) | KnownTools::Some(tools)) = known;
        let are_all = matches!(known, KnownTools::All(_));
        let named = |name: &&str| !name.contains('*') && !name.starts_with(SERVER_TOOL_PREFIX);
        let name =
            self.tool.as_deref().map(str::trim).filter(named).filter(|name| !name.is_empty());
        let tool = name.and_then(|name| tools.iter().find(|tool| tool.name == name));
        let unknown = name.filter(|_| tool.is_none() && are_all).map(|name| {
            let close = nearest(name, tools.iter().map(|tool| tool.name.as_str()));
            let meant = did_you_mean(&close);
            doubt("tool", format!("the rule never holds: there is no tool `{name}`{meant}"))
        });
        let commandless =
            tool.filter(|tool| self.command.is_some() && !may_run(tool)).map(|tool| {
                let message =
                    format!("the rule never holds: `{}` does not take a command", tool.name);
                doubt("command", message)
            });
        let kind = self.kind.map(|kind| ("kind", kind));
        let kind = kind.or_else(|| tool.map(|tool| ("tool", tool.kind)));
        let kind = kind.or_else(|| self.command.is_some().then_some(("command", Kind::Execute)));
        let denied = kind.filter(|(_, kind)| self.effect == Permission::Allow && is_denied(*kind));
        let denied = denied.map(|(key, kind)| {
            let message = format!(
                "the rule allows nothing: calls of kind `{kind}` are denied (`policy.kinds.{kind}`)"
            );
            doubt(key, message)
        });
        unknown.into_iter().chain(commandless).chain(denied).collect()
    }
}

fn doubt(key: &'static str, message: impl Into<String>) -> RuleError {
    RuleError { key, item: None, message: message.into() }
}

/// Says why a path is not read as it was meant, if it is not.
fn misread_place(path: &str) -> Option<String> {
    let variable = path.split_once('$').is_some_and(|(_, after)| {
        after.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '{')
    });
    if variable {
        return Some(format!(
            "the rule never holds: variables are not replaced in `{path}`; write `~/` for the home \
             directory, or the path in full"
        ));
    }
    let of_user =
        path.strip_prefix('~').is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
    of_user.then(|| {
        format!(
            "the rule never holds: `~` stands for your own home directory only, not in `{path}`"
        )
    })
}

/// Tells whether a pattern for commands is written as a regular expression.
fn is_expression(pattern: &str) -> bool {
    pattern.starts_with('^') || pattern.contains(".*") || pattern.ends_with('$')
}

/// Tells whether the arguments of a tool can hold a command.
const fn may_run(tool: &ToolSpec) -> bool {
    matches!(tool.kind, Kind::Execute | Kind::Other)
        || matches!(tool.category, Category::Mcp | Category::Code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(doubts: &[RuleError]) -> Vec<&'static str> {
        doubts.iter().map(|doubt| doubt.key).collect()
    }

    #[test]
    fn a_rule_that_can_never_hold_is_told_from_its_text() {
        let deny = Permission::Deny;
        for (spec, expected) in [
            (RuleSpec::tool(deny, ""), &["tool"][..]),
            (RuleSpec::path(deny, " "), &["path"]),
            (RuleSpec::path(deny, "$HOME/.ssh/**"), &["path"]),
            (RuleSpec::path(deny, "a/${X}/b"), &["path"]),
            (RuleSpec::path(deny, "~root/x"), &["path"]),
            (RuleSpec::command(deny, "^rm"), &["command"]),
            (RuleSpec::command(deny, "rm .*"), &["command"]),
            (RuleSpec::command(deny, "rm$"), &["command"]),
            (RuleSpec::command(deny, "rm *"), &[]),
            (RuleSpec::command(deny, "ls *.rs"), &[]),
            (RuleSpec::path(deny, "~/.ssh/**"), &[]),
            (RuleSpec::path(deny, "price$"), &[]),
        ] {
            assert_eq!(keys(&spec.doubts()), expected, "{spec:?}");
        }
    }

    #[test]
    fn a_rule_that_can_never_hold_is_told_from_the_tools_there_are() {
        let mut shell = ToolSpec::new("run_command", "Runs.", Kind::Execute);
        shell.category = Category::Code;
        let tools = [shell, ToolSpec::new("read_file", "Reads.", Kind::Read)];
        let with = |tool: &str, command: &str| RuleSpec {
            tool: Some(tool.into()),
            ..RuleSpec::command(Permission::Allow, command)
        };
        for (spec, expected) in [
            (RuleSpec::tool(Permission::Deny, "raed_file"), &["tool"][..]),
            (RuleSpec::tool(Permission::Deny, "read_*"), &[]),
            (RuleSpec::tool(Permission::Deny, "mcp__a__b"), &[]),
            (with("read_file", "ls"), &["command"]),
            (with("run_command", "ls"), &["tool"]),
            (RuleSpec::command(Permission::Allow, "ls"), &["command"]),
            (RuleSpec::command(Permission::Deny, "ls"), &[]),
            (RuleSpec::tool(Permission::Allow, "run_command"), &["tool"]),
        ] {
            let doubts = spec.doubts_about(KnownTools::All(&tools), |kind| kind == Kind::Execute);
            assert_eq!(keys(&doubts), expected, "{spec:?}: {doubts:?}");
        }
        let misspelled = RuleSpec::tool(Permission::Deny, "raed_file");
        let doubts = misspelled.doubts_about(KnownTools::All(&tools), |_| false);
        assert!(doubts[0].message.ends_with("did you mean `read_file`?"), "{doubts:?}");
        let doubts = misspelled.doubts_about(KnownTools::Some(&tools), |_| false);
        assert_eq!(keys(&doubts), [""; 0], "such a tool may be added later");
    }
}
