//! Outboxes without a transport.

use super::*;

#[test]
fn held_messages_count_in_the_budget() {
    let budget = Budget::new(100);
    let outbox = Outbox::for_notifications(&budget);
    let held = outbox.hold(Bytes::from(vec![0; 60])).expect("room");
    assert_eq!((budget.held(), outbox.hold(Bytes::from(vec![0; 60]))), (60, None));
    drop(held);
    assert_eq!(budget.held(), 0);
    let alone = Outbox::default();
    let _first = alone.hold(Bytes::from(vec![0; UNREAD_ALONE])).expect("room for the first");
    assert_eq!(alone.hold(Bytes::from_static(b"x")), None, "the only host has a limit too");
}

fn words(frames: VecDeque<Frame>) -> Vec<String> {
    frames.into_iter().map(|frame| String::from_utf8_lossy(&frame.into_bytes()).into_owned()).collect()
}

fn taken(outbox: &Outbox) -> Vec<String> {
    let frames = outbox.lock().take();
    outbox.written(frames.iter().map(Frame::len).sum());
    words(frames)
}

fn frame(text: impl Into<String>) -> Frame {
    Frame::from(text.into().into_bytes())
}

fn notice(dropped: u64) -> Frame {
    frame(format!("{dropped} dropped"))
}

#[test]
fn notifications_keep_their_place_among_other_messages() {
    let outbox = Outbox::default();
    outbox.send_log(frame("log 1"));
    outbox.send(frame("request"));
    outbox.send_if_room(frame("progress"));
    outbox.send_log(frame("log 2"));
    outbox.answer(frame("answer"));
    outbox.send_log(frame("log 3"));
    assert_eq!(taken(&outbox), ["log 1", "request", "progress", "log 2", "answer", "log 3"]);
    outbox.answer(frame("second"));
    outbox.send_log(frame("log 4"));
    assert_eq!(taken(&outbox), ["second", "log 4"]);
    assert_eq!(outbox.lock().bytes, 0);
}

#[test]
fn a_flood_of_notifications_to_a_host_that_reads_nothing_stays_bounded() {
    let budget = Budget::new(100_000_000);
    let (many, unheard) = (Outbox::for_window(&budget), Outbox::for_notifications(&budget));
    for outbox in [Outbox::default(), many, unheard] {
        outbox.set_notice(Some(notice));
        outbox.send(frame("question"));
        outbox.send_if_room(frame("updated"));
        for n in 0..100_000 {
            outbox.send_log(frame(format!("message {n}")));
        }
        let taken = taken(&outbox);
        let kept = taken.len() - 3;
        assert!((100..5000).contains(&kept), "{kept} log messages were kept");
        assert_eq!(taken[0], format!("{} dropped", 100_000 - kept));
        assert_eq!(taken[1..3], ["question", "updated"], "log messages push out nothing else");
        assert_eq!(taken.last().map(String::as_str), Some("message 99999"), "the oldest are dropped");
        assert_eq!(outbox.lock().bytes, 0);
    }
    assert_eq!(budget.held(), 0);
}

#[test]
fn a_large_log_message_waits_for_a_host_that_listens_and_for_no_other() {
    let budget = Budget::new(100_000_000);
    let outbox = Outbox::for_notifications(&budget);
    let large = || Frame::from(vec![b'x'; 380_000]);
    outbox.send_log(large());
    assert_eq!(budget.held(), 0);
    outbox.set_heard(true);
    outbox.send_log(large());
    assert_eq!(budget.held(), 380_000);
    outbox.send_log(large());
    assert_eq!(budget.held(), 380_000, "one at a time");
    outbox.set_heard(false);
    assert_eq!(budget.held(), 0, "a host that has gone does not keep it");
}

#[test]
fn a_small_notification_that_waits_keeps_no_large_buffer() {
    let buffer = Bytes::from(vec![b'x'; 1_000_000]);
    let outbox = Outbox::default();
    outbox.send(frame("unread"));
    outbox.send_log(Frame::from(buffer.slice(..10)));
    assert!(buffer.is_unique());
}

#[test]
fn answers_for_the_only_host_are_limited_as_well() {
    let outbox = Outbox::default();
    assert!(outbox.has_room_for(usize::MAX), "one alone may have any length");
    outbox.answer(frame("x"));
    assert!(outbox.has_room_for(UNREAD_ALONE - 1) && !outbox.has_room_for(UNREAD_ALONE));
}

#[test]
fn dropped_progress_is_not_counted_among_log_messages_that_are_dropped_later() {
    let outbox = Outbox::default();
    outbox.set_notice(Some(notice));
    outbox.lock().lanes.note_dropped(Kind::Other);
    assert!(taken(&outbox).is_empty());
    assert!(outbox.lock().lanes.is_untouched());
    outbox.lock().lanes.note_dropped(Kind::Log);
    assert_eq!(taken(&outbox), ["1 dropped"]);
}
