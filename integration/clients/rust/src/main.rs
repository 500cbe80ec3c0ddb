//! One lock of the library that the second argument names, on the server at the port that the first one is.

use std::env;
use std::error::Error;

mod by_hand;
mod conversation;
mod redlock;

mod rslock_newest {
    const SERIES: &str = "0.10.";
    include!("rslock.rs");
}

mod rslock_older {
    use rslock_0_7 as rslock;
    const SERIES: &str = "0.7.";
    include!("rslock.rs");
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [port, library] = &words[..] else {
        return Err("wanted: a port and a library".into());
    };
    let url = format!("redis://127.0.0.1:{port}/");
    let mut library: Box<dyn conversation::Library> = match library.as_str() {
        "redis-rs" => Box::new(by_hand::ByHand::connect(&url)?),
        "redlock" => Box::new(redlock::Redlock::connect(&url)),
        "rslock" => Box::new(rslock_newest::Rslock::connect(&url)?),
        "rslock 0.7" => Box::new(rslock_older::Rslock::connect(&url)?),
        other => return Err(format!("there is no library {other}").into()),
    };
    Ok(conversation::serve(library.as_mut())?)
}
