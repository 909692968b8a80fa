//! The text of plugbay's skill, for Claude Code and for other hosts.

/// The skill with Claude Code's names for plugbay's tools.
pub const SKILL: &str = include_str!("../assets/SKILL.md");

/// The skill as served over MCP, with only the fields of Agent Skills. It allows no tools in advance, because
/// their names differ between hosts.
pub fn served() -> String {
    with_fields(&["name: ", "description: "], &[("license", env!("CARGO_PKG_LICENSE"))])
}

/// The skill with these of its fields, and these added ones.
pub fn with_fields(kept: &[&str], added: &[(&str, &str)]) -> String {
    let mut parts = SKILL.splitn(3, "---\n");
    let (fields, body) = (parts.nth(1).unwrap_or_default(), parts.next().unwrap_or_default());
    let fields = fields.lines().filter(|line| kept.iter().any(|field| line.starts_with(field)));
    let added = added.iter().map(|(key, value)| format!("{key}: {value}"));
    let fields: Vec<String> = fields.map(str::to_owned).chain(added).collect();
    format!("---\n{}\n---\n{body}", fields.join("\n"))
}

#[cfg(test)]
mod tests {
    use plugbay_core::surface::OwnSkill;

    use super::*;

    #[test]
    fn the_skill_that_is_served_is_one() {
        let own = OwnSkill::new(&served()).unwrap();
        assert_eq!((own.uri.as_str(), own.name.as_str()), ("skill://plugbay/SKILL.md", "plugbay"));
        assert!(own.text.len() > 1000 && !own.text.contains("allowed-tools"), "{}", own.text);
        let body = own.text.split_once("\n---\n").unwrap().1;
        assert!(SKILL.ends_with(&format!("---\n{body}")));
    }
}
