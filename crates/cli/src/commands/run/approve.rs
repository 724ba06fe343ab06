//! Asking the person at the terminal, one question at a time, without losing sight of the run.

mod edit;
mod keyboard;
mod question;
mod save;

use std::collections::VecDeque;

use async_trait::async_trait;
use convoke_tool::{Answer, Approver, Question};
use tokio::sync::{mpsc, oneshot};

pub(in crate::commands) use self::keyboard::{Awaited, Keys, Said, Typed, terminal};
pub(super) use self::question::{Asked, Unanswered};
pub(crate) use self::save::save;
use crate::environment::Environment;
use crate::output::Output;
use crate::pager::Pager;
use crate::session::Session;

/// Carries questions from calls to the person.
#[derive(Debug)]
pub(in crate::commands) struct Approvals {
    sender: mpsc::UnboundedSender<Asked>,
    receiver: Option<mpsc::UnboundedReceiver<Asked>>,
    /// Those that came while another was asked.
    waiting: VecDeque<Asked>,
    somebody: bool,
    tools: Tools,
}

/// What the person uses to answer.
#[derive(Clone, Debug)]
struct Tools {
    keys: Keys,
    pager: Option<Pager>,
    editor: Option<edit::Editor>,
    /// Where rules are saved.
    rules: Option<std::path::PathBuf>,
}

impl Approvals {
    /// Finds out whether there is somebody to ask.
    pub(in crate::commands) fn new(output: &Output, session: &Session<'_>) -> Self {
        let somebody = output.err.is_terminal() && terminal().is_some();
        let mut approvals = Self::of(somebody, session.environment(), session.rules_file());
        approvals.tools.keys = Keys::Terminal;
        approvals
    }

    /// Has no terminal to read answers from.
    pub(super) fn of(
        somebody: bool,
        environment: &Environment,
        rules: Option<std::path::PathBuf>,
    ) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let pager = somebody.then(|| Pager::find(environment)).flatten();
        let editor = somebody.then(|| edit::Editor::find(environment)).flatten();
        let tools = Tools { keys: Keys::Nowhere, pager, editor, rules };
        Self { sender, receiver: Some(receiver), waiting: VecDeque::new(), somebody, tools }
    }

    pub(in crate::commands) fn approver(&self) -> AskAtTerminal {
        AskAtTerminal { sender: self.somebody.then(|| self.sender.clone()) }
    }

    /// Returns where answers are typed.
    pub(super) const fn keys(&self) -> Keys {
        self.tools.keys
    }

    /// Returns how many more questions wait.
    pub(super) fn waiting(&mut self) -> usize {
        if let Some(receiver) = &mut self.receiver {
            while let Ok(asked) = receiver.try_recv() {
                self.waiting.push_back(asked);
            }
        }
        self.waiting.retain(|asked| !asked.is_withdrawn());
        self.waiting.len()
    }

    /// Waits for the next question.
    pub(super) async fn next(&mut self) -> Asked {
        if let Some(asked) = self.waiting.pop_front() {
            return asked;
        }
        let next = match &mut self.receiver {
            Some(receiver) => receiver.recv().await,
            None => None,
        };
        match next {
            Some(asked) => asked,
            None => std::future::pending().await,
        }
    }
}

/// Asks through the one who watches the run.
#[derive(Debug)]
pub(in crate::commands) struct AskAtTerminal {
    sender: Option<mpsc::UnboundedSender<Asked>>,
}

#[async_trait]
impl Approver for AskAtTerminal {
    async fn ask(&self, question: Question) -> Answer {
        let Some(sender) = &self.sender else { return Answer::Nobody };
        let (answer, answered) = oneshot::channel();
        if sender.send(Asked::new(question, answer)).is_err() {
            return Answer::Nobody;
        }
        answered.await.unwrap_or(Answer::Nobody)
    }
}
