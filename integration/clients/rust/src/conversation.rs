//! How a library's program talks with the suite; conformance/client_test.go has the verbs.

use std::error::Error;
use std::io::{self, BufRead, Write};

/// Yes, no, or nothing if the library has no means for what it is asked.
pub type Answer = Result<Option<bool>, Box<dyn Error>>;

/// Times are in milliseconds.
pub trait Library {
    fn version(&self) -> String;
    fn acquire(&mut self, name: &str, ttl: u64) -> Answer;
    fn release(&mut self, name: &str) -> Answer;
    fn steal(&mut self, name: &str) -> Answer;

    fn wait(&mut self, _name: &str, _ttl: u64, _limit: u64) -> Answer {
        Ok(None)
    }
    fn extend(&mut self, _name: &str, _ttl: u64) -> Answer {
        Ok(None)
    }
    fn held(&mut self, _name: &str) -> Answer {
        Ok(None)
    }
    fn mine(&mut self, _name: &str) -> Answer {
        Ok(None)
    }
}

/// Answers until the input ends.
pub fn serve(library: &mut dyn Library) -> io::Result<()> {
    for line in io::stdin().lock().lines() {
        let said = match answer(library, &line?) {
            Ok(said) => said,
            Err(error) => format!("error {error}").replace('\n', " "),
        };
        println!("{said}");
        io::stdout().flush()?;
    }
    Ok(())
}

fn answer(library: &mut dyn Library, line: &str) -> Result<String, Box<dyn Error>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let answer = match words[..] {
        ["version"] => return Ok(library.version()),
        ["key", name] => return Ok(name.to_string()),
        ["acquire", name, ttl] => library.acquire(name, ttl.parse()?),
        ["wait", name, ttl, limit] => library.wait(name, ttl.parse()?, limit.parse()?),
        ["extend", name, ttl] => library.extend(name, ttl.parse()?),
        ["release", name] => library.release(name),
        ["steal", name] => library.steal(name),
        ["held", name] => library.held(name),
        ["mine", name] => library.mine(name),
        _ => Ok(None),
    }?;
    Ok(match answer {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unsupported",
    }
    .to_string())
}

/// The version of a crate that this program was built with. What names several of one crate must say which.
pub fn locked_version(name: &str, series: &str) -> String {
    let lock = include_str!("../Cargo.lock");
    let named = format!("name = \"{name}\"\nversion = \"");
    lock.split(&named)
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .find(|version| version.starts_with(series))
        .unwrap_or("unknown")
        .to_string()
}
