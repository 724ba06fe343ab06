//! Views: what they show, and what they never show.

use std::collections::BTreeSet;
use std::sync::Arc;

use convoke_core::Category;
use convoke_tool::{FunctionTool, Selection, Tool, ToolContext, ToolRegistry, ToolView, ViewError};
use proptest::prelude::*;

use crate::support::Nothing;

fn named(name: &str) -> Arc<dyn Tool> {
    let tool =
        FunctionTool::new(name, "Acts.", async |_: Nothing, _: ToolContext| Ok::<_, String>(()));
    let category = if name.starts_with('f') { Category::File } else { Category::Data };
    Arc::new(tool.category(category))
}

fn names(view: &ToolView) -> BTreeSet<String> {
    view.list().iter().map(|tool| tool.spec().name.clone()).collect()
}

fn registry(tools: &[&str]) -> ToolRegistry {
    let registry = ToolRegistry::new();
    registry.register_many(tools.iter().map(|name| named(name))).unwrap();
    registry
}

#[test]
fn selections_take_names_patterns_and_families() {
    let view = ToolView::of(registry(&["fa", "fb", "da", "db"]));
    let show = |selection: &Selection| {
        names(&view.select(selection).unwrap()).into_iter().collect::<Vec<_>>()
    };
    assert_eq!(show(&Selection::only(["fa", "d*"])), ["da", "db", "fa"]);
    assert_eq!(show(&Selection::only(["category:file"])), ["fa", "fb"]);
    assert_eq!(show(&Selection::all().without(["*a"])), ["db", "fb"]);
    assert_eq!(show(&Selection::only(["*"]).without(["category:data", "fb"])), ["fa"]);
    assert_eq!(show(&Selection::only(Vec::<String>::new())), Vec::<String>::new());
}

#[test]
fn a_name_that_does_not_exist_is_an_error_that_lists_what_does() {
    let view = ToolView::of(registry(&["read_file", "grep"]));
    let error = view.select(&Selection::only(["read_fil", "grep", "zz*"])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no tool is named `read_fil`; did you mean `read_file`?; no tool is named `zz*` (there are: grep, read_file)"
    );
    assert!(matches!(
        view.select(&Selection::all().without(["gerp"])),
        Err(ViewError::Unresolved { .. })
    ));
    assert!(
        view.select(&Selection::all().without(["mcp_*"])).is_ok(),
        "a pattern may exclude nothing"
    );
}

#[test]
fn later_tools_do_not_slip_into_a_selection_and_removed_ones_are_gone() {
    let registry = registry(&["fa", "fb"]);
    let all = ToolView::of(registry.clone());
    let chosen = all.select(&Selection::only(["f*"])).unwrap();
    registry.register(named("fc")).unwrap();
    registry.remove("fb");
    assert_eq!(names(&all), BTreeSet::from(["fa".into(), "fc".into()]));
    assert_eq!(names(&chosen), BTreeSet::from(["fa".into()]));
    registry.register(named("fb")).unwrap();
    assert_eq!(names(&chosen), BTreeSet::from(["fa".into()]), "another tool under an old name");
    registry.replace(named("fa")).unwrap();
    assert!(chosen.get("fa").is_some(), "a replacement is the same tool");
}

proptest! {
    #[test]
    fn a_view_never_shows_what_its_parent_does_not(
        steps in prop::collection::vec((0..6_usize, prop::sample::select(vec!["fa", "fb", "da", "db", "f*", "d*", "*a", "category:file"])), 1..20)
    ) {
        let registry = registry(&["fa", "fb", "da", "db"]);
        let mut chain = vec![ToolView::of(registry.clone())];
        for (action, pattern) in steps {
            let parent = chain.last().unwrap().clone();
            let child = match action {
                0 => { registry.remove(pattern); None }
                1 if !pattern.contains(['*', ':']) => { registry.replace(named(pattern)).unwrap(); None }
                2 => parent.select(&Selection::all().without([pattern])).ok(),
                _ => parent.select(&Selection::only([pattern])).ok(),
            };
            chain.extend(child);
            for (outer, inner) in chain.iter().zip(chain.iter().skip(1)) {
                prop_assert!(names(inner).is_subset(&names(outer)));
                let declared: BTreeSet<String> = inner.declarations().iter().map(|one| one.name.clone()).collect();
                prop_assert_eq!(declared, names(inner));
            }
        }
    }
}
