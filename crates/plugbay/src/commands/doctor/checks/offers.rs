//! Checks of the offers of working servers.

use super::super::{
    examination::ServerFacts,
    finding::{Code, Finding},
};

pub fn check(facts: &ServerFacts) -> Option<Finding> {
    let offered = facts.offered()?;
    if let Some(left_out) = offered.left_out {
        let message = format!("Its lists are too large: plugbay leaves out {left_out}.");
        let remedy = "let the server offer less, if it has settings for that, or report it to its authors";
        return Some(Finding::of(Code::ListTooLarge, &facts.name, message, remedy));
    }
    match (offered.tools, offered.shown, offered.others) {
        (0, _, 0) => {
            let message = "It works, but offers no tools, resources or prompts.";
            let remedy = "check its own settings: many servers offer tools only with a key or an argument";
            Some(Finding::of(Code::NoTools, &facts.name, message, remedy))
        }
        (1.., 0, _) => {
            let tools =
                if offered.tools == 1 { "1 tool".to_owned() } else { format!("{} tools", offered.tools) };
            let message = format!("It offers {tools}, and \"allow\" and \"deny\" hide all of them.");
            let remedy = "check the patterns of \"allow\" and \"deny\" against the names of its tools";
            Some(Finding::of(Code::ToolsHidden, &facts.name, message, remedy))
        }
        _ if !offered.hidden.is_empty() => {
            let message =
                "Its definitions have characters that nobody sees, and that models and terminals obey.";
            let remedy =
                "ask who makes this server why; plugbay leaves them out unless \"sanitize\" is false";
            Some(
                Finding::of(Code::HiddenCharacters, &facts.name, message, remedy)
                    .seen(offered.hidden.clone()),
            )
        }
        _ => None,
    }
}
