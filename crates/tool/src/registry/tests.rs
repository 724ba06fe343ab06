use convoke_core::{Kind, ToolSpec};
use serde_json::{Value, json};

use super::*;
use crate::tool::Invocation;

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
