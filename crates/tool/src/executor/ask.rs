//! Between the halves: a person is asked, and nothing is held meanwhile.

use std::sync::Arc;

use convoke_core::hook::Moment;
use convoke_core::policy::RuleSpec;
use convoke_core::{
    CallId, Display, Effects, ErrorKind, EventBody, Kind, ToolCall, ToolError, ToolResult,
};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::end::{Stopped, Ticket, for_event};
use super::hooks::Person;
use super::prepare::{Decided, PreparedCall, decide_contained, linked};
use super::{CallOptions, ToolExecutor};
use crate::approve::{Answer, Consent, Objection, Question, Unanswered};
use crate::authorize::{Decision, Request};
use crate::record::RecordError;
use crate::registry::Entry;
use crate::task::Contained;

/// Who answered where a rule did that was granted meanwhile.
const BY_RULE: &str = "a rule that was granted meanwhile";
/// Who answered where a hook said no.
const BY_HOOK: &str = "a hook";

/// What came of asking.
pub(super) enum Asked {
    /// It may run.
    Consented(Box<PreparedCall>),
    /// It is over.
    Refused(Box<ToolResult>),
    /// Nobody answered, and it waits.
    Deferred(Box<ToolResult>),
}

impl From<Stopped> for Asked {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Deferred(result) => Self::Deferred(result),
            Stopped::Ended(result) => Self::Refused(result),
        }
    }
}

/// What came of asking once.
enum Once {
    Ended(Asked),
    /// What was consented to became something else, about which somebody has to be asked.
    Again(Box<PreparedCall>),
}

/// What is decided about once more when a rule is granted.
struct Matter {
    /// Its tool; none where no rule may answer.
    entry: Option<Arc<Entry>>,
    effects: Effects,
    description: String,
}

impl Matter {
    fn of(prepared: &PreparedCall) -> Self {
        let may_be_answered = prepared.ticket.may_be_answered_by_rule();
        Self {
            entry: prepared.ticket.entry().filter(|_| may_be_answered).cloned(),
            effects: prepared.effects.clone(),
            description: prepared.description.clone(),
        }
    }
}

/// What the answer to a question ends with in the events, where nobody gave one in time.
pub const UNANSWERED_IN_TIME: &str = "nobody answered in time";

/// How a question ended.
pub(super) enum Heard {
    Answer(Answer),
    /// Nobody answered in time.
    Silence,
    /// The run was stopped.
    Stopped,
}

impl ToolExecutor {
    /// Asks about a call and waits for the answer, holding nothing.
    pub async fn ask(&self, prepared: PreparedCall) -> Result<PreparedCall, Box<ToolResult>> {
        match self.ask_until_answered(prepared).await {
            Asked::Consented(prepared) => Ok(*prepared),
            Asked::Refused(result) | Asked::Deferred(result) => Err(result),
        }
    }

    pub(super) async fn ask_until_answered(&self, prepared: PreparedCall) -> Asked {
        let mut prepared = Box::new(prepared);
        loop {
            match self.ask_once(*prepared).await {
                Once::Again(next) => prepared = next,
                Once::Ended(asked) => {
                    if let Asked::Refused(result) = &asked {
                        self.tell_of(result).await;
                    }
                    return asked;
                }
            }
        }
    }

    async fn ask_once(&self, mut prepared: PreparedCall) -> Once {
        let ended = |result| Once::Ended(Asked::Refused(result));
        let Some(mut question) = prepared.question.take() else {
            return Once::Ended(Asked::Consented(Box::new(prepared)));
        };
        match self.previewed(&mut prepared).await {
            Some(Ok(preview)) => question.preview = preview,
            Some(Err(error)) => {
                prepared.ticket.saw(prepared.files.take_noted());
                let PreparedCall { ticket, options, changed_from, .. } = prepared;
                let Some(original) = changed_from else {
                    return ended(ticket.failed(error, None));
                };
                return self.ask_about_as_it_was((ticket, options), question, &original, &error);
            }
            None => return Once::Ended(prepared.ticket.stopped(None).into()),
        }
        self.make_showable(&mut question, &prepared.files.shown());
        if let Some(consent) = self.0.approver.consented_before(&question) {
            if prepared.changed_from.is_some() {
                self.note_changed(&mut prepared, &question);
                return self.hooked_after_consent(prepared).await;
            }
            let changed = consent.arguments.filter(|arguments| *arguments != *question.arguments);
            return self.go_on_with(prepared, question, changed).await;
        }
        let changed = self.0.approver.changed_before(&question.call);
        if prepared.changed_from.is_none()
            && let Some(changed) = changed.filter(|changed| *changed != *question.arguments)
        {
            return self.ask_about_changed(prepared, question, changed);
        }
        let asked = self.asked(&question);
        if let Err(error) = prepared.ticket.record(asked.clone()) {
            return ended(prepared.ticket.failed(error, None));
        }
        let hooks =
            self.0.hooks.tell(Moment::Approval, Some(&question.call), &asked, &self.0.recorder);
        let told = tokio::select! {
            biased;
            () = self.0.context.cancelled() => {
                return Once::Ended(prepared.ticket.stopped(None).into());
            }
            told = hooks => told,
        };
        if let Err(reason) = told {
            let objection = Objection { message: Some(reason.clone()), by: Some(BY_HOOK.into()) };
            return ended(refused(prepared.ticket, objection, reason));
        }
        let reason = question.reason.clone();
        let nobody = match self.put(&question, Matter::of(&prepared)).await {
            Heard::Answer(Answer::Yes(consent)) => {
                return self.consented(prepared, question, consent).await;
            }
            Heard::Answer(Answer::No(objection)) => {
                return ended(objected(prepared.ticket, objection));
            }
            Heard::Answer(Answer::Change(arguments)) => {
                return self.ask_about_changed(prepared, question, arguments);
            }
            // The question stays open: whoever takes the run up is asked.
            Heard::Stopped => {
                let why = "the run was stopped before anybody answered";
                let why = ToolError::new(ErrorKind::Cancelled, why);
                return Once::Ended(Asked::Deferred(prepared.ticket.deferred(why)));
            }
            Heard::Answer(Answer::Nobody) => format!("{reason}, and nobody can be asked here"),
            Heard::Silence => format!("{reason}, and {UNANSWERED_IN_TIME}"),
        };
        match self.0.limits.unanswered {
            Unanswered::Park => {
                let why = ToolError::unavailable(nobody);
                Once::Ended(Asked::Deferred(prepared.ticket.deferred(why)))
            }
            Unanswered::Deny => {
                let objection = Objection { message: Some(nobody.clone()), by: None };
                ended(refused(prepared.ticket, objection, nobody))
            }
        }
    }

    /// Asks a person whether a run goes on, for a reason that is not a call of a tool, and records the
    /// answer under `call`. Where nobody answers, it does not.
    pub async fn ask_to_go_on(
        &self,
        call: CallId,
        tool_name: &str,
        reason: &str,
    ) -> Result<(), RecordError> {
        let mut question = Question {
            call: call.clone(),
            agent: self.0.recorder.agent().clone(),
            run: self.0.recorder.run().clone(),
            tool_name: tool_name.to_owned(),
            kind: Kind::Think,
            arguments: Arc::default(),
            description: "go on with the run".to_owned(),
            preview: None,
            reason: reason.to_owned(),
            rules: Vec::new(),
            until: self.0.context.clock().now().after(self.0.limits.approval_timeout),
            fingerprint: String::new(),
            inquiry: None,
        };
        self.make_showable(&mut question, &[]);
        let asked = self.asked(&question);
        self.0.recorder.record(Some(&call), asked.clone())?;
        let (approved, message, by) = match self.put_freely(&question, &asked).await {
            Heard::Answer(Answer::Yes(consent)) => (true, None, consent.by),
            Heard::Answer(Answer::No(objection)) => (false, objection.message, objection.by),
            Heard::Answer(Answer::Change(_) | Answer::Nobody) => {
                (false, Some("nobody could be asked".into()), None)
            }
            Heard::Silence => (false, Some(UNANSWERED_IN_TIME.into()), None),
            Heard::Stopped => (false, Some("the run was stopped".into()), None),
        };
        let answered = EventBody::ApprovalAnswered {
            tool_name: tool_name.to_owned(),
            approved,
            message,
            by,
            arguments: None,
            rules: Vec::new(),
        };
        self.0.recorder.record(Some(&call), answered)
    }

    /// Puts a question that no rule answers: hooks are told of it and may say no, then a person is asked.
    pub(super) async fn put_freely(&self, question: &Question, asked: &EventBody) -> Heard {
        let call = Some(&question.call);
        let hooks = self.0.hooks.tell(Moment::Approval, call, asked, &self.0.recorder);
        let told = tokio::select! {
            biased;
            () = self.0.context.cancelled() => return Heard::Stopped,
            told = hooks => told,
        };
        if let Err(reason) = told {
            return Heard::Answer(Answer::no_because(reason).by(BY_HOOK));
        }
        let (effects, description) = (Effects::default(), String::new());
        self.put(question, Matter { entry: None, effects, description }).await
    }

    /// Asks the tool what the call would change; nothing, if the run was stopped meanwhile.
    async fn previewed(
        &self,
        prepared: &mut PreparedCall,
    ) -> Option<Result<Option<Display>, ToolError>> {
        let context = &self.0.context;
        let patience = self.0.limits.preview_timeout;
        prepared.files.unpin();
        let shown = context.clone().with_files(Arc::clone(&prepared.files));
        let shown = shown.forbidding(prepared.forbidden.clone());
        let previewed = tokio::time::timeout(patience, prepared.invocation.preview(shown));
        tokio::select! {
            biased;
            () = context.cancelled() => None,
            previewed = previewed => Some(previewed.unwrap_or_else(|_| {
                Err(ToolError::failed("the tool took too long to say what it would change"))
            })),
        }
    }

    /// Makes a question ready to be shown: without secrets, and with what stands for all of it, the states of the
    /// files that the call would change included.
    pub(super) fn make_showable(&self, question: &mut Question, files: &[String]) {
        let secrets = self.0.recorder.secrets();
        question.description = secrets.hide(&question.description).into_owned();
        if let Some(preview) = &mut question.preview {
            preview.text = secrets.hide(&preview.text).into_owned();
        }
        let Question { tool_name, arguments, description, preview, reason, .. } = &*question;
        let mut all = vec![
            serde_json::json!(tool_name),
            serde_json::json!(arguments),
            serde_json::json!(description),
            serde_json::json!(preview),
            serde_json::json!(reason),
        ];
        all.extend(question.inquiry.as_ref().map(|inquiry| serde_json::json!(inquiry.wanted)));
        if !files.is_empty() {
            all.push(serde_json::json!(files));
        }
        let all = Value::Array(all);
        let hash = Sha256::digest(all.to_string());
        let number =
            hash.iter().take(16).fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
        question.fingerprint = format!("{number:032x}");
    }

    fn asked(&self, question: &Question) -> EventBody {
        EventBody::ApprovalAsked {
            tool_name: question.tool_name.clone(),
            kind: question.kind,
            description: question.description.clone(),
            arguments: for_event(&question.arguments, self.0.limits.max_event_bytes),
            preview: question.preview.clone(),
            reason: question.reason.clone(),
            rules: question.rules.clone(),
            until: Some(question.until),
            fingerprint: question.fingerprint.clone(),
        }
    }

    /// Puts a question to whoever answers. A rule that is granted meanwhile may answer it, too.
    async fn put(&self, question: &Question, matter: Matter) -> Heard {
        let mut granted = self.0.granted.0.subscribe();
        granted.mark_changed();
        let (approver, asked) = (Arc::clone(&self.0.approver), question.clone());
        let mut answer = Contained::spawn(async move { approver.ask(asked).await });
        let mut silence = std::pin::pin!(tokio::time::sleep(self.0.limits.approval_timeout));
        loop {
            tokio::select! {
                biased;
                () = self.0.context.cancelled() => return Heard::Stopped,
                Ok(()) = granted.changed() => {
                    let rules = granted.borrow_and_update().clone();
                    if self.is_granted(question, &matter, &rules) {
                        return Heard::Answer(Answer::yes().by(BY_RULE));
                    }
                }
                // An approver that breaks down is nobody.
                answer = &mut answer => return Heard::Answer(answer.unwrap_or(Answer::Nobody)),
                () = &mut silence => return Heard::Silence,
            }
        }
    }

    fn is_granted(&self, question: &Question, matter: &Matter, granted: &[RuleSpec]) -> bool {
        let (false, Some(entry)) = (granted.is_empty(), &matter.entry) else { return false };
        let arguments = Value::clone(&question.arguments);
        // A link may have appeared since it was asked about.
        let places = self.locate(&matter.effects).unwrap_or_default();
        let led_to: Vec<_> = places.iter().map(|(_, place)| place.resolved()).collect();
        let request = Request {
            call: &ToolCall::new(question.call.clone(), &question.tool_name, arguments),
            spec: entry.tool.spec(),
            effects: &matter.effects,
            description: &matter.description,
            agent: &question.agent,
            linked: &linked(&places, &led_to),
            granted,
            context: &self.0.context,
        };
        let (decision, _) = decide_contained(self.0.authorizer.as_ref(), &request);
        matches!(decision, Decision::Allow { .. })
    }

    /// A person changed the arguments: the call is checked and decided about from the start, and the person is shown
    /// what it would do now. Arguments that do not fit are said, and the call is asked about as it was.
    fn ask_about_changed(
        &self,
        prepared: PreparedCall,
        question: Question,
        arguments: Value,
    ) -> Once {
        let PreparedCall { ticket, options, changed_from, .. } = prepared;
        let original = changed_from.unwrap_or_else(|| Arc::clone(&question.arguments));
        let call =
            ToolCall::new(question.call.clone(), question.tool_name.clone(), arguments.clone());
        let mut prepared = match self.decide(ticket, call, options) {
            Ok((prepared, _)) => prepared,
            Err((ticket, error)) => {
                return self.ask_about_as_it_was((ticket, options), question, &original, &error);
            }
        };
        let until = self.0.context.clock().now().after(self.0.limits.approval_timeout);
        let description = prepared.description.clone();
        let decided = prepared.question.take();
        let (arguments, reason) = decided
            .map_or((Arc::new(arguments), question.reason.clone()), |decided| {
                (decided.arguments, decided.reason)
            });
        let rules = Vec::new();
        let question = Question { arguments, description, reason, rules, until, ..question };
        prepared.question = Some(question);
        prepared.changed_from = Some(original);
        prepared.ticket.only_a_person_answers();
        Once::Again(Box::new(prepared))
    }

    /// Asks about a call with the arguments that the model gave, since those of the person do not fit.
    fn ask_about_as_it_was(
        &self,
        (ticket, options): (Ticket, CallOptions),
        question: Question,
        original: &Value,
        problem: &ToolError,
    ) -> Once {
        let call = ToolCall::new(question.call, question.tool_name, original.clone());
        match self.decide(ticket, call, options) {
            Ok((mut prepared, _)) => {
                if let Some(question) = &mut prepared.question {
                    let reason = &question.reason;
                    question.reason =
                        format!("the changed arguments do not fit ({}); {reason}", problem.message);
                }
                Once::Again(Box::new(prepared))
            }
            Err((ticket, error)) => Once::Ended(Asked::Refused(ticket.answered(error))),
        }
    }

    /// Somebody said yes. Other arguments make it another call: it is checked, decided about and shown to
    /// hooks like any, only that nobody has to be asked about just what they wrote.
    async fn consented(
        &self,
        prepared: PreparedCall,
        question: Question,
        consent: Consent,
    ) -> Once {
        let ended = |result| Once::Ended(Asked::Refused(result));
        let Consent { arguments, rules, by } = consent;
        if prepared.changed_from.is_some() {
            return self.consented_to_changed(prepared, &question, by).await;
        }
        let changed = arguments.filter(|arguments| *arguments != *question.arguments);
        let limit = self.0.limits.max_event_bytes;
        let answered = EventBody::ApprovalAnswered {
            tool_name: question.tool_name.clone(),
            approved: true,
            message: None,
            by,
            arguments: changed.as_ref().map(|arguments| for_event(arguments, limit)),
            rules: rules.clone(),
        };
        if let Err(error) = prepared.ticket.record(answered) {
            return ended(prepared.ticket.failed(error, None));
        }
        if !rules.is_empty() {
            self.0.granted.0.send_modify(|granted| granted.extend(rules));
        }
        self.go_on_with(prepared, question, changed).await
    }

    /// Goes on with a call that the user consented to. Other arguments make it another call: it is checked, decided about
    /// and shown to hooks like any, only that nobody has to be asked about just what they wrote.
    async fn go_on_with(
        &self,
        prepared: PreparedCall,
        question: Question,
        changed: Option<Value>,
    ) -> Once {
        let ended = |result| Once::Ended(Asked::Refused(result));
        let Some(arguments) = changed else {
            return Once::Ended(Asked::Consented(Box::new(prepared)));
        };
        let PreparedCall { mut ticket, options, files, .. } = prepared;
        let shown = for_event(&arguments, self.0.limits.max_event_bytes);
        ticket.note(format!("The user changed the arguments of this call to: {shown}"));
        let call = ToolCall::new(question.call, question.tool_name, arguments);
        let mut prepared = match self.decide(ticket, call, options) {
            Ok((prepared, _)) => prepared,
            Err((ticket, error)) => return ended(ticket.answered(error)),
        };
        prepared.question = None;
        // The files that were shown have to be as they were shown.
        prepared.files = files;
        self.hooked_after_consent(prepared).await
    }

    /// Somebody said yes to the arguments that they changed, and saw what these do.
    async fn consented_to_changed(
        &self,
        mut prepared: PreparedCall,
        question: &Question,
        by: Option<String>,
    ) -> Once {
        let arguments = self.note_changed(&mut prepared, question);
        let answered = EventBody::ApprovalAnswered {
            tool_name: question.tool_name.clone(),
            approved: true,
            message: None,
            by,
            arguments: Some(arguments),
            rules: Vec::new(),
        };
        if let Err(error) = prepared.ticket.record(answered) {
            return Once::Ended(Asked::Refused(prepared.ticket.failed(error, None)));
        }
        self.hooked_after_consent(prepared).await
    }

    /// Tells the model which arguments the call has now, and returns them as events show them.
    fn note_changed(&self, prepared: &mut PreparedCall, question: &Question) -> Arc<Value> {
        let arguments = for_event(&question.arguments, self.0.limits.max_event_bytes);
        let note = format!("The user changed the arguments of this call to: {arguments}");
        prepared.ticket.note(note);
        arguments
    }

    async fn hooked_after_consent(&self, prepared: PreparedCall) -> Once {
        match self.asked_hooks(Decided::Ready(prepared), Person::Consented).await {
            Decided::Ready(prepared) => Once::Ended(Asked::Consented(Box::new(prepared))),
            Decided::Ask(prepared) => Once::Again(Box::new(prepared)),
            Decided::Answered(result) => Once::Ended(Asked::Refused(result)),
            Decided::Deferred(result) => Once::Ended(Asked::Deferred(result)),
        }
    }
}

pub(super) fn objected(ticket: Ticket, objection: Objection) -> Box<ToolResult> {
    let said = objection.message.as_ref().map(|said| format!(": {said}")).unwrap_or_default();
    refused(ticket, objection, format!("the user said no{said}"))
}

fn refused(ticket: Ticket, objection: Objection, told: String) -> Box<ToolResult> {
    let answered = EventBody::ApprovalAnswered {
        tool_name: ticket.tool_name().to_owned(),
        approved: false,
        message: objection.message,
        by: objection.by,
        arguments: None,
        rules: Vec::new(),
    };
    match ticket.record(answered) {
        Err(error) => ticket.failed(error, None),
        Ok(()) => ticket.denied(ToolError::permission(told)),
    }
}
