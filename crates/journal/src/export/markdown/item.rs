//! What happened, in order.

use convoke_core::event::{PlanStep, Reflection};
use convoke_core::{Display, DisplayFormat, Part};

use super::prose::prose;
use super::text::{code, fenced, html, plain, quoted, spoken};
use super::value;
use crate::export::amounts::{count, time, tokens, usage};
use crate::export::{brief, words};
use crate::timeline::{
    Agent, AgentIndex, Approval, Call, CallState, End, Gap, Item, ItemKind, ModelCall, ModelState,
    Note, Span, Timeline, Tone, Turn,
};

/// Markdown in the making.
pub(super) struct Writer<'t, 'e> {
    pub(super) timeline: &'t Timeline<'e>,
    pub(super) out: String,
    /// How many gaps were shown.
    pub(super) gaps: usize,
    /// How many turns and agents are open.
    pub(super) inside: usize,
}

impl<'e> Writer<'_, 'e> {
    /// Writes what all agents did.
    pub(super) fn agents(&mut self) {
        for (number, index) in self.timeline.roots.iter().enumerate() {
            match self.timeline.agent(*index) {
                Some(agent) if number == 0 => self.items(&agent.items, agent),
                _ => self.child(*index),
            }
        }
    }

    fn items(&mut self, items: &[Item<'e>], agent: &Agent<'e>) {
        for item in items {
            if agent.depth == 0 {
                self.gaps_before(item.span);
            }
            self.item(item, agent);
        }
    }

    fn gaps_before(&mut self, span: Span) {
        let is_over = |gap: &&Gap| gap.span.end() <= span.start;
        while let Some(gap) = self.timeline.gaps.get(self.gaps).filter(is_over) {
            self.gaps += 1;
            self.line(&format!("*{} {}*", time(gap.span.duration), words::gap(gap.reason)));
        }
    }

    fn item(&mut self, item: &Item<'e>, agent: &Agent<'e>) {
        match &item.kind {
            ItemKind::Asked { text, attachments, history } => {
                self.heading("Asked", "");
                self.asked(text, attachments, *history);
            }
            ItemKind::Turn(turn) => self.turn(item, turn, agent),
            ItemKind::Model(model) => self.model(model, item, agent),
            ItemKind::Call(call) => self.call(call, item),
            ItemKind::Agent(index) => self.child(*index),
            ItemKind::Compaction { before, after, summary: Some(summary) } => {
                let (before, after) = (tokens(*before), tokens(*after));
                self.line(&format!("**Conversation shortened** {before} → {after} tokens"));
                self.fold("What is kept", &prose(summary));
            }
            ItemKind::Compaction { summary: None, .. } => {
                self.line("**The conversation could not be made shorter**");
            }
            ItemKind::Reflection(found) => self.reflection(found),
            ItemKind::Plan(steps) => self.plan(steps),
            ItemKind::AnswerChecked { value: answer, problems } => {
                let fits = if problems.is_empty() { "has" } else { "does not have" };
                self.line(&format!("**The answer {fits} the shape it has to have**"));
                if !problems.is_empty() {
                    self.out.push_str(&fenced("", &problems.join("\n")));
                    self.out.push_str(&value(answer));
                }
            }
            ItemKind::Note(note) => self.note(note),
            ItemKind::Plain { kind, data } => {
                self.line(&format!("**{}**", plain(&kind.replace('_', " "))));
                if !data.is_null() {
                    self.out.push_str(&fenced("json", &words::json(data)));
                }
            }
            ItemKind::Ended(end) => self.ended(end, agent),
        }
    }

    fn line(&mut self, markdown: &str) {
        self.out.push_str(markdown);
        self.out.push_str("\n\n");
    }

    /// Writes a heading; within a turn or a fold it is a line.
    fn heading(&mut self, title: &str, facts: &str) {
        if self.inside == 0 {
            self.line(&format!("## {title}"));
            if !facts.is_empty() {
                self.line(facts);
            }
        } else {
            self.line(format!("**{title}** {facts}").trim_end());
        }
    }

    /// Writes something folded.
    fn fold(&mut self, title: &str, markdown: &str) {
        self.out.push_str(&format!("<details>\n<summary>{}</summary>\n\n", html(title)));
        self.out.push_str(markdown);
        self.out.push_str("</details>\n\n");
    }

    fn asked(&mut self, text: &str, attachments: &[&Part], history: usize) {
        self.out.push_str(&spoken(text));
        for part in attachments {
            self.line(&plain(&brief::one_line(&words::part(part), 200)));
        }
        if history > 0 {
            let history = count(u64::try_from(history).unwrap_or(u64::MAX), "message");
            self.line(&format!("After an earlier conversation of {history}."));
        }
    }

    fn turn(&mut self, item: &Item<'e>, turn: &Turn<'e>, agent: &Agent<'e>) {
        let facts = [Some(took(item)), usage(&turn.usage)];
        let facts = facts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        self.heading(&format!("Turn {}", turn.number), &facts);
        self.inside += 1;
        self.items(&turn.items, agent);
        self.inside -= 1;
    }

    fn model(&mut self, model: &ModelCall<'_>, item: &Item<'_>, agent: &Agent<'_>) {
        let state = words::model_state(&model.state).1;
        let is_plain = model.purpose.is_turn() && state.is_empty() && model.model == agent.model;
        if !is_plain {
            let facts = [
                Some(format!("**{}**", words::purpose(model.purpose))),
                (!state.is_empty()).then(|| state.to_owned()),
                (model.model != agent.model).then(|| code(model.model)),
                Some(took(item)),
                usage(&model.usage),
            ];
            self.line(&facts.into_iter().flatten().collect::<Vec<_>>().join(" · "));
        }
        for retry in &model.retries {
            let (attempt, delay) = (retry.attempt, time(retry.delay));
            self.line(&format!("↻ Attempt {attempt} after {delay}: {}", plain(retry.reason)));
        }
        if let Some(notice) = model.notice {
            self.fold("It was told", &prose(notice));
        }
        if !model.thoughts.trim().is_empty() {
            self.fold("Thought", &prose(&model.thoughts));
        }
        if !model.words.trim().is_empty() {
            if model.purpose.is_turn() {
                self.out.push_str(&prose(&model.words));
            } else {
                self.fold("It said", &prose(&model.words));
            }
        }
        if let ModelState::Failed(failure) = &model.state {
            let hint = failure.hint.map(|hint| format!("\n{hint}")).unwrap_or_default();
            let text = format!("{}: {}{hint}", failure.error, failure.message);
            self.out.push_str(&fenced("", &text));
        }
    }

    fn call(&mut self, call: &Call<'e>, item: &Item<'e>) {
        let (mood, state) = words::call_state(&call.state);
        let facts = [
            brief::arguments(call.arguments),
            brief::result(call),
            time(call.took.unwrap_or(item.span.duration)),
        ];
        let facts = facts.iter().filter(|fact| !fact.is_empty()).map(|fact| html(fact));
        let facts = facts.collect::<Vec<_>>().join(" · ");
        self.out.push_str("<details>\n<summary>");
        self.out.push_str(&format!("{} {state} <code>{}</code> ", mood.sign(), html(call.tool)));
        self.out.push_str(&format!("{facts}</summary>\n\n"));
        self.inside(call);
        self.out.push_str("</details>\n\n");
        call.agents.iter().for_each(|index| self.child(*index));
    }

    fn inside(&mut self, call: &Call<'_>) {
        if let Some((decision, rule)) = call.decision {
            self.line(&format!("Policy: {} ({})", plain(decision), plain(rule)));
        }
        if let Some(approval) = &call.approval {
            self.approval(approval, call.display);
        }
        if let Some(display) = call.display {
            self.show(display);
        }
        if !call.arguments.is_null() {
            self.line("Arguments:");
            self.out.push_str(&fenced("json", &words::json(call.arguments)));
        }
        let content = words::parts(call.content);
        if !content.trim().is_empty() {
            self.line("Result, as the model sees it:");
            self.out.push_str(&fenced("", &content));
        } else if let CallState::Completed(value) = call.state {
            self.line("Result:");
            self.out.push_str(&fenced("json", &words::json(value)));
        }
        if let CallState::Failed(error) | CallState::Denied(error) = call.state
            && content.trim().is_empty()
        {
            self.out.push_str(&fenced("", &error.message));
        }
        if call.content.is_empty() && !call.progress.is_empty() {
            self.line("Output so far:");
            self.out.push_str(&fenced("", &call.progress));
        }
    }

    fn approval(&mut self, approval: &Approval<'_>, display: Option<&Display>) {
        let answer = match approval.approved {
            Some(true) => "allowed",
            Some(false) => "not allowed",
            None => "not answered",
        };
        let said = approval.words.map(|words| format!(": “{}”", plain(words))).unwrap_or_default();
        let asked = plain(approval.description);
        let after = time(approval.span.duration);
        let by = approval.by.map(|who| format!(" by {}", plain(who))).unwrap_or_default();
        self.line(&format!("Asked: {asked}. **{answer}** after {after}{by}{said}"));
        if !approval.granted.is_empty() {
            let rules = plain(&words::rules(approval.granted));
            self.line(&format!("Allowed from then on: {rules}"));
        }
        if let Some(changed) = approval.changed {
            self.line("Changed arguments:");
            self.out.push_str(&fenced("json", &words::json(changed)));
        }
        if let Some(preview) = approval.preview.filter(|preview| Some(*preview) != display) {
            self.show(preview);
        }
    }

    fn show(&mut self, display: &Display) {
        self.out.push_str(&match display.format {
            DisplayFormat::Markdown => prose(&display.text),
            DisplayFormat::Diff => fenced("diff", &display.text),
            DisplayFormat::Text => fenced("", &display.text),
        });
    }

    fn child(&mut self, index: AgentIndex) {
        let Some(agent) = self.timeline.agent(index) else { return };
        let (mood, ending) = words::ending(agent);
        let used = agent.end.map(|end| end.usage);
        let used = used.or_else(|| agent.reported.map(|reported| reported.usage));
        let facts = [
            Some(count(agent.turns.into(), "turn")),
            Some(time(agent.span.duration)),
            usage(&used.unwrap_or(agent.usage)),
        ];
        let facts = facts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        self.out.push_str(&format!(
            "<details>\n<summary>Agent <b>{}</b> {} {ending} · {facts}</summary>\n\n",
            html(&self.timeline.label(index)),
            mood.sign(),
        ));
        self.inside += 1;
        self.items(&agent.items, agent);
        self.inside -= 1;
        self.out.push_str("</details>\n\n");
    }

    fn reflection(&mut self, found: &Reflection) {
        self.line(&format!("**Reflection** · {}", words::word(&found.verdict)));
        self.out.push_str(&prose(&found.assessment));
        for lesson in &found.lessons {
            self.out.push_str(&format!("- {}\n", plain(lesson)));
        }
        for failure in &found.tool_failures {
            let next = failure.suggestion.as_deref().map(|next| format!(" → {}", plain(next)));
            let (tool, error) = (code(&failure.tool_name), plain(&failure.error));
            self.out.push_str(&format!("- {tool} {error}{}\n", next.unwrap_or_default()));
        }
        if let Some(next) = &found.next_focus {
            self.out.push_str(&format!("- Next: {}\n", plain(next)));
        }
        self.out.push('\n');
    }

    fn plan(&mut self, steps: &[PlanStep]) {
        self.line("**Plan**");
        for step in steps {
            let after = step.depends_on.join(", ");
            let parts = [
                plain(&step.id),
                words::word(&step.action_type),
                step.tool.as_deref().map(code).unwrap_or_default(),
                plain(&brief::arguments(&step.params)),
                if after.is_empty() { after } else { format!("after {}", plain(&after)) },
            ];
            let parts: Vec<&str> =
                parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
            self.out.push_str(&format!("- {}\n", parts.join(" · ")));
        }
        self.out.push('\n');
    }

    fn note(&mut self, note: &Note) {
        let sign = match note.tone {
            Tone::Quiet => "",
            Tone::Warning => "⚠ ",
            Tone::Error => "✕ ",
        };
        self.line(&format!("**{sign}{}**", plain(&note.title)));
        if !note.text.is_empty() {
            self.out.push_str(&quoted(&prose(&note.text)));
        }
    }

    fn ended(&mut self, end: &End<'_>, agent: &Agent<'_>) {
        let (mood, ending) = words::outcome(end.outcome);
        let used = usage(&end.usage).map(|used| format!(" · {used}")).unwrap_or_default();
        self.line(&format!("**Ended** {} {ending}{used}", mood.sign()));
        if let Some(message) = &end.outcome.message {
            self.out.push_str(&fenced("", message));
        }
        if let Some(partial) = &end.outcome.partial {
            self.line("What there was until then:");
            self.out.push_str(&value(partial));
        }
        // The last answer of the main agent stands at the top.
        let is_on_top = agent.depth == 0 && agent.end.is_some_and(|last| last == *end);
        if let Some(answer) = end.answer.filter(|_| !is_on_top && !end.is_said) {
            self.out.push_str(&value(answer));
        }
    }
}

fn took(item: &Item<'_>) -> String {
    let open = if item.span.open { " and not finished" } else { "" };
    format!("{}{open}", time(item.span.duration))
}
