//! From the bytes of a response to events: 20,000 text deltas, through the parser alone and through a whole call over a
//! local connection.

#![allow(clippy::unwrap_used, reason = "a benchmark that fails may stop")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use divan::counter::ItemsCount;
use divan::{AllocProfiler, Bencher, black_box};
use loomd_config::config_toml::ModelProvider;
use loomd_model::sse::SseParser;
use loomd_model::{CallHeaders, CallMeter, Http, Identity, InputItem, Provider, Request, Session, Tools};
use loomd_protocol::{ContentItem, ResponseItem};
use tokio::runtime::Runtime;

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

const DELTAS: usize = 20_000;

fn events() -> Vec<String> {
    let delta = |number: usize| {
        format!(
            "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\"item_id\":\"msg_1\",\
             \"output_index\":0,\"content_index\":0,\"delta\":\" word {number}\",\"sequence_number\":{number}}}\n\n"
        )
    };
    (0..DELTAS).map(delta).collect()
}

#[divan::bench]
fn parsed(bencher: Bencher) {
    let stream = events().concat();
    bencher.counter(ItemsCount::new(DELTAS)).bench_local(|| {
        let mut parser = SseParser::default();
        let mut bytes = 0;
        for piece in stream.as_bytes().chunks(8 * 1024) {
            parser.push(piece);
            while let Some(data) = parser.next() {
                bytes += data.unwrap().len();
            }
        }
        bytes
    });
}

/// How the deltas are written to the socket.
#[derive(Clone, Copy, Debug)]
enum Writes {
    Many,
    OneForEachPiece,
}

/// Serves all requests of one connection, one after the other.
fn serve(writes: Writes, events: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let end = "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\"}}\n\n".to_owned();
    let chunk = |event: &String| format!("{:x}\r\n{event}\r\n", event.len());
    let mut pieces: Vec<_> = events.iter().chain([&end]).map(chunk).collect();
    pieces.push("0\r\n\r\n".into());
    if let Writes::Many = writes {
        pieces = vec![pieces.concat()];
    }
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            stream.set_nodelay(true).unwrap();
            while read_request(&mut stream) {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
                stream.write_all(head.as_bytes()).unwrap();
                pieces.iter().for_each(|piece| stream.write_all(piece.as_bytes()).unwrap());
            }
        }
    });
    format!("http://{address}/v1")
}

fn read_request(stream: &mut TcpStream) -> bool {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 64 * 1024]);
    loop {
        let Ok(count @ 1..) = stream.read(&mut buffer) else { return false };
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            if body.len() == length.parse::<usize>().unwrap() {
                return true;
            }
        }
    }
}

fn session(base_url: String) -> Session {
    let config = ModelProvider { name: "bench".into(), base_url: Some(base_url), ..ModelProvider::default() };
    Session::new(Provider::new("bench", &config, &|_| None, None), Http::new(&|_| None), Identity::default())
}

fn request(items: usize) -> Request {
    let content = vec![ContentItem::InputText { text: "some words ".repeat(50) }];
    let item = ResponseItem::Message { role: "user".into(), content, end_turn: None, phase: None, id: None };
    Request {
        model: "m".into(),
        instructions: "instructions ".repeat(1000).into(),
        input: vec![InputItem::new(&item).unwrap(); items],
        tools: Arc::new(Tools::default()),
        parallel_tool_calls: false,
        reasoning: None,
        verbosity: None,
        output_schema: None,
        service_tier: None,
        prompt_cache_key: "t".into(),
        headers: CallHeaders { session_id: "t".into(), ..CallHeaders::default() },
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

async fn call(session: &mut Session, request: &Request) -> usize {
    let mut events = session.stream(request, CallMeter::none()).await.unwrap();
    let mut count = 0;
    while let Some(event) = events.next().await {
        black_box(event.unwrap());
        count += 1;
    }
    count
}

#[divan::bench(args = [Writes::Many, Writes::OneForEachPiece], sample_count = 20)]
fn called(bencher: Bencher, writes: Writes) {
    let (runtime, request) = (runtime(), request(1));
    let mut session = session(serve(writes, events()));
    bencher
        .counter(ItemsCount::new(DELTAS))
        .bench_local(|| assert_eq!(runtime.block_on(call(&mut session, &request)), DELTAS + 2));
}

/// A short response to a short and to a long conversation.
#[divan::bench(args = [1, 1000])]
fn small_answer(bencher: Bencher, items: usize) {
    let (runtime, request) = (runtime(), request(items));
    let mut session = session(serve(Writes::Many, Vec::new()));
    bencher.bench_local(|| runtime.block_on(call(&mut session, &request)));
}
