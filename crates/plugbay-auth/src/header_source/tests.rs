//! Headers from programs and files, as requests get them.

use std::{fs, path::Path};

use tempfile::TempDir;

use super::*;

const TARGET: Target<'static> = Target { method: "POST", url: "https://h.example/mcp" };

/// A folder with a script that counts its runs in the file `runs`.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn source(&self, script: &str) -> HeaderSource {
        let script = format!("echo x >> runs\n{script}");
        let command = HeadersCommand {
            program: "sh".to_owned(),
            args: vec!["-c".to_owned(), script],
            folder: Some(self.0.path().to_owned()),
            written: "./headers.sh ${KEY}".to_owned(),
        };
        HeaderSource::of_command(command, "team", TARGET.url)
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.0.path().join("runs")).unwrap_or_default().lines().count()
    }
}

fn rejection(generation: Generation, attempts: u32) -> Rejection<'static> {
    Rejection { status: 401, challenges: Vec::new(), dpop_nonce: None, request: TARGET, generation, attempts }
}

fn first_value(headers: &Headers) -> &str {
    headers.values[0].1.expose()
}

#[tokio::test]
async fn a_program_runs_once_for_many_requests() {
    let place = Place::new();
    let source = place.source(r#"sleep 0.2; echo "{\"Authorization\": \"Bearer $(wc -l < runs | tr -d ' ') $PLUGBAY_SERVER_NAME\"}""#);
    let (one, other) = tokio::join!(source.headers(TARGET), source.headers(TARGET));
    assert_eq!(
        (first_value(&one.unwrap()), first_value(&other.unwrap())),
        ("Bearer 1 team", "Bearer 1 team")
    );
    assert_eq!(first_value(&source.headers(TARGET).await.unwrap()), "Bearer 1 team");
    assert_eq!(place.runs(), 1);
    assert!(!format!("{source:?}").contains("Bearer"), "{source:?}");
    assert!(source.login().await.is_err());
}

#[tokio::test]
async fn rejected_headers_are_got_once_more_for_all_requests() {
    let place = Place::new();
    let source = place.source(r#"echo "{\"A\": \"$(wc -l < runs | tr -d ' ')\"}""#);
    let old = source.headers(TARGET).await.unwrap().generation;
    let changed = source.changed(old);
    let (one, other) = tokio::join!(source.rejected(rejection(old, 1)), source.rejected(rejection(old, 1)));
    assert!(matches!((one, other), (Verdict::SendAgain, Verdict::SendAgain)));
    changed.await;
    let new = source.headers(TARGET).await.unwrap();
    assert_eq!((first_value(&new), place.runs()), ("2", 2));
    assert_ne!((new.generation, source.generation()), (old, old));
    assert!(matches!(source.rejected(rejection(new.generation, 3)).await, Verdict::Final(_)), "no end");
    let forbidden = Rejection { status: 403, ..rejection(new.generation, 1) };
    assert!(matches!(source.rejected(forbidden).await, Verdict::NotOurs));
    assert_eq!(place.runs(), 2);
}

#[tokio::test]
async fn headers_that_stay_the_same_are_rejected_finally_and_cause_no_storm() {
    let place = Place::new();
    let source = place.source(r#"echo '{"A": "s3cr3t"}'"#);
    let generation = source.headers(TARGET).await.unwrap().generation;
    for _ in 0..5 {
        let Verdict::Final(failure) = source.rejected(rejection(generation, 1)).await else { panic!() };
        let text = failure.to_string();
        assert!(
            text.starts_with(
                "the server rejects the headers that come from the command `./headers.sh ${KEY}`"
            )
        );
        assert!(text.contains("; try: run `./headers.sh ${KEY}` in /") && !text.contains("s3cr3t"), "{text}");
    }
    assert_eq!(place.runs(), 2);
    tokio::time::pause();
    tokio::time::advance(PAUSE).await;
    tokio::time::resume();
    assert!(matches!(source.rejected(rejection(generation, 1)).await, Verdict::Final(_)));
    assert_eq!(place.runs(), 3);
}

#[tokio::test]
async fn a_program_that_prints_no_headers_fails_with_its_stderr() {
    for (script, problem) in [
        (
            "echo s3cr3t; echo 'no session, log in' >&2; exit 3",
            "it ended with exit status: 3; stderr: no session, log in; try: run",
        ),
        ("echo s3cr3t", "what it printed cannot be used: that is no JSON object of headers; try: run"),
        ("head -c 100000 /dev/zero", "it printed more than 64 KiB; try: run"),
    ] {
        let place = Place::new();
        let source = place.source(script);
        let text = source.headers(TARGET).await.unwrap_err().to_string();
        assert!(text.contains(problem) && !text.contains("s3cr3t"), "{text}");
        assert!(source.headers(TARGET).await.is_err());
        assert_eq!(place.runs(), 1, "not for each request");
    }
    let command = HeadersCommand {
        program: "/nowhere/at-all".to_owned(),
        args: Vec::new(),
        folder: None,
        written: "/nowhere/at-all".to_owned(),
    };
    let source = HeaderSource::of_command(command, "s", TARGET.url);
    let text = source.headers(TARGET).await.unwrap_err().to_string();
    assert!(text.starts_with("the command `/nowhere/at-all`: No such file"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_does_not_end_is_ended() {
    let text = Place::new().source("sleep 1000").headers(TARGET).await.unwrap_err().to_string();
    assert!(text.contains("it did not end within 10 s"), "{text}");
}

#[tokio::test]
async fn a_program_that_has_ended_leaves_no_process_behind() {
    let place = Place::new();
    let source = place.source(r#"sleep 1000 >/dev/null 2>&1 & echo $! > child; echo '{"A": "b"}'"#);
    source.headers(TARGET).await.unwrap();
    let child = fs::read_to_string(place.0.path().join("child")).unwrap();
    let child = rustix::process::Pid::from_raw(child.trim().parse().unwrap()).unwrap();
    let is_gone = || match rustix::process::test_kill_process(child) {
        // Its new parent process may not have noticed yet.
        Ok(()) => fs::read_to_string(format!("/proc/{child}/stat")).is_ok_and(|stat| stat.contains(") Z ")),
        Err(_) => true,
    };
    for _ in 0..100 {
        if is_gone() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it still runs");
}

#[tokio::test]
async fn a_file_with_headers_is_read_again_when_it_has_changed() {
    let place = Place::new();
    let path = place.0.path().join("headers");
    let write = |path: &Path, text: &str| fs::write(path, text).unwrap();
    let source = HeaderSource::of_file(path.clone());
    let text = source.headers(TARGET).await.unwrap_err().to_string();
    assert!(text.contains("cannot be used: No such file") && text.contains("; try: "), "{text}");
    write(&path, "# mine\nAuthorization: Bearer one\n");
    let old = source.headers(TARGET).await.unwrap();
    assert_eq!(first_value(&old), "Bearer one");
    let Verdict::Final(failure) = source.rejected(rejection(old.generation, 1)).await else { panic!() };
    assert!(failure.to_string().contains("the file /"), "{failure}");
    write(&path, r#"{"Authorization": "Bearer another"}"#);
    assert!(matches!(source.rejected(rejection(old.generation, 1)).await, Verdict::SendAgain));
    assert_eq!(first_value(&source.headers(TARGET).await.unwrap()), "Bearer another");
    let waits = source.changed(source.generation());
    write(&path, "Authorization: Bearer number four\n");
    waits.await;
    assert_eq!(first_value(&source.headers(TARGET).await.unwrap()), "Bearer number four");
}
