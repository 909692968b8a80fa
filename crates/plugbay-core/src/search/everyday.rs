//! Everyday words: how a command of a shell, a phrase or a plain word is read, where tools are called otherwise.
//!
//! Each group says why it is there. Readings are words that catalogs of tools use.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use super::spelling::is_one_mistake;

/// How a typed word is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// These words stand instead of it.
    Instead(&'static str),
    /// These words count beside it.
    Beside(&'static str),
}

type Entries = &'static [(&'static str, &'static str)];

/// Commands of a shell, where a query begins with them: a user types the command that would do it.
const COMMANDS: &[Entries] = &[FILE_COMMANDS, NET_COMMANDS, DATA_COMMANDS];

/// Commands for files. Tools have the nouns in full.
const FILE_COMMANDS: Entries = &[
    ("awk", "edit text file"),
    ("cat", "read text file"),
    ("chmod", "file permissions"),
    ("chown", "file permissions owner"),
    ("cp", "copy file"),
    ("df", "disk usage"),
    ("dir", "list directory"),
    ("du", "list directory sizes"),
    ("echo", "write file"),
    ("emacs", "edit file"),
    ("grep", "search text in files code"),
    ("head", "read text file"),
    ("less", "read text file"),
    ("ll", "list directory"),
    ("ln", "create link file"),
    ("ls", "list directory"),
    ("mkdir", "create directory"),
    ("mv", "move file"),
    ("nano", "edit file"),
    ("pwd", "current directory allowed directories"),
    ("rg", "search text in files code"),
    ("rm", "delete file"),
    ("rmdir", "delete directory"),
    ("rsync", "copy file upload"),
    ("sed", "edit file replace"),
    ("stat", "get file info"),
    ("tail", "read text file logs"),
    ("tar", "archive compress files"),
    ("tee", "write file"),
    ("touch", "write create file"),
    ("tree", "directory list"),
    ("unzip", "extract archive"),
    ("vi", "edit file"),
    ("vim", "edit file"),
    ("wc", "get file info read text"),
    ("zip", "compress archive files"),
];

/// Commands for other machines.
const NET_COMMANDS: Entries = &[
    ("curl", "fetch url"),
    ("ftp", "upload download file"),
    ("gh", "github"),
    ("glab", "gitlab"),
    ("nslookup", "dns domain record"),
    ("scp", "copy file upload"),
    ("sftp", "upload download file"),
    ("ssh", "exec command shell"),
    ("wget", "fetch download url"),
    ("whois", "domain"),
];

/// Commands for data, processes and the user.
const DATA_COMMANDS: Entries = &[
    ("cal", "calendar"),
    ("crontab", "schedule"),
    ("docker", "container"),
    ("htop", "cpu memory metrics"),
    ("journalctl", "logs"),
    ("kubectl", "kubernetes"),
    ("man", "documentation"),
    ("mongosh", "mongodb find query"),
    ("mysql", "query sql database"),
    ("npm", "package"),
    ("pip", "package"),
    ("ps", "list processes"),
    ("psql", "query postgres sql"),
    ("sqlite3", "sqlite query"),
    ("systemctl", "restart service"),
    ("top", "cpu memory metrics"),
    ("whoami", "whoami current user me"),
];

/// Two words that mean another thing than each of them.
const PHRASES: &[Entries] = &[VERBS_IN_TWO_WORDS, QUESTIONS, THINGS_IN_TWO_WORDS];

/// Verbs with a particle, which search would leave out as a little word.
const VERBS_IN_TWO_WORDS: Entries = &[
    ("add up", "sum formula"),
    ("back up", "backup"),
    ("bring back", "restore"),
    ("call off", "cancel"),
    ("check off", "complete"),
    ("clean up", "cleanup delete"),
    ("come up", "generate"),
    ("cross off", "complete"),
    ("fill in", "fill"),
    ("fill out", "fill"),
    ("find out", "search"),
    ("get rid", "delete"),
    ("go back", "navigate back"),
    ("go to", "navigate switch"),
    ("hand over", "assign transfer"),
    ("hang up", "end call"),
    ("jot down", "note"),
    ("kick off", "run trigger"),
    ("log in", "login"),
    ("log off", "logout"),
    ("log out", "logout"),
    ("look at", "view read"),
    ("look for", "search"),
    ("look inside", "read"),
    ("look up", "search"),
    ("note down", "note"),
    ("pass on", "forward"),
    ("put off", "reschedule postpone"),
    ("read aloud", "text speech"),
    ("read out", "text speech"),
    ("ring up", "call phone"),
    ("roll back", "rollback"),
    ("say no", "decline"),
    ("say yes", "accept"),
    ("set up", "create configure"),
    ("shut down", "shutdown"),
    ("shut up", "mute silence"),
    ("sign in", "login"),
    ("sign out", "logout"),
    ("spin up", "create"),
    ("start over", "restart"),
    ("switch off", "disable turn off"),
    ("switch on", "enable turn on"),
    ("tear down", "delete"),
    ("throw away", "delete"),
    ("tick off", "complete check"),
    ("tidy up", "cleanup delete"),
    ("try again", "retry rerun"),
    ("turn down", "decline"),
    ("turn off", "disable power off"),
    ("turn on", "enable power on"),
    ("wake up", "reminder"),
    ("write down", "note transcribe"),
];

/// Questions whose words are all little ones.
const QUESTIONS: Entries = &[
    ("am i", "current user"),
    ("around here", "places nearby search"),
    ("get to", "directions"),
    ("how big", "size info"),
    ("how far", "distance"),
    ("how high", "elevation"),
    ("how large", "size info"),
    ("how long", "duration time distance"),
    ("know about", "search memory"),
    ("near me", "places nearby search"),
    ("what day", "current date time"),
    ("what time", "current time"),
    ("where is", "location geocode"),
    ("who am", "current user profile me whoami"),
    ("who changed", "blame history"),
    ("who touched", "blame history"),
    ("who wrote", "blame history author"),
];

/// Things that catalogs call by one word.
const THINGS_IN_TWO_WORDS: Entries = &[
    ("address book", "contacts"),
    ("group chat", "channel"),
    ("junk mail", "spam email filter"),
    ("phone call", "call"),
    ("screen grab", "screenshot"),
    ("shopping list", "task todo list"),
    ("slide deck", "presentation"),
    ("thumbs up", "reaction"),
    ("voice memo", "audio speech"),
    ("word file", "word document"),
];

/// Plain words, with the words by which tools go.
const WORDS: &[Entries] = &[FILES, MEMORY, GIT, PEOPLE, TIME, MEDIA, OFFICE, WEB, MACHINES, VERBS];

/// Files and what they hold.
const FILES: Entries = &[
    ("attached", "attachment"),
    ("big", "size"),
    ("db", "database sqlite"),
    ("directory", "folder"),
    ("disk", "file filesystem"),
    ("docx", "word document"),
    ("folder", "directory"),
    ("folders", "directory"),
    ("jpeg", "image"),
    ("jpg", "image"),
    ("md", "markdown"),
    ("mp3", "audio speech"),
    ("mp4", "video"),
    ("png", "image media"),
    ("pptx", "powerpoint presentation"),
    ("wav", "audio speech"),
    ("xlsx", "excel workbook"),
    ("yml", "yaml manifest"),
    ("zip", "archive"),
];

/// People speak of memory; servers of graphs with entities and observations.
const MEMORY: Entries = &[
    ("forget", "delete memory observations"),
    ("memorise", "memory add observations"),
    ("memorize", "memory add observations"),
    ("recall", "memory search nodes"),
    ("remember", "memory observations entities graph"),
];

/// What people do with git, and the command that does it.
const GIT: Entries = &[
    ("bookmark", "star favorite"),
    ("diffs", "diff"),
    ("lgtm", "approve pull request review"),
    ("mr", "merge request"),
    ("ship", "merge release deploy"),
    ("stage", "add staging"),
    ("uncommitted", "unstaged status"),
    ("undo", "reset revert"),
    ("unstage", "reset unstages"),
];

/// People and messages.
const PEOPLE: Entries = &[
    ("boss", "user"),
    ("colleague", "user email"),
    ("colleagues", "users"),
    ("coworker", "user"),
    ("dial", "call phone"),
    ("dm", "message"),
    ("emoji", "reaction"),
    ("friend", "contact"),
    ("heart", "reaction"),
    ("inbox", "email messages list"),
    ("junk", "spam email filter"),
    ("mail", "email"),
    ("mails", "emails messages inbox list"),
    ("mom", "contact message"),
    ("mum", "contact message"),
    ("nag", "reminder"),
    ("remind", "reminder"),
    ("ring", "call phone"),
    ("sms", "message"),
    ("someone", "user"),
    ("spam", "junk email filter"),
    ("teammate", "member"),
];

/// Days and plans.
const TIME: Entries = &[
    ("agenda", "list calendar events view"),
    ("appointment", "calendar event"),
    ("busy", "freebusy availability"),
    ("chore", "task todo"),
    ("chores", "tasks todo"),
    ("diary", "calendar event"),
    ("errand", "task todo"),
    ("errands", "tasks todo"),
    ("free", "freebusy availability"),
    ("invitation", "event respond"),
    ("meeting", "calendar event"),
    ("meetings", "calendar events"),
    ("today", "date current"),
    ("tomorrow", "calendar events tasks date"),
    ("tonight", "calendar events"),
    ("wake", "reminder"),
];

/// Pictures and sound.
const MEDIA: Entries = &[
    ("aloud", "speech"),
    ("clip", "video"),
    ("draw", "generate image"),
    ("melody", "music compose"),
    ("movie", "video"),
    ("paint", "generate image"),
    ("photo", "image media"),
    ("pic", "image"),
    ("picture", "image media"),
    ("said", "speech messages history"),
    ("say", "speech"),
    ("sketch", "generate image diagram"),
    ("snap", "screenshot"),
    ("song", "music"),
    ("speak", "speech"),
    ("transcribe", "speech text"),
];

/// Documents by the names of programs and by what they look like.
const OFFICE: Entries = &[
    ("cells", "range excel"),
    ("colour", "format color"),
    ("columns", "describe schema fields"),
    ("deck", "presentation"),
    ("jot", "note create page"),
    ("notebook", "onenote page"),
    ("organigram", "organization chart"),
    ("scribble", "note"),
    ("slides", "slide presentation powerpoint"),
    ("slideshow", "presentation"),
    ("spreadsheet", "excel workbook worksheet"),
    ("sums", "formula"),
    ("tab", "sheet page"),
];

/// The web as people see it.
const WEB: Entries = &[
    ("box", "field"),
    ("browse", "navigate browser"),
    ("google", "web search"),
    ("internet", "web search"),
    ("link", "url"),
    ("loaded", "wait"),
    ("online", "web"),
    ("popup", "dialog"),
    ("site", "website"),
    ("surf", "navigate browser"),
    ("website", "page url"),
];

/// Machines, money and trouble.
const MACHINES: Entries = &[
    ("alarm", "alert downtime"),
    ("alarms", "alerts downtime mute"),
    ("bill", "invoice balance billing"),
    ("bounce", "reboot restart"),
    ("broke", "failure failed logs"),
    ("broken", "error incident failed"),
    ("cert", "certificate"),
    ("container", "pod"),
    ("copies", "replicas scale"),
    ("crashing", "error logs status"),
    ("hungry", "restaurant places search"),
    ("k8s", "kubernetes"),
    ("machine", "droplet vm"),
    ("money", "balance billing invoice payment"),
    ("near", "places"),
    ("nearby", "places search"),
    ("outage", "incident"),
    ("owe", "balance billing invoice"),
    ("passwords", "password vault items"),
    ("red", "failure failed"),
    ("silence", "mute downtime"),
    ("slow", "performance trace"),
    ("speed", "performance"),
    ("spent", "billing cost invoice"),
    ("ssl", "certificate tls"),
];

/// Verbs that people prefer to those of programs.
const VERBS: Entries = &[
    ("bin", "delete"),
    ("chuck", "delete"),
    ("cite", "citation"),
    ("ditch", "delete"),
    ("erase", "delete"),
    ("finished", "complete"),
    ("grab", "get capture"),
    ("hit", "press click"),
    ("peek", "view read"),
    ("postpone", "reschedule"),
    ("put", "add insert"),
    ("rid", "delete"),
    ("save", "write commit"),
    ("scrap", "delete"),
    ("shift", "move reschedule update"),
    ("stick", "add set"),
    ("swap", "replace"),
    ("tap", "click"),
    ("think", "thinking"),
    ("throw", "delete"),
    ("tick", "check complete"),
    ("trash", "delete"),
    ("wipe", "delete clear"),
];

/// How a word is read that a query begins with, or another.
pub(super) fn reading(word: &str, is_first: bool) -> Option<Reading> {
    let known = known();
    let command = known.commands.get(word).filter(|_| is_first);
    let instead = command.map(|words| Reading::Instead(words));
    instead.or_else(|| known.words.get(word).map(|words| Reading::Beside(words)))
}

/// How far behind its verb a particle may stand: `turn the machine off`.
const FAR: usize = 4;
const PARTICLES: [&str; 7] = ["away", "back", "down", "off", "on", "out", "up"];

/// The words that stand instead of a word and one that follows it, and how far behind that one is.
pub(super) fn phrase<'a>(
    first: &str,
    behind: impl Iterator<Item = &'a str>,
) -> Option<(&'static str, usize)> {
    let seconds = known().phrases.get(first)?;
    let read = |(at, word): (usize, &str)| {
        let (_, words) = seconds.iter().find(|(second, _)| *second == word)?;
        (at == 0 || PARTICLES.contains(&word)).then_some((*words, at))
    };
    behind.take(FAR).enumerate().find_map(read)
}

/// The everyday word that was probably meant by one with a mistake in it.
pub(super) fn meant(word: &str) -> Option<&'static str> {
    let known = known();
    let near = known.words.keys().chain(known.commands.keys()).filter(|other| is_one_mistake(word, other));
    near.min().copied()
}

struct Known {
    commands: FxHashMap<&'static str, &'static str>,
    /// By their first word.
    phrases: FxHashMap<&'static str, Vec<(&'static str, &'static str)>>,
    words: FxHashMap<&'static str, &'static str>,
}

fn known() -> &'static Known {
    static KNOWN: OnceLock<Known> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let all = |groups: &'static [Entries]| groups.iter().flat_map(|group| group.iter().copied());
        let mut phrases: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for (phrase, words) in all(PHRASES) {
            let (first, second) = phrase.split_once(' ').unwrap_or((phrase, ""));
            phrases.entry(first).or_default().push((second, words));
        }
        Known { commands: all(COMMANDS).collect(), phrases, words: all(WORDS).collect() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_everyday_word_is_read_in_two_ways() {
        for groups in [COMMANDS, PHRASES, WORDS] {
            let mut seen = std::collections::HashSet::new();
            for (word, readings) in groups.iter().copied().flatten() {
                assert!(seen.insert(word), "{word} stands there twice");
                assert!(
                    !readings.is_empty()
                        && !readings.split(' ').any(|reading| reading == *word || reading.is_empty())
                        || *word == "whoami",
                    "{word}"
                );
            }
        }
        assert!(PHRASES.iter().copied().flatten().all(|(phrase, _)| phrase.split(' ').count() == 2));
    }

    #[test]
    fn a_command_is_one_only_where_a_query_begins() {
        assert_eq!(reading("ls", true), Some(Reading::Instead("list directory")));
        assert_eq!(reading("cat", false), None);
        assert_eq!(reading("folder", false), Some(Reading::Beside("directory")));
        assert_eq!((meant("foldr"), meant("zebra")), (Some("folder"), None));
        assert_eq!(phrase("call", ["off"].into_iter()), Some(("cancel", 0)));
        assert_eq!(phrase("call", ["the", "show", "off"].into_iter()), Some(("cancel", 2)));
        assert_eq!(phrase("call", ["me"].into_iter()), None);
        assert_eq!(phrase("go", ["there", "to"].into_iter()), None, "only particles stand apart");
    }
}
