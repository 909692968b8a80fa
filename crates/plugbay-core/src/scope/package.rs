//! The names by which a launch may be known: the package that a runner starts, a module, an image, or the command.

/// The names by which a launch may be known.
#[derive(Debug, Default)]
pub(super) struct PackageNames {
    /// The most specific first, in lower case and with `-` for `_`.
    pub(super) names: Vec<String>,
    /// They name the image of a container.
    pub(super) is_image: bool,
}

pub(super) fn names(command: &str, args: &[String]) -> PackageNames {
    let words: Vec<&str> = std::iter::once(command).chain(args.iter().map(String::as_str)).collect();
    let mut found = PackageNames::default();
    collect(&words, &mut found);
    for name in &mut found.names {
        *name = name.to_lowercase().replace('_', "-");
    }
    found.names.retain(|name| !name.is_empty());
    found
}

fn collect(words: &[&str], found: &mut PackageNames) {
    let Some((command, rest)) = words.split_first() else { return };
    let program = file_stem(command);
    match (program, rest) {
        ("npx" | "bunx" | "pnpx" | "uvx", _) => runner(rest, found),
        ("npm", ["exec" | "x", rest @ ..])
        | ("pnpm" | "yarn", ["dlx", rest @ ..])
        | ("bun", ["x", rest @ ..])
        | ("uv", ["tool", "run", rest @ ..])
        | ("pipx", ["run", rest @ ..]) => runner(rest, found),
        ("uv", rest) if rest.contains(&"run") => {
            let at = rest.iter().position(|word| *word == "run").unwrap_or_default();
            runner(&rest[at + 1..], found);
        }
        ("docker" | "podman" | "nerdctl", rest) if rest.contains(&"run") => image(rest, found),
        ("env" | "cmd" | "sudo" | "nice" | "nohup", _) => {
            let at = rest.iter().position(|word| !is_option(word) && !word.contains('=') && *word != "/c");
            let at =
                at.or_else(|| rest.iter().position(|word| word.eq_ignore_ascii_case("/c")).map(|at| at + 1));
            collect(at.and_then(|at| rest.get(at..)).unwrap_or_default(), found);
        }
        ("node" | "bun" | "deno" | "tsx" | "java" | "dotnet", _) => script(rest, found),
        ("go", ["run", rest @ ..]) => script(rest, found),
        _ if program.starts_with("python") || program == "py" => module(rest, found),
        _ => found.names.push(program.to_owned()),
    }
}

/// What `npx`, `uvx` and similar runners start: the package that an option names, and the command.
fn runner(words: &[&str], found: &mut PackageNames) {
    const PACKAGE: [&str; 4] = ["-p", "--package", "--from", "--spec"];
    const WITH_VALUE: [&str; 13] = [
        // Packages in addition to the one that runs.
        "--with",
        "--with-editable",
        "--with-requirements",
        "--python",
        "--directory",
        "--project",
        "--index-url",
        "--index",
        "--extra-index-url",
        "--default-index",
        "--env-file",
        "--registry",
        "--group",
    ];
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let (option, value) = word.split_once('=').map_or((*word, None), |(name, value)| (name, Some(value)));
        let takes_next = value.is_none() && (PACKAGE.contains(&option) || WITH_VALUE.contains(&option));
        if PACKAGE.contains(&option) {
            found.names.extend(value.or_else(|| words.get(at + 1).copied()).map(package));
        } else if !is_option(word) {
            found.names.push(package(word));
            return collect(&words[at..], found); // `uv run python -m MODULE`
        }
        at += if takes_next { 2 } else { 1 };
    }
}

/// A package without its version and extras: `@scope/name@1.2`, `name[extra]==1.2`.
fn package(word: &str) -> String {
    let start = usize::from(word.starts_with('@'));
    let end = word[start..].find(['@', '=', '<', '>', '~', '[', ' ']).map_or(word.len(), |at| at + start);
    word[..end].to_owned()
}

/// `python -m MODULE` or `python SCRIPT`.
fn module(words: &[&str], found: &mut PackageNames) {
    match words.iter().position(|word| *word == "-m") {
        Some(at) => {
            let module = words.get(at + 1).copied().unwrap_or_default();
            found.names.push(module.replace('.', "-"));
            found.names.extend(module.split('.').next().map(str::to_owned));
        }
        None => script(words, found),
    }
}

/// A script by the package that it belongs to, else by its file.
fn script(words: &[&str], found: &mut PackageNames) {
    let Some(path) = words.iter().find(|word| !is_option(word)) else { return };
    for folder in ["/node_modules/", "/site-packages/"] {
        if let Some((_, inside)) = path.rsplit_once(folder) {
            let parts = if inside.starts_with('@') { 2 } else { 1 };
            found.names.push(inside.split('/').take(parts).collect::<Vec<_>>().join("/"));
        }
    }
    found.names.push(file_stem(path.split('@').next().unwrap_or(path)).to_owned());
}

/// The image of `docker run`, with and without the registry and the owner.
fn image(words: &[&str], found: &mut PackageNames) {
    const ALONE: [&str; 9] =
        ["-i", "-t", "-it", "-ti", "-d", "--rm", "--init", "--interactive", "--privileged"];
    let start = words.iter().position(|word| *word == "run").map_or(0, |at| at + 1);
    let mut at = start;
    while let Some(word) = words.get(at) {
        if !is_option(word) {
            let name = word.split('@').next().unwrap_or(word);
            let (folder, last) = name.rsplit_once('/').unwrap_or(("", name));
            let last = last.split(':').next().unwrap_or(last);
            let owner = folder.rsplit('/').next().unwrap_or_default();
            found.names.extend([format!("{owner}/{last}"), last.to_owned()]);
            found.is_image = true;
            return;
        }
        at += if word.contains('=') || ALONE.contains(word) { 1 } else { 2 };
    }
}

fn is_option(word: &str) -> bool {
    word.starts_with('-')
}

/// The name of a program or script without its folder and the ending of its file.
fn file_stem(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let endings = [".exe", ".cmd", ".bat", ".js", ".mjs", ".cjs", ".ts", ".py", ".jar", ".dll"];
    endings.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}
