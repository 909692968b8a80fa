//! `plugbay skill` and `plugbay plugin`.

use std::fs;

use crate::harness::Harness;

#[test]
fn a_skill_is_printed_linked_or_copied() {
    let harness = Harness::empty();
    let skill = harness.run(&["skill"]).out;
    assert!(skill.starts_with("---\nname: plugbay\ndescription: "), "{skill}");
    let place = harness.path().join(".claude/skills/plugbay/SKILL.md");
    for (command, linked) in
        [(&["skill", "--install"][..], true), (&["skill", "--install"], true), (&["skill", "--copy"], false)]
    {
        assert_eq!(harness.run(command).code, Some(0));
        assert_eq!(fs::symlink_metadata(&place).unwrap().is_symlink(), linked, "{command:?}");
        assert_eq!(fs::read_to_string(&place).unwrap(), skill);
    }
    assert_eq!(fs::read_to_string(harness.user_file().with_file_name("SKILL.md")).unwrap(), skill);
}

#[test]
fn a_plugin_has_the_skill_and_the_server() {
    let harness = Harness::empty();
    harness.run(&["plugin", "out"]);
    let read = |file: &str| fs::read_to_string(harness.path().join("out").join(file)).unwrap();
    let json = |file: &str| serde_json::from_str::<serde_json::Value>(&read(file)).unwrap();
    assert_eq!(json(".claude-plugin/plugin.json")["name"], "plugbay");
    assert_eq!(json(".mcp.json")["mcpServers"]["plugbay"]["args"][0], "serve");
    assert!(read("README.md").starts_with("# plugbay\n"));
    let (skill, of_plugin) = (harness.run(&["skill"]).out, read("skills/plugbay/SKILL.md"));
    assert!(skill.contains("- mcp__plugbay__gateway_status"), "{skill}");
    assert!(of_plugin.contains("- mcp__plugin_plugbay_plugbay__gateway_status"), "{of_plugin}");
    assert_eq!(of_plugin.replace("mcp__plugin_plugbay_plugbay__", "mcp__plugbay__"), skill);
}

#[test]
fn a_plugin_in_the_layout_of_agent_plugins_has_the_skill_and_the_server() {
    let harness = Harness::empty();
    assert_eq!(harness.run(&["plugin", "--layout", "agent-plugins", "out"]).code, Some(0));
    let read = |file: &str| fs::read_to_string(harness.path().join("out").join(file)).unwrap();
    let json = |file: &str| serde_json::from_str::<serde_json::Value>(&read(file)).unwrap();
    let (manifest, servers) = (json("plugin.json"), json("mcp.json"));
    assert_eq!(manifest["name"], "plugbay");
    assert_eq!(manifest["$schema"], "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json");
    assert_eq!(servers["$schema"], "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json");
    let server = serde_json::json!({ "type": "stdio", "command": "plugbay", "args": ["serve"] });
    assert_eq!(servers["mcpServers"], serde_json::json!({ "plugbay": server }));
    assert!(read("README.md").contains("plugbay plugin --layout agent-plugins FOLDER"));
    assert!(!read("skills/plugbay/SKILL.md").contains("allowed-tools"));
    let other = harness.run(&["plugin", "out"]);
    assert!(other.code == Some(1) && other.err.contains("contains something else"), "{other:?}");
}
