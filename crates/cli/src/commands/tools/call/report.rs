//! The result of a call, for people.

use convoke::Runtime;
use convoke_core::{
    CallOutcome, Category, Cause, Display, DisplayFormat, ErrorKind, ExitCode, Kind, Part,
    Permission, ToolError, ToolResult, ToolSpec,
};

use super::consent::Consent;
use super::live::Live;
use crate::failure::Failure;
use crate::output::{Output, Stream, Style};

/// A call that ended, and what is known about why.
pub(super) struct Ended<'a> {
    pub(super) result: &'a ToolResult,
    /// The signal that stopped it.
    pub(super) stopped: Option<Cause>,
    /// The tool; none where there is no such tool, or where it may not be called.
    pub(super) spec: Option<&'a ToolSpec>,
    pub(super) consent: &'a Consent,
    pub(super) runtime: &'a Runtime,
}

impl Ended<'_> {
    /// Returns why the call ended as it did.
    fn cause(&self) -> Cause {
        match self.result.error_kind() {
            None => Cause::Goal,
            Some(ErrorKind::NotFound) if self.spec.is_none() => Cause::Usage,
            Some(ErrorKind::Cancelled) => self.stopped.unwrap_or(Cause::Interrupted),
            Some(kind) => kind.into(),
        }
    }

    /// Returns the exit code.
    pub(super) fn code(&self) -> ExitCode {
        self.cause().exit_code()
    }

    /// Prints what there is on standard output and what went wrong on standard error.
    pub(super) fn print(&self, live: &Live, output: &mut Output) {
        let seen = live.showed_output() && output.out.is_terminal();
        match &self.result.return_display {
            Some(display) => print_display(display, &output.out),
            None if seen => {}
            None if self.left_news() => print_parts(self.answer(), &output.err),
            None => print_parts(self.answer(), &output.out),
        }
        if let CallOutcome::Failed { error, .. } = &self.result.outcome {
            output.out.flush();
            self.failure(error).print(output);
        }
    }

    /// Tells whether what is left of a call that failed is no result: a server tells how far it is.
    fn left_news(&self) -> bool {
        let failed = matches!(self.result.outcome, CallOutcome::Failed { .. });
        failed && self.spec.is_some_and(|spec| spec.category == Category::Mcp)
    }

    /// What a model sees, without the line in which a failure is told: that has its own place.
    fn answer(&self) -> &[Part] {
        match self.result.outcome {
            CallOutcome::Completed(_) => &self.result.llm_content,
            CallOutcome::Failed { .. } => self.result.llm_content.get(1..).unwrap_or_default(),
        }
    }

    fn failure(&self, error: &ToolError) -> Failure {
        // Many messages quote their cause; once is enough.
        let causes = error.causes.iter().filter(|cause| !error.message.contains(cause.as_str()));
        Failure::new(self.cause(), &error.message)
            .causes(causes.cloned())
            .any_hint(self.hint(error))
    }

    fn hint(&self, error: &ToolError) -> Option<String> {
        let name = &self.result.tool_name;
        match (error.kind, self.spec) {
            (ErrorKind::NotFound, None) if self.runtime.registry().has(name) => {
                Some("`tools.exclude` names it; `convoke config explain tools.exclude`".to_owned())
            }
            (ErrorKind::NotFound, None) => Some("`convoke tools list` shows them all".to_owned()),
            (ErrorKind::Validation, Some(_)) => {
                Some(format!("`convoke tools show {name}` lists its parameters"))
            }
            (ErrorKind::Timeout, _) => Some("`--timeout` gives it longer".to_owned()),
            (ErrorKind::Permission, Some(spec)) => self.permission_hint(spec, error),
            _ => None,
        }
    }

    fn permission_hint(&self, spec: &ToolSpec, error: &ToolError) -> Option<String> {
        let permit = |kind: Kind| format!("`--allow {kind}` permits it for this call");
        match self.consent.permission(spec.kind) {
            Permission::Deny => Some(format!(
                "{}; `convoke config explain policy.kinds.{}` says who denies it",
                permit(spec.kind),
                spec.kind
            )),
            Permission::Ask => Some("`--yes` consents".to_owned()),
            Permission::Allow if has(error, "outside") => {
                Some("`convoke config explain tools.allowedPaths` says who set them".to_owned())
            }
            Permission::Allow if has(error, "needs") => Some(permit(Kind::Execute)),
            Permission::Allow => None,
        }
    }
}

/// Tells whether an error carries a detail of this name.
fn has(error: &ToolError, detail: &str) -> bool {
    error.details.as_ref().is_some_and(|details| details.get(detail).is_some())
}

fn print_display(display: &Display, out: &Stream) {
    match display.format {
        DisplayFormat::Diff => display.text.lines().for_each(|line| print_diff_line(line, out)),
        DisplayFormat::Text | DisplayFormat::Markdown => print_text(&display.text, out),
    }
}

fn print_diff_line(line: &str, out: &Stream) {
    let style = match line.get(..1) {
        _ if line.starts_with("+++") || line.starts_with("---") => Some(Style::Name),
        Some("+") => Some(Style::Good),
        Some("-") => Some(Style::Bad),
        Some("@") => Some(Style::Place),
        _ => None,
    };
    match style {
        Some(style) => out.line(out.paint(style, out.printable(line))),
        None => out.line(out.printable(line)),
    }
}

fn print_parts(parts: &[Part], out: &Stream) {
    for part in parts {
        match part {
            Part::Text { text } | Part::Thought { text } => print_text(text, out),
            Part::Media { mime, data } => {
                let mime = out.printable(mime);
                out.line(format_args!(
                    "[{mime}, {} bytes in base64; --json prints them]",
                    data.len()
                ));
            }
            Part::Link { uri, title } => {
                let title = title.as_deref().map(|title| format!("{title}: ")).unwrap_or_default();
                out.line(out.printable(&format!("{title}{uri}")));
            }
            other => out.line(serde_json::to_string(other).unwrap_or_default()),
        }
    }
}

/// Writes a text, and ends its last line.
fn print_text(text: &str, out: &Stream) {
    out.text(out.printable(text));
    if !text.is_empty() && !text.ends_with('\n') {
        out.gap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diffs_are_coloured_where_there_is_colour() {
        let text = "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n same\n".to_owned();
        let display = Display { format: DisplayFormat::Diff, text: text.clone() };
        let plain = Stream::in_memory();
        print_display(&display, &plain);
        assert_eq!(plain.contents(), text);
        let terminal = Stream::on_terminal(80);
        print_display(&display, &terminal);
        assert!(terminal.contents().contains("\u{1b}[32m+new"), "{:?}", terminal.contents());
        assert!(terminal.contents().ends_with(" same\n"));
    }

    #[test]
    fn every_part_has_something_to_show() {
        let out = Stream::in_memory();
        let media = Part::Media { mime: "image/png".into(), data: "AAAA".into() };
        let link = Part::Link { uri: "https://a.b".into(), title: Some("A".into()) };
        print_parts(&[Part::text("one"), media, link], &out);
        assert_eq!(
            out.contents(),
            "one\n[image/png, 4 bytes in base64; --json prints them]\nA: https://a.b\n"
        );
        let terminal = Stream::on_terminal(80);
        let media = Part::Media { mime: "image/\u{1b}]0;x\u{7}".into(), data: "AAAA".into() };
        print_parts(&[media], &terminal);
        assert!(!terminal.contents().contains(['\u{1b}', '\u{7}']), "{:?}", terminal.contents());
    }
}
