//! The stored results: one JSON file, to which each measured part is added.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use crate::rivals::Effort;
use crate::rivals::description::Description;
use crate::rivals::running::Rival;
use crate::table::{Table, number};
use crate::{Outcome, process};

#[derive(Debug, Default)]
pub(crate) struct Results {
    whole: Value,
}

impl Results {
    /// Reads the file; empty results if there is none.
    pub(crate) fn read(file: &Path) -> Outcome<Self> {
        match fs::read_to_string(file) {
            Ok(text) => {
                let whole = serde_json::from_str(&text);
                let whole = whole.map_err(|error| format!("{}: {error}", file.display()))?;
                Ok(Self { whole })
            }
            Err(_) => Ok(Self { whole: json!({ "rivals": {} }) }),
        }
    }

    /// Writes the file as a whole, so that a run that is stopped leaves the last state.
    pub(crate) fn write(&self, file: &Path) -> Outcome<()> {
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        let next = file.with_extension("json.new");
        fs::write(&next, format!("{}\n", serde_json::to_string_pretty(&self.whole)?))?;
        Ok(fs::rename(next, file)?)
    }

    /// Notes the place and time of this run.
    pub(crate) fn begin(&mut self) {
        self.whole["date"] = Value::from(today());
        self.whole["machine"] = machine();
    }

    /// Enters a gateway. The results of another version are removed.
    pub(crate) fn enter(&mut self, rival: &Rival) {
        let about = &rival.about;
        let entry = &mut self.whole["rivals"][&about.name];
        if entry["version"] != rival.version.as_str() {
            *entry = json!({ "parts": {} });
        }
        entry["version"] = Value::from(&*rival.version);
        entry["ours"] = Value::from(about.is_ours());
        describe(entry, about);
    }

    /// Notes a gateway that is not installed; figures of an earlier run stay.
    pub(crate) fn absent(&mut self, about: &Description, reason: &str) {
        let entry = &mut self.whole["rivals"][&about.name];
        if entry["parts"].as_object().is_none_or(Map::is_empty) {
            *entry = json!({ "absent": reason, "parts": {} });
            describe(entry, about);
        }
    }

    /// Whether a part was already measured at least as thoroughly. Failed parts are tried again.
    pub(crate) fn has(&self, name: &str, part: &str, effort: Effort) -> bool {
        let stored = &self.whole["rivals"][name]["parts"][part];
        let thorough = effort == Effort::Quick || stored["quick"] == false;
        stored.is_object() && stored["failed"].is_null() && thorough
    }

    pub(crate) fn set(&mut self, name: &str, part: &str, effort: Effort, mut measured: Value) {
        measured["date"] = Value::from(today());
        measured["load"] = Value::from(process::load());
        measured["quick"] = Value::from(effort == Effort::Quick);
        self.whole["rivals"][name]["parts"][part] = measured;
    }

    pub(crate) fn json(&self) -> String {
        self.whole.to_string()
    }

    pub(crate) fn whole(&self) -> &Value {
        &self.whole
    }

    /// A summary with a few figures of each gateway.
    pub(crate) fn summary(&self) -> String {
        let mut table =
            Table::new(2, ["gateway", "version", "1 KB ×1 p50 ×direct", "100 KB ×1 CPU µs", "warm list ms"]);
        for (name, entry) in self.whole["rivals"].as_object().into_iter().flatten() {
            let parts = &entry["parts"];
            let calls = if parts["stdio"]["rows"].is_array() { &parts["stdio"] } else { &parts["http"] };
            let of = |rows: &Value, key: &str, label: &str, field: &str| {
                let mut rows = rows.as_array().into_iter().flatten();
                let row = rows.find(|row| {
                    row[key] == label && (row["route"].is_null() || row["route"] == name.as_str())
                });
                number(row.and_then(|row| row[field].as_f64()))
            };
            table.row([
                name.clone(),
                entry["version"].as_str().unwrap_or("–").to_owned(),
                of(&calls["rows"], "case", "1 KB ×1", "p50_to_direct"),
                of(&calls["rows"], "case", "100 KB ×1", "cpu_us"),
                of(&parts["start"]["rows"], "situation", "warm", "listed_ms"),
            ]);
        }
        table.render()
    }
}

fn describe(entry: &mut Value, about: &Description) {
    entry["language"] = Value::from(&*about.language);
    entry["source"] = Value::from(&*about.source);
    entry["note"] = json!(about.note);
}

fn machine() -> Value {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (info, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
    let field = |text: &str, key: &str| {
        let line = text.lines().find(|line| line.starts_with(key));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
    };
    json!({
        "processor": field(&info, "model name"),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "memory": field(&memory, "MemTotal"),
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
    })
}

/// The day in UTC, as YYYY-MM-DD.
fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    date(seconds / 86_400)
}

/// The date of a day since 1970.
fn date(mut days: u64) -> String {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(
            [0, 59, 11_016, 20_774].map(date),
            ["1970-01-01", "1970-03-01", "2000-02-29", "2026-11-17"]
        );
    }

    #[test]
    fn a_quick_result_does_not_stand_for_a_full_one() {
        let mut results = Results { whole: json!({ "rivals": {} }) };
        results.set("a", "start", Effort::Quick, json!({ "rows": [] }));
        assert!(results.has("a", "start", Effort::Quick));
        assert!(!results.has("a", "start", Effort::Full));
        results.set("a", "start", Effort::Full, json!({ "failed": "no" }));
        assert!(!results.has("a", "start", Effort::Quick));
    }
}
