//! The description of the interface: complete, and true of what is answered and of what is
//! documented.

use serde_json::{Value, json};

use super::Daemon;
use crate::api::access::{AddTokenOrder, LinkOrder, OpenOrder, RevokeTokenOrder};
use crate::api::keys::RevokeOrder;
use crate::api::members::{
    AddOrder, ConfirmTermOrder, ForceRemoveOrder, LiftBarOrder, RemoveOrder, ReplaceOrder, SetOrder,
};
use crate::api::{self, group_path};
use crate::daemon::http::routes::routes;

fn description() -> Value {
    serde_json::from_str(include_str!("../openapi.json")).unwrap()
}

/// The flaw in a value by a schema: the part of JSON Schema that the description uses, and
/// no field beyond it.
fn check(root: &Value, schema: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let inner = root.pointer(reference.trim_start_matches('#')).unwrap_or_else(|| panic!("{reference}"));
        return check(root, inner, value, at, wrong);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let fits = |choice: &&Value| {
            let mut found = Vec::new();
            check(root, choice, value, at, &mut found);
            found.is_empty()
        };
        if choices.iter().filter(fits).count() != 1 {
            wrong.push(format!("{at}: {value} fits none, or several, of {schema}"));
        }
        return;
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => panic!("{at}: a schema without a type: {schema}"),
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    if !kinds.contains(&kind) {
        wrong.push(format!("{at}: {value} is no {kinds:?}"));
    }
    if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.contains(value)) {
        wrong.push(format!("{at}: {value} is not among {allowed:?}"));
    }
    if let (Some(pattern), Some(text)) = (schema["pattern"].as_str(), value.as_str()) {
        let fits = match pattern {
            "^[0-9]+$" => !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()),
            "^[0-9a-f]{8}$" => text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "^[0-9a-f]{64}$" => text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "^[0-9a-f]{32}$" => text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
            other => panic!("{at}: teach me {other}"),
        };
        if !fits {
            wrong.push(format!("{at}: {text} is not {pattern}"));
        }
    }
    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
        check(root, &schema["items"], item, &format!("{at}[{number}]"), wrong);
    }
    if let Some(object) = value.as_object().filter(|_| schema["properties"].is_object()) {
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !object.contains_key(name) {
                wrong.push(format!("{at}: {name} is missing"));
            }
        }
        for (name, value) in object {
            match schema["properties"].get(name) {
                Some(schema) => check(root, schema, value, &format!("{at}.{name}"), wrong),
                None => wrong.push(format!("{at}: {name} is not described")),
            }
        }
    }
}

/// Fails unless the value is as the schema of that name says.
fn assert_fits(name: &str, value: &Value) {
    let root = description();
    let schema = &root["components"]["schemas"][name];
    assert!(schema.is_object(), "there is no schema {name}");
    let mut wrong = Vec::new();
    check(&root, schema, value, name, &mut wrong);
    assert!(wrong.is_empty(), "{wrong:#?}\n{value:#}");
}

#[test]
fn the_description_has_every_path_and_no_other() {
    let described: Vec<(String, String)> = description()["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(|method| (path.clone(), method.clone()))
        })
        .collect();
    let mut served: Vec<(String, String)> =
        routes().into_iter().map(|(method, path, ..)| (path.replace("{*", "{"), method.to_owned())).collect();
    served.sort();
    assert_eq!(described, served, "routes.rs and openapi.json must say the same");
}

#[test]
fn the_description_names_the_role_of_every_path() {
    let root = description();
    for (method, path, need, _) in routes() {
        let path = path.replace("{*", "{");
        let described = root["paths"][path.as_str()][method]["x-tenure-role"].as_str();
        assert_eq!(described, Some(need.role.map_or("none", crate::tokens::Role::name)), "{path}");
    }
}

#[test]
fn every_schema_that_is_referred_to_exists_and_every_one_that_exists_is_used() {
    let text = include_str!("../openapi.json");
    let root = description();
    let mut used: Vec<&str> = Vec::new();
    for part in text.split("\"#/components/schemas/").skip(1) {
        used.push(part.split('"').next().unwrap());
    }
    for name in &used {
        assert!(root["components"]["schemas"][name].is_object(), "{name}");
    }
    for name in root["components"]["schemas"].as_object().unwrap().keys() {
        // A stream's events are described beside the answers.
        assert!(used.contains(&name.as_str()) || name == "Sight", "{name} is never used");
    }
}

#[tokio::test]
async fn real_answers_are_as_the_description_says() {
    let daemon = Daemon::start("").await;
    let client = daemon.client();
    let tenure = daemon.node.campaign("app/jobs").await.unwrap();
    tenure.proclaim(b"hello").unwrap();
    tenure.proclaim(&[0xff, 0x00]).unwrap();
    for (name, path) in [
        ("Status", "/v1/status"),
        ("Groups", "/v1/groups"),
        ("Group", "/v1/groups/app%2Fjobs"),
        ("Group", "/v1/groups/app%2Fjob"),
        ("Members", "/v1/members"),
        ("Leader", "/leader/app/jobs"),
        ("Tokens", "/v1/tokens"),
    ] {
        let answer: Value = client.get(path).await.unwrap();
        assert_fits(name, &answer);
    }
    let nobody = daemon.get("/leader/nobody").await;
    assert_fits("Leader", &serde_json::from_str(nobody.split_once("\r\n\r\n").unwrap().1).unwrap());
    let refused = daemon.get("/v1/nothing").await;
    assert_fits("Refusal", &serde_json::from_str(refused.split_once("\r\n\r\n").unwrap().1).unwrap());
    let verified: Value =
        client.query(&group_path("app/jobs", "/verify"), &json!({ "for_ms": 50 })).await.unwrap();
    assert_fits("Verified", &verified);
    let order = json!({ "key": "9f86d081884c7d65" });
    let revoked: Value = client.query("/v1/keys/revoke", &order).await.unwrap();
    assert_fits("RevokedKey", &revoked);
    assert_eq!((&revoked["held_by"], &revoked["quorum"]), (&json!(["n1"]), &json!(true)));
    let keys: Value = client.get("/v1/keys").await.unwrap();
    assert_fits("RevokedKeys", &keys);
    assert_eq!(keys, json!({ "revoked": [{ "key": "9f86d081884c7d65", "not_after": null }] }));
    let link: Value = client.post("/v1/session/link", &json!({})).await.unwrap();
    assert_fits("Link", &link);
    let opened: Value = client.post("/v1/session", &json!({ "code": link["code"] })).await.unwrap();
    assert_fits("SessionOpened", &opened);
    let order = json!({ "id": "0000000a", "role": "read", "sha256": "0".repeat(64) });
    assert_fits("Token", &client.post("/v1/tokens/add", &order).await.unwrap());
    assert_fits("Revoked", &client.post("/v1/tokens/revoke", &json!({ "id": "0000000a" })).await.unwrap());
    let mut events = client.events(&group_path("app/jobs", "/watch")).await.unwrap();
    assert_fits("Sight", &events.next().await.unwrap().unwrap().json().unwrap());
    let mut events = client.events("/v1/watch").await.unwrap();
    assert_fits("Status", &events.next().await.unwrap().unwrap().json().unwrap());
    daemon.end().await;
}

#[test]
fn orders_are_as_the_description_says() {
    let all = |name: &str, value: Value, least: Value| {
        assert_fits(name, &value);
        assert_fits(name, &least);
    };
    let within_ms = Some(5);
    all("VerifyOrder", json!(api::VerifyOrder { for_ms: Some(1) }), json!({}));
    all("ResignOrder", json!(api::ResignOrder { within_ms }), json!({}));
    let text = "x".to_owned();
    all("ProclaimOrder", json!(api::ProclaimOrder { text, within_ms }), json!({ "text": "x" }));
    let to = "n2".to_owned();
    all("TransferOrder", json!(api::TransferOrder { to, within_ms }), json!({ "to": "n2" }));
    let revoke = RevokeOrder { key: "9f86d081884c7d65".to_owned(), not_after: Some(1) };
    all("RevokeOrder", json!(revoke), json!({ "key": "9f86d081884c7d65" }));
    let set = SetOrder { drift_ppm: Some(1), quorums: Some("majority".to_owned()), ..SetOrder::default() };
    all("SetOrder", json!(set), json!({}));
    let order = ForceRemoveOrder { powered_off: vec!["n2".to_owned()], term_floor: Some(1) };
    all("ForceRemoveOrder", json!(order), json!({ "powered_off": ["n2"] }));
    let order = ConfirmTermOrder { term: 1 << 40 };
    all("ConfirmTermOrder", json!(order), json!({ "term": 1 }));
    all("LiftBarOrder", json!(LiftBarOrder { group: "jobs".to_owned() }), json!({ "group": "id=7" }));
    let [id, sha256, code] = ["0000000a".to_owned(), "0".repeat(64), "1".repeat(20)];
    let (role, until) = (crate::tokens::Role::Read, Some("2027-01-31T00:00:00Z".to_owned()));
    let order = AddTokenOrder { id: id.clone(), role, sha256, not_after: until, note: Some("x".to_owned()) };
    let least = json!({ "id": "0000000a", "role": "read", "sha256": "0".repeat(64) });
    all("AddTokenOrder", json!(order), least);
    all("RevokeTokenOrder", json!(RevokeTokenOrder { id }), json!({ "id": "0000000a" }));
    all("LinkOrder", json!(LinkOrder {}), json!({}));
    all("OpenOrder", json!(OpenOrder { code }), json!({ "code": "1" }));
    let [name, address, old] = ["n4", "127.0.0.1:1", "n2"].map(str::to_owned);
    let (add, force) = (AddOrder { name: name.clone(), address: address.clone(), force: true }, true);
    all("AddOrder", json!(add), json!({ "name": "n4", "address": "127.0.0.1:1" }));
    all("RemoveOrder", json!(RemoveOrder { name: name.clone(), force }), json!({ "name": "n4" }));
    let least = json!({ "old": "n2", "name": "n4", "address": "127.0.0.1:1" });
    all("ReplaceOrder", json!(ReplaceOrder { old, name, address, force }), least);
}

#[tokio::test]
async fn a_change_of_members_is_told_line_by_line_as_the_description_says() {
    let daemon = Daemon::start("").await;
    let client = daemon.client();
    let ends = async |path: &str, order: Value| {
        let mut lines = client.lines(path, &order).await.unwrap();
        let mut last = Value::Null;
        while let Some(step) = lines.next::<Value>().await.unwrap() {
            assert_fits("Step", &step);
            last = step;
        }
        last
    };
    let done = ends("/v1/members/set", json!({ "drift_ppm": 2000 })).await;
    assert_eq!((&done["event"], &done["epoch"]), (&json!("done"), &json!(1)));
    let done = ends("/v1/members/confirm-term", json!({ "term": 1_u64 << 40 })).await;
    assert_eq!((&done["event"], &done["epoch"]), (&json!("done"), &json!(1)));
    let failed = ends("/v1/members/lift-bar", json!({ "group": "jobs" })).await;
    assert!(failed["message"].as_str().unwrap().contains("is not barred"), "{failed}");
    let failed = ends("/v1/members/remove", json!({ "name": "n1" })).await;
    assert_eq!(failed["event"], "failed");
    assert!(failed["message"].as_str().unwrap().contains("the last member"), "{failed}");
    assert!(client.lines("/v1/members/set", &json!({})).await.unwrap_err().is(api::Code::BadRequest));
    daemon.end().await;
}

/// In `docs/reference/http.md` a comment before each block of JSON names its schema.
#[test]
fn the_examples_in_the_documents_are_as_the_description_says() {
    let text = include_str!("../../../../../../docs/reference/http.md");
    let mut examples = 0;
    for part in text.split("<!-- schema: ").skip(1) {
        let (name, rest) = part.split_once(" -->").unwrap();
        let json = rest.split_once("```json\n").unwrap().1.split_once("```").unwrap().0;
        for line in if name == "Sight" { json.lines().collect() } else { vec![json] } {
            let value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}: {error}\n{line}"));
            assert_fits(name, &value);
        }
        examples += 1;
    }
    assert!(examples >= 10, "only {examples} examples were found");
    for (_, path, ..) in routes() {
        let path = path.replace("{*", "{");
        assert!(text.contains(&format!("`{path}`")), "{path} is not documented");
    }
}
