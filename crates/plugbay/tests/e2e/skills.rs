//! Skills of two real servers that have the same one, read and verified by a real client of the extension.

use plugbay_testkit::Workspace;
use serde_json::{Value, json};

use crate::{
    check::usable,
    clients::{Client, Era},
    gateway::{Gateway, Transport},
    installed::{Installed, scripts},
    world::{Server, World},
};

pub(crate) fn check_skills(era: Era, host: Transport) {
    let Some(installed) = usable(Client::TypeScript2) else { return };
    let workspace = Workspace::new();
    let servers = ["ska", "skb"].map(|name| server(name, installed));
    let uri = "skill://git-workflow/SKILL.md";
    let mapped = |server: &str| format!("plugbay://{server}/{uri}");

    let direct = Client::read_skills(
        &workspace,
        installed,
        era,
        &servers[0].entry,
        &json!({
            "expect": ["whoami"], "get": ["skill://hidden-ska/SKILL.md", "skill://hidden-skb/SKILL.md"],
        }),
    );
    // A server's declaration is known only after it has started once.
    workspace.write_config(&World::config(&servers));
    Gateway::meet(&workspace);
    let gateway = Gateway::new(host, &workspace, &servers);
    let through = Client::read_skills(
        &workspace,
        installed,
        era,
        &gateway.entry,
        &json!({
            "expect": ["ska__whoami", "skb__whoami"],
            "get": ["skill://hidden-ska/SKILL.md", "skill://hidden-skb/SKILL.md", mapped("skb"), uri, "skill://none/SKILL.md"],
        }),
    );
    gateway.close();

    assert_eq!((&through["era"], &through["directories"]), (&json!(era.word()), &json!(true)));
    let skills = through["skills"].as_array().expect("skills");
    let uris: Vec<&str> = skills.iter().map(|skill| skill["uri"].as_str().expect("a URI")).collect();
    let expected =
        [&*mapped("ska"), &*mapped("skb"), "skill://only-ska/SKILL.md", "skill://only-skb/SKILL.md"];
    assert_eq!(uris, expected);
    for (skill, server) in skills.iter().zip(["ska", "skb", "ska", "skb"]) {
        assert!(
            skill["text"].as_str().is_some_and(|text| text.contains(&format!("says {server}."))),
            "{skill}"
        );
        let root = skill["uri"].as_str().unwrap().trim_end_matches("SKILL.md");
        let file = format!("{root}references/STYLE.md");
        assert_eq!(skill["files"], json!({ &file: format!("# Style of {server}: é, 😀\n") }));
        assert!(skill["walked"].as_array().is_some_and(|walked| walked.contains(&json!(file))), "{skill}");
    }
    // If no other server has its URIs, the client gets the same skill as without a gateway.
    assert_eq!(skills[2], direct["skills"][1]);
    let got = through["got"].as_array().expect("answers");
    assert_eq!(got[0], direct["got"][0]);
    assert!(got[1].to_string().contains("says skb."), "{}", got[1]);
    assert_eq!(got[2]["uri"], mapped("skb"));
    assert_eq!((&got[3]["error"], &got[4]["error"]), (&json!(-32602), &json!(-32602)));
    assert_eq!(direct["got"][1]["error"], -32602);
}

fn server(name: &'static str, installed: &Installed) -> Server {
    let script = scripts().join("skills-server.mjs");
    let env = json!({ "PLUGBAY_E2E_DIR": installed.folder });
    let entry: Value = json!({ "command": "node", "args": [script, name], "env": env });
    Server { name, entry, era: Era::Modern, calls: Vec::new() }
}
