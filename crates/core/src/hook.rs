//! The moments of a run at which others may have a say.

use crate::event::EventBody;
use crate::word::word_enum;

word_enum! {
    /// When a hook is called, and with which event.
    Moment {
        /// Before a tool runs, with what was asked for (`tool_call_requested`).
        BeforeTool = "before_tool",
        /// After a tool ran, or did not (`tool_call_completed`, `…_failed`, `…_denied`).
        AfterTool = "after_tool",
        /// Before the model is asked (`model_request`).
        BeforeModel = "before_model",
        /// When a person is asked about a call (`approval_asked`), or for one (`inquiry_asked`).
        Approval = "approval",
        /// Before a run ends, with how (`run_ended`).
        End = "end",
    }
}

impl Moment {
    /// Tells whether what follows can still be stopped.
    pub const fn can_be_guarded(self) -> bool {
        matches!(self, Self::BeforeTool | Self::BeforeModel | Self::Approval)
    }

    /// Returns the tool that an event is about, if it is about one.
    pub fn tool(body: &EventBody) -> Option<&str> {
        match body {
            EventBody::ToolCallRequested { tool_name, .. }
            | EventBody::ToolCallCompleted { tool_name, .. }
            | EventBody::ToolCallFailed { tool_name, .. }
            | EventBody::ToolCallDenied { tool_name, .. }
            | EventBody::ApprovalAsked { tool_name, .. }
            | EventBody::InquiryAsked { tool_name, .. } => Some(tool_name),
            _ => None,
        }
    }
}
