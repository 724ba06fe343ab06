//! The promises, each with its name.

use std::fmt;

macro_rules! checks {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// One promise that every tool makes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Check { $($(#[$doc])* $variant),+ }

        impl Check {
            /// Every check, in the order of a report.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the name of the check.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

checks! {
    /// The suite has what it needs: a directory, and an example for a tool that takes arguments.
    Setup = "setup",
    /// The name is one that every provider accepts.
    Name = "name",
    /// There is a description, and it ends a sentence.
    Description = "description",
    /// The parameters are the schema of an object, and a valid one.
    Parameters = "parameters",
    /// Every parameter has a description.
    ParameterDescriptions = "parameter_descriptions",
    /// Every required parameter is a parameter.
    Required = "required",
    /// The schema of the value, if there is one, is valid.
    Output = "output",
    /// Other spellings stand for parameters, and are not parameters themselves.
    Aliases = "aliases",
    /// Effect rules name parameters.
    EffectRules = "effect_rules",
    /// What only looks can be repeated.
    Repeat = "repeat",
    /// The tool says the same about itself every time, also after it was called.
    StableSpec = "stable_spec",
    /// An argument that is no parameter is refused as `validation`, by name.
    UnknownArgument = "unknown_argument",
    /// A required argument that is missing is refused as `validation`, by name.
    MissingArgument = "missing_argument",
    /// An argument of the wrong type is refused as `validation`, by name.
    WrongType = "wrong_type",
    /// `null` for an optional argument means that it is not given.
    NullOptional = "null_optional",
    /// Ten megabytes of arguments are refused as `validation`, in few words.
    LargeArguments = "large_arguments",
    /// Arguments a thousand levels deep are refused as `validation`, in few words.
    DeepArguments = "deep_arguments",
    /// A path with a NUL byte is refused as `validation`.
    NulInPath = "nul_in_path",
    /// A path outside the allowed roots is refused as `permission`, with "Access denied".
    PathOutside = "path_outside",
    /// Preparing a call changes nothing.
    PrepareChangesNothing = "prepare_changes_nothing",
    /// A call that is cancelled before it starts ends as `cancelled`.
    CancelledBeforeStart = "cancelled_before_start",
    /// A call with valid arguments works.
    ValidExamples = "valid_examples",
    /// The value fits the schema the tool gives for it.
    ValueFitsSchema = "value_fits_schema",
    /// A result that is written as JSON and read again is the same.
    ResultRoundTrip = "result_round_trip",
    /// Every call has one event that requests it and later one that ends it, with its id.
    Events = "events",
    /// No panic leaves a call, and every call ends in time.
    Contained = "contained",
}

impl fmt::Display for Check {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}
