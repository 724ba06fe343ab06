use convoke_core::{Kind, ToolSpec};
use serde_json::{Value, json};

use super::*;
use crate::tool::Invocation;
use crate::view::{Selection, ToolView};

struct Named(ToolSpec);

impl Tool for Named {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn prepare(&self, _: Value) -> Result<Box<dyn Invocation>, ToolError> {
        Err(ToolError::failed("never called"))
    }
}

fn named(name: &str) -> Arc<dyn Tool> {
    Arc::new(Named(ToolSpec::new(name, format!("Does {name}."), Kind::Read)))
}

fn names(registry: &ToolRegistry) -> Vec<String> {
    registry.list().iter().map(|tool| tool.spec().name.clone()).collect()
}

#[test]
fn tools_come_and_go() {
    let registry = ToolRegistry::new();
    registry.register_many([named("b"), named("a")]).unwrap();
    assert_eq!(names(&registry), ["a", "b"]);
    assert!(registry.has("a") && registry.get("b").is_some() && registry.get("c").is_none());
    assert!(registry.remove("a").is_some() && registry.remove("a").is_none());
    assert_eq!(names(&registry), ["b"]);
}

#[test]
fn a_name_is_taken_once() {
    let registry = ToolRegistry::new();
    registry.register(named("a")).unwrap();
    assert_eq!(registry.register(named("a")), Err(RegistryError::Duplicate("a".into())));
    assert!(registry.replace(named("a")).is_ok());
    let twice = registry.register_many([named("x"), named("y"), named("x")]);
    assert_eq!(twice, Err(RegistryError::Duplicate("x".into())));
    assert_eq!(names(&registry), ["a"], "all of them, or none");
}

#[test]
fn names_and_schemas_are_checked() {
    let registry = ToolRegistry::new();
    for name in ["", "1st", "a b", "ä", "a/b", &"x".repeat(65)] {
        assert_eq!(registry.register(named(name)), Err(RegistryError::InvalidName(name.into())));
    }
    let mut spec = ToolSpec::new("list", "", Kind::Read);
    spec.parameters = json!({ "type": "array" }).into();
    let wrong = registry.register(Named(spec));
    assert_eq!(wrong, Err(RegistryError::InvalidParameters("list".into())));
}

#[test]
fn declarations_do_not_depend_on_the_order_of_registration() {
    let bytes = |order: [&str; 3]| {
        let registry = ToolRegistry::new();
        registry.register_many(order.map(named)).unwrap();
        serde_json::to_string(&registry.declarations()).unwrap()
    };
    assert_eq!(bytes(["c", "a", "b"]), bytes(["b", "c", "a"]));

    let registry = ToolRegistry::new();
    registry.register(named("b")).unwrap();
    assert_eq!(registry.declarations().len(), 1);
    registry.register(named("a")).unwrap();
    assert_eq!(registry.declarations()[0].name, "a", "a change is seen");
}

#[test]
fn statistics_count_failures_and_time() {
    let registry = ToolRegistry::new();
    registry.register_many([named("a"), named("b")]).unwrap();
    let entry = registry.entry("a").unwrap();
    entry.count(true, Duration::from_millis(2));
    entry.count(false, Duration::from_millis(4));
    registry.replace(named("a")).unwrap();
    let stats = registry.stats();
    assert_eq!((stats.total, stats.by_category[&Category::Custom]), (2, 2));
    assert_eq!(
        serde_json::to_value(&stats.call_stats).unwrap(),
        json!({ "a": { "count": 2, "failures": 1, "avgDuration": 3 } })
    );
}

#[test]
fn a_group_comes_and_goes_and_takes_no_name_from_others() {
    let registry = ToolRegistry::new();
    registry.register(named("mcp__a__mine")).unwrap();
    registry.announce("mcp__a__");
    assert!(registry.may_come("mcp__a__x") && !registry.may_come("mcp__b__x"));
    let problems = registry
        .set_group("mcp__a__", vec![named("mcp__a__x"), named("mcp__a__mine"), named("other")]);
    let not_of_it = RegistryError::NotOfTheGroup { name: "other".into(), group: "mcp__a__".into() };
    assert_eq!(problems, [RegistryError::Duplicate("mcp__a__mine".into()), not_of_it]);
    registry.entry("mcp__a__x").unwrap().count(true, Duration::from_millis(1));
    assert_eq!(registry.set_group("mcp__a__", vec![named("mcp__a__x"), named("mcp__a__y")]), []);
    assert_eq!(registry.stats().call_stats["mcp__a__x"].count, 1, "statistics go on");
    assert_eq!(registry.set_group("mcp__a__", Vec::new()), []);
    assert_eq!(names(&registry), ["mcp__a__mine"]);
}

#[test]
fn what_stays_in_a_group_is_not_made_again() {
    let registry = ToolRegistry::new();
    let (x, y) = (named("mcp__a__x"), named("mcp__a__y"));
    let set = |tools: &[&Arc<dyn Tool>]| {
        let tools = tools.iter().map(|tool| Arc::clone(tool)).collect();
        assert_eq!(registry.set_group("mcp__a__", tools), []);
        registry.generation()
    };
    let first = set(&[&x, &y]);
    let known = registry.entry("mcp__a__x").unwrap();
    assert_eq!(set(&[&y, &x]), first, "the same tools");
    assert!(set(&[&x]) > first);
    assert!(Arc::ptr_eq(&known, &registry.entry("mcp__a__x").unwrap()), "with what is kept of it");
    let third = set(&[&named("mcp__a__x")]);
    assert!(!Arc::ptr_eq(&known, &registry.entry("mcp__a__x").unwrap()), "another tool");
    assert!(registry.set_group("mcp__a__", Vec::new()).is_empty());
    assert!(registry.generation() > third && !registry.has("mcp__a__x"));
}

#[test]
fn a_view_knows_what_it_would_show() {
    let registry = ToolRegistry::new();
    registry.register(named("echo")).unwrap();
    registry.announce("mcp_");
    let all = ToolView::of(registry);
    let reached = |selection: Selection| {
        let view = all.select(&selection).unwrap();
        (view.may_grow(), view.reaches("mcp__a__", Category::Mcp))
    };
    for (selection, expected) in [
        (Selection::all(), (true, true)),
        (Selection::only(["echo"]), (false, false)),
        (Selection::only(["echo", "mcp_*"]), (true, true)),
        (Selection::only(["mcp__a__x"]), (true, true)),
        (Selection::only(["mcp__b__x", "mcp_read_resource"]), (true, false)),
        (Selection::only(["mcp__a__"]), (true, true)),
        (Selection::only(["category:mcp"]), (true, true)),
        (Selection::all().without(["mcp__a__x"]), (true, true)),
        (Selection::all().without(["mcp__a__*"]), (true, false)),
        (Selection::all().without(["mcp__a__"]), (true, false)),
        (Selection::all().without(["mcp_*"]), (false, false)),
        (Selection::all().without(["category:mcp"]), (true, false)),
    ] {
        assert_eq!(reached(selection.clone()), expected, "{selection:?}");
    }
    assert!(all.select(&Selection::only(["category:mpc"])).is_err(), "there is no such family");
    let alone = ToolView::of(ToolRegistry::new());
    assert!(alone.select(&Selection::only(["category:mcp"])).is_err(), "nothing will come");
}

#[test]
fn a_view_shows_what_comes_later_only_if_it_was_asked_for() {
    let registry = ToolRegistry::new();
    registry.register(named("read")).unwrap();
    registry.announce("mcp__a__");
    let all = ToolView::of(registry.clone());
    let some = all.select(&Selection::only(["read", "mcp__a__x", "mcp__a__y*"])).unwrap();
    let fewer = some.select(&Selection::all().without(["mcp__a__yes"])).unwrap();
    let none = all.select(&Selection::only(["read"])).unwrap();
    assert!(all.select(&Selection::only(["mcp__b__x"])).is_err(), "nobody announced it");
    let come = ["x", "yes", "yet", "z"].map(|name| named(&format!("mcp__a__{name}")));
    assert_eq!(registry.set_group("mcp__a__", come.to_vec()), []);
    let shown = |view: &ToolView| -> Vec<String> {
        view.list().iter().map(|tool| tool.spec().name.clone()).collect()
    };
    assert_eq!(shown(&some), ["mcp__a__x", "mcp__a__yes", "mcp__a__yet", "read"]);
    assert_eq!(shown(&fewer), ["mcp__a__x", "mcp__a__yet", "read"]);
    assert_eq!(shown(&none), ["read"]);
    assert!(fewer.get("mcp__a__yes").is_none() && fewer.get("mcp__a__z").is_none());
    assert_eq!(registry.set_group("mcp__a__", Vec::new()), []);
    assert_eq!(shown(&some), ["read"], "what is gone is gone at once");
}
