//! `cargo xtask pictures`: makes the pictures of the documentation by running the commands that they show.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anstyle_svg::Term;

const FOLDER: &str = "docs/pictures";
const WIDTH: &str = "80";

/// Each picture: its file name, and the command that it shows.
const PICTURES: [(&str, &str); 1] = [("setup", "plugbay setup --yes")];

/// Makes all pictures, in a separate home folder.
pub(crate) fn make() -> Result<(), String> {
    build().and_then(|()| draw_all()).map_err(|error| error.to_string())
}

fn build() -> io::Result<()> {
    let status = Command::new("cargo").args(["build", "--locked", "-p", "plugbay"]).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other("cargo build failed")) }
}

fn draw_all() -> io::Result<()> {
    let root = std::env::current_dir()?.join("target/pictures");
    let _ = fs::remove_dir_all(&root);
    let home = Home::furnish(root)?;
    fs::create_dir_all(FOLDER)?;
    for (name, command) in PICTURES {
        let text = home.run(command)?;
        let svg = Term::new().render_svg(&format!("\u{1b}[1m$ {command}\u{1b}[0m\n{text}"));
        fs::write(Path::new(FOLDER).join(format!("{name}.svg")), svg)?;
        println!("{FOLDER}/{name}.svg");
    }
    Ok(())
}

/// A temporary home with three hosts and the sample servers.
struct Home {
    root: PathBuf,
    bin: PathBuf,
}

impl Home {
    fn furnish(root: PathBuf) -> io::Result<Self> {
        let bin = root.join("bin");
        fs::create_dir_all(&bin)?;
        let program = std::env::current_dir()?.join("target/debug/plugbay");
        symlink(&program, bin.join("plugbay"))?;
        // The link has another name, since plugbay never imports itself.
        symlink(&program, bin.join("sample-server"))?;
        let home = Self { root, bin };
        let entry = |name: &str| {
            format!(
                "    \"{name}\": {{ \"command\": \"sample-server\", \"args\": [\"__sample\", \"{name}\"] }}"
            )
        };
        let file = |names: &[&str]| {
            let entries: Vec<String> = names.iter().map(|name| entry(name)).collect();
            format!("{{\n  \"mcpServers\": {{\n{}\n  }}\n}}\n", entries.join(",\n"))
        };
        let codex = "[mcp_servers.clock]\ncommand = \"sample-server\"\nargs = [\"__sample\", \"clock\"]\n";
        home.write(".claude.json", &file(&["notes", "issues", "shop"]))?;
        home.write(".cursor/mcp.json", &file(&["notes", "calc"]))?;
        home.write(".codex/config.toml", codex)?;
        Ok(home)
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&self.root))?;
        fs::write(path, text)
    }

    /// Runs a command in its own terminal and returns the output.
    fn run(&self, command: &str) -> io::Result<String> {
        let in_terminal = format!("stty cols {WIDTH}; {command} 2>&1");
        let output = Command::new("script")
            .args(["-qec", &in_terminal, "/dev/null"])
            .env_clear()
            .env("HOME", &self.root)
            .env("PATH", format!("{}:/usr/bin:/bin", self.bin.display()))
            .env("TERM", "xterm-256color")
            .current_dir(&self.root)
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n");
        Ok(without_progress(&text).replace(&*self.root.to_string_lossy(), "~"))
    }
}

/// Drops lines that the program has overwritten, as a terminal would.
fn without_progress(text: &str) -> String {
    let last = |line: &str| line.rsplit("\r\u{1b}[2K").next().unwrap_or_default().to_owned();
    text.lines().map(last).collect::<Vec<_>>().join("\n")
}
