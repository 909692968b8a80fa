//! Opens an address in the user's browser: a program with one argument, and never a shell.

use std::{
    process::{Command, Stdio},
    thread,
};

use url::Url;

/// Opens the address with the first browser that starts. Each is a program with its arguments. Returns
/// whether one did.
pub fn open(url: &Url, browsers: &[Vec<String>]) -> bool {
    // With another scheme a browser could run a program.
    if !matches!(url.scheme(), "http" | "https") {
        return false;
    }
    browsers.iter().any(|browser| start(browser, url.as_str()))
}

fn start(browser: &[String], url: &str) -> bool {
    let Some((program, args)) = browser.split_first() else { return false };
    let mut command = Command::new(program);
    command.args(arguments(args, url)).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // The browser outlives this command, and must not get the user's Ctrl-C.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    match command.spawn() {
        Ok(mut child) => {
            thread::spawn(move || child.wait());
            true
        }
        Err(_) => false,
    }
}

/// The arguments of a browser. `%s` stands for the address; without it the address is the last argument.
fn arguments(args: &[String], url: &str) -> Vec<String> {
    let mut all: Vec<String> = args.iter().map(|word| word.replace("%s", url)).collect();
    if !args.iter().any(|word| word.contains("%s")) {
        all.push(url.to_owned());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_one_argument_of_the_browser() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let url = "https://a.example/?x=$(touch%20y)&z=`w`;v";
        assert_eq!(arguments(&words("--new-tab"), url), ["--new-tab", url]);
        assert_eq!(arguments(&words("-u %s --kiosk"), url), ["-u", url, "--kiosk"]);
        assert_eq!(arguments(&[], url), [url]);
    }

    #[test]
    fn only_web_addresses_are_opened() {
        let everything = [vec!["/bin/true".to_owned()]];
        for url in ["file:///etc/passwd", "javascript:alert(1)", "ms-settings:", "smb://x/y"] {
            assert!(!open(&Url::parse(url).unwrap(), &everything), "{url}");
        }
        assert!(open(&Url::parse("https://a.example/").unwrap(), &everything));
        assert!(!open(&Url::parse("https://a.example/").unwrap(), &[vec!["/nowhere/browser".to_owned()]]));
    }
}
