//! What applications write by hand over redis-rs: SET with NX and PX and a token, scripts that compare the token before they
//! delete or prolong, sent by EVALSHA, and trying again to wait.

use std::collections::HashMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::{
    Client, Commands, Connection, ExistenceCheck, RedisResult, Script, SetExpiry, SetOptions,
};

use crate::conversation::{locked_version, Answer, Library};

const POLL: Duration = Duration::from_millis(50);
const RELEASE: &str =
    "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";
const EXTEND: &str =
    "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end";

pub struct ByHand {
    connection: Connection,
    tokens: HashMap<String, String>,
    acquired: u64,
}

impl ByHand {
    pub fn connect(url: &str) -> RedisResult<ByHand> {
        let connection = Client::open(url)?.get_connection()?;
        Ok(ByHand {
            connection,
            tokens: HashMap::new(),
            acquired: 0,
        })
    }

    fn release_by(&mut self, name: &str, token: &str) -> Answer {
        let deleted: i64 = Script::new(RELEASE)
            .key(name)
            .arg(token)
            .invoke(&mut self.connection)?;
        Ok(Some(deleted == 1))
    }
}

impl Library for ByHand {
    fn version(&self) -> String {
        locked_version("redis", "1.")
    }

    fn acquire(&mut self, name: &str, ttl: u64) -> Answer {
        self.acquired += 1;
        let token = format!("process {} lock {}", std::process::id(), self.acquired);
        let options = SetOptions::default()
            .conditional_set(ExistenceCheck::NX)
            .with_expiration(SetExpiry::PX(ttl));
        let acquired: bool = self.connection.set_options(name, &token, options)?;
        if acquired {
            self.tokens.insert(name.to_string(), token);
        }
        Ok(Some(acquired))
    }

    fn wait(&mut self, name: &str, ttl: u64, limit: u64) -> Answer {
        let deadline = Instant::now() + Duration::from_millis(limit);
        while self.acquire(name, ttl)? == Some(false) {
            if Instant::now() > deadline {
                return Ok(Some(false));
            }
            sleep(POLL);
        }
        Ok(Some(true))
    }

    fn extend(&mut self, name: &str, ttl: u64) -> Answer {
        let Some(token) = self.tokens.get(name) else {
            return Ok(Some(false));
        };
        let extended: i64 = Script::new(EXTEND)
            .key(name)
            .arg(token)
            .arg(ttl)
            .invoke(&mut self.connection)?;
        Ok(Some(extended == 1))
    }

    fn release(&mut self, name: &str) -> Answer {
        match self.tokens.remove(name) {
            Some(token) => self.release_by(name, &token),
            None => Ok(Some(false)),
        }
    }

    fn steal(&mut self, name: &str) -> Answer {
        self.release_by(name, "the token of somebody else")
    }

    fn held(&mut self, name: &str) -> Answer {
        Ok(Some(self.connection.exists(name)?))
    }

    fn mine(&mut self, name: &str) -> Answer {
        let value: Option<String> = self.connection.get(name)?;
        Ok(Some(
            value.is_some() && value.as_ref() == self.tokens.get(name),
        ))
    }
}
