//! What the person who typed the command has consented to by typing it.

use std::collections::BTreeMap;
use std::io::{self, BufRead, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use convoke::config::PolicyConfig;
use convoke_core::{Kind, Permission};
use convoke_tool::{Answer, Approver, Inquiry, Question};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::commands::ask::is_yes;
use crate::commands::inquiry::{Answering, Step};
use crate::commands::run::approve::{Keys, Said, terminal};
use crate::output::{Stream, Style};

/// Who answered, as events have it.
const BY: &str = "terminal";

/// The permission of each kind of call, as it is for this one command.
#[derive(Debug)]
pub(super) struct Consent(BTreeMap<Kind, Permission>);

impl Consent {
    /// Asking somebody who just asked for it would be idle, except about programs: those do more than
    /// their command line says.
    pub(super) fn new(policy: &PolicyConfig, allow: &[Kind]) -> Self {
        let decide = |kind: &Kind| {
            let permission = match policy.permission(*kind) {
                _ if allow.contains(kind) => Permission::Allow,
                Permission::Ask if *kind != Kind::Execute => Permission::Allow,
                configured => configured,
            };
            (*kind, permission)
        };
        Self(Kind::ALL.iter().map(decide).collect())
    }

    /// Puts it in the place of what is configured.
    pub(super) fn apply(&self, policy: &mut PolicyConfig) {
        policy.kinds = self.0.clone();
    }

    /// Returns the permission of a kind.
    pub(super) fn permission(&self, kind: Kind) -> Permission {
        self.0.get(&kind).copied().unwrap_or(Permission::Deny)
    }
}

/// Asks the person at the terminal, if there is one.
#[derive(Debug)]
pub(super) struct AskAtTerminal {
    stream: Stream,
    yes: bool,
    open: Arc<OpenInquiry>,
}

/// What the call inquires, if it does: Ctrl-C then says no to that, and the call goes on.
#[derive(Debug, Default)]
pub(super) struct OpenInquiry(Mutex<Option<CancellationToken>>);

impl OpenInquiry {
    /// Says no to what the call inquires, if it does.
    pub(super) fn decline(&self) -> bool {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        open.inspect(CancellationToken::cancel).is_some()
    }

    fn set(&self, open: Option<CancellationToken>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = open;
    }
}

/// Closes an inquiry, however it ends.
struct Close<'a>(&'a OpenInquiry);

impl Drop for Close<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

impl AskAtTerminal {
    /// Asks on this stream. Where the answer to whether something may happen is yes already, only what a call
    /// has to know is asked.
    pub(super) fn new(stream: &Stream, yes: bool, open: Arc<OpenInquiry>) -> Self {
        Self { stream: stream.clone(), yes, open }
    }

    /// Asks what a call has to know, line by line.
    async fn inquire(&self, tool_name: &str, inquiry: Arc<Inquiry>) -> Answer {
        if !self.stream.is_terminal() || terminal().is_none() {
            return Answer::Nobody;
        }
        let mut answering = Answering::new(inquiry);
        let declined = CancellationToken::new();
        self.open.set(Some(declined.clone()));
        let _close = Close(&self.open);
        Keys::Terminal.forget();
        answering.show(tool_name, None, &self.stream);
        loop {
            let line = Keys::Terminal.line(answering.typed());
            answering.prompt(&self.stream);
            let Some(mut line) = line else { return Answer::Nobody };
            let said = tokio::select! {
                said = line.next() => said,
                () = declined.cancelled() => {
                    self.stream.line("\n(declined; Ctrl-C again stops the call)");
                    return Answer::no().by(BY);
                }
            };
            drop(line);
            let line = match &said {
                Said::Line(line) => line.as_deref(),
                Said::Edited(_) => None,
            };
            match answering.hear(line, &self.stream) {
                Step::Ask => {}
                Step::Send(entered) => {
                    return Answer::with_arguments(Value::Object(entered)).by(BY);
                }
                Step::Decline => return Answer::no().by(BY),
            }
        }
    }
}

#[async_trait]
impl Approver for AskAtTerminal {
    async fn ask(&self, question: Question) -> Answer {
        if let Some(inquiry) = &question.inquiry {
            return self.inquire(&question.tool_name, Arc::clone(inquiry)).await;
        }
        if self.yes {
            return Answer::yes();
        }
        if !self.stream.is_terminal() || !io::stdin().is_terminal() {
            return Answer::Nobody;
        }
        Keys::Terminal.forget();
        let name = self.stream.paint(Style::Name, self.stream.printable(&question.tool_name));
        let wants = match question.kind {
            Kind::Execute => "wants to run a program",
            _ => "has to be asked about",
        };
        self.stream.line(format_args!("{name} {wants}:"));
        for line in question.description.lines() {
            self.stream.line(format_args!("  {}", self.stream.printable(line)));
        }
        if question.kind != Kind::Execute {
            self.stream.line(self.stream.printable(&question.reason));
        }
        self.stream.text("May it? [y/N] ");
        self.stream.flush();
        let answer = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            io::stdin().lock().read_line(&mut line).map(|_| line)
        });
        match answer.await {
            Ok(Ok(line)) if is_yes(&line) => Answer::yes().by(BY),
            _ => Answer::no().by(BY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_a_command_consents_except_to_programs_and_to_what_is_denied() {
        let mut policy = PolicyConfig::default();
        policy.kinds.insert(Kind::Delete, Permission::Deny);
        let plain = Consent::new(&policy, &[]);
        assert_eq!(plain.permission(Kind::Edit), Permission::Allow);
        assert_eq!(plain.permission(Kind::Delete), Permission::Deny);
        assert_eq!(plain.permission(Kind::Execute), Permission::Ask);
        let lifted = Consent::new(&policy, &[Kind::Execute, Kind::Delete]);
        lifted.apply(&mut policy);
        assert_eq!(policy.permission(Kind::Execute), Permission::Allow);
        assert_eq!(policy.permission(Kind::Delete), Permission::Allow);
    }
}
