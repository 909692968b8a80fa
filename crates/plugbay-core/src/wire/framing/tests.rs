//! Messages cut out of streams, wherever the reads end.

use proptest::prelude::*;

use super::*;

fn feed(framer: &mut Framer, bytes: &[u8]) -> Vec<Incoming> {
    framer.buffer().extend_from_slice(bytes);
    framer.filled(bytes.len());
    std::iter::from_fn(|| framer.take()).collect()
}

fn message(text: &str) -> Incoming {
    Incoming::Message(Bytes::copy_from_slice(text.as_bytes()))
}

fn noise(text: &str) -> Incoming {
    Incoming::Noise(Bytes::copy_from_slice(text.as_bytes()))
}

const MIXED: &[u8] = b"hello\n{\"a\":1}\r\n\n  {\"b\":2}\nContent-Length: 7\r\nX: y\r\n\r\n{\"c\":\n}content-length:2\r\n\r\n{}\nContent of the day\n[1]\n";

fn mixed() -> Vec<Incoming> {
    vec![
        noise("hello"),
        message("{\"a\":1}"),
        message("{\"b\":2}"),
        message("{\"c\":\t}"),
        message("{}"),
        noise("Content of the day"),
        message("[1]"),
    ]
}

#[test]
fn reads_both_framings_and_noise() {
    assert_eq!(feed(&mut Framer::new(100), MIXED), mixed());
}

#[test]
fn a_log_line_like_a_header_swallows_nothing() {
    let items = feed(&mut Framer::new(100), b"Content-type: starting\r\n{\"a\":1}\r\n");
    assert_eq!(items, [noise("Content-type: starting"), message("{\"a\":1}")]);
}

#[test]
fn a_message_is_one_line_for_every_reader() {
    let mut framer = Framer::new(100);
    assert_eq!(feed(&mut framer, b"{\r}\r"), []);
    assert_eq!(feed(&mut framer, b" {\r\n{}\r"), [message("{\t}\t {")]);
    assert_eq!(feed(&mut framer, b"\n"), [message("{}")]);
}

#[test]
fn a_message_in_one_piece_ends_with_its_last_brace() {
    assert_eq!(as_message(BytesMut::from("{\n\r \"a\":1}\r\n \n")), message("{\t\t \"a\":1}"));
}

#[test]
fn what_is_not_text_is_told_apart() {
    let long = "x".repeat(100);
    for (bytes, is_text) in [
        (format!("{{\"{long}é\"}}").into_bytes(), true),
        (format!("{{\t\"{long}\u{7f}\"}}").into_bytes(), true),
        ([b"{", long.as_bytes(), b"\xff}"].concat(), false),
        ([b"{\xe9", long.as_bytes(), b"}"].concat(), false),
    ] {
        let bytes = Bytes::from(bytes);
        let expected =
            if is_text { Incoming::Message(bytes.clone()) } else { Incoming::NotText(bytes.clone()) };
        let mut framer = Framer::new(1000);
        let counted = [format!("Content-Length: {}\r\n\r\n", bytes.len()).as_bytes(), &bytes].concat();
        for stream in [[&bytes[..], b"\n"].concat(), counted] {
            assert_eq!(feed(&mut framer, &stream), std::slice::from_ref(&expected));
        }
        assert_eq!(feed(&mut framer, b"{}\n"), [message("{}")]);
    }
}

#[test]
fn the_start_of_an_overlong_message_is_kept_however_it_is_read() {
    let body = "{".repeat(3000);
    for stream in [format!("{body}\n{{}}\n"), format!("Content-Length: 3000\r\n\r\n{body}{{}}\n")] {
        for size in [1, 30, 900, 5000] {
            let (mut framer, mut items) = (Framer::new(2000), Vec::new());
            stream.as_bytes().chunks(size).for_each(|chunk| items.extend(feed(&mut framer, chunk)));
            let [Incoming::TooLong { start, .. }, last] = &items[..] else { panic!("{items:?}") };
            assert_eq!((start.len(), last), (START_KEPT, &message("{}")), "reads of {size}");
        }
    }
}

#[test]
fn messages_do_not_depend_on_where_reads_end() {
    let long = format!("{{\ra\r{}\rb\r\n{{}}\n", "x".repeat(3000));
    for (stream, first) in [
        ("Content-a\nb\r\nContent-Length: 2\r\n\r\n{}\n", Some(noise("Content-a"))),
        ("Content-a: b\r\n{}\r\nContent-Length: 2\r\n\r\n{}\n", Some(noise("Content-a: b"))),
        (&*long, None),
    ] {
        let whole = feed(&mut Framer::new(2000), stream.as_bytes());
        for size in [1, 7, 2500] {
            let mut framer = Framer::new(2000);
            let items: Vec<_> =
                stream.as_bytes().chunks(size).flat_map(|part| feed(&mut framer, part)).collect();
            assert_eq!(items, whole, "reads of {size}");
        }
        assert!(first.is_none() || first.as_ref() == whole.first(), "{whole:?}");
        assert_eq!(whole.last(), Some(&message("{}")));
    }
}

#[test]
fn an_overlong_message_is_dropped_whole_and_the_stream_goes_on() {
    let long = [b"{\"result\":\"".as_slice(), &[b'x'; 3000], b"\",\"id\":17}"].concat();
    let line = [&long[..], b"\n{}\n"].concat();
    let counted = [format!("Content-Length: {}\r\n\r\n", long.len()).as_bytes(), &long, b"{}\n"].concat();
    for (stream, portion) in [(&line, 5000), (&line, 700), (&counted, 5000), (&counted, 700)] {
        let mut framer = Framer::new(1000);
        let items: Vec<_> = stream.chunks(portion).flat_map(|part| feed(&mut framer, part)).collect();
        let [Incoming::TooLong { start, end }, last] = &items[..] else { panic!("{items:?}") };
        assert!(start.starts_with(b"{\"result\":\"xxx"), "{start:?}");
        assert!(end.trim_ascii_end().ends_with(b"xx\",\"id\":17}"), "{end:?}");
        assert_eq!(*last, message("{}"));
    }
}

#[test]
fn no_message_holds_the_buffer_of_an_overlong_one() {
    let mut framer = Framer::new(4 << 20);
    for _ in 0..40 {
        assert_eq!(feed(&mut framer, &vec![b'x'; LARGEST_CHUNK]), []);
    }
    assert_eq!(feed(&mut framer, b"\n{}\n").last(), Some(&message("{}")));
    assert!(framer.size <= LARGE_BUFFER && framer.buffer.capacity() <= LARGE_BUFFER, "{}", framer.size);
}

#[test]
fn one_buffer_of_the_limits_size_is_enough() {
    const LIMIT: usize = 4 << 20;
    let mut framer = Framer::new(LIMIT);
    let mut largest = None;
    for read in [LIMIT / 2, LIMIT / 2 - 2000, 1500, 499] {
        for part in vec![b'x'; read].chunks(LARGEST_CHUNK) {
            let buffer = framer.buffer();
            buffer.extend_from_slice(part);
            let place = (framer.size >= LIMIT).then(|| framer.buffer.as_ptr());
            framer.filled(part.len());
            assert_eq!(framer.take(), None);
            assert!(largest.is_none() || largest == place, "copied at {}", framer.buffer.len());
            largest = place;
        }
    }
    framer.buffer();
    assert_eq!(largest, Some(framer.buffer.as_ptr()), "copied at the limit");
}

proptest! {
    #[test]
    fn cuts_do_not_matter(cuts in prop::collection::vec(1usize..30, 1..20)) {
        let mut framer = Framer::new(100);
        let mut rest = MIXED;
        let mut seen = Vec::new();
        for cut in cuts.iter().cycle() {
            let (now, later) = rest.split_at((*cut).min(rest.len()));
            seen.extend(feed(&mut framer, now));
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(seen, mixed());
    }

    #[test]
    fn arbitrary_bytes_never_stall_or_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut framer = Framer::new(50);
        feed(&mut framer, &bytes);
        // After a newline at the latest the stream is in step again, unless a counted body is due.
        if framer.seen() != Some(Framing::ContentLength) && framer.dropping.is_none() {
            let items = feed(&mut framer, b"\n\r\n\r\n{}\n");
            let in_step = items.contains(&message("{}")) || framer.dropping.is_some();
            prop_assert!(in_step);
        }
    }
}
