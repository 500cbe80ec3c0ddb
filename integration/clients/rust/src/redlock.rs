//! The redlock crate with one server. It connects anew for every command and waits by trying again.

use std::collections::HashMap;

use ::redlock::{Lock, RedLock};

use crate::conversation::{locked_version, Answer, Library};

const RETRY_DELAY: u32 = 200; // milliseconds at most, at random

pub struct Redlock {
    once: RedLock,
    locks: HashMap<String, Vec<u8>>, // the tokens of what is held
    url: String,
}

impl Redlock {
    pub fn connect(url: &str) -> Redlock {
        Redlock {
            once: manager(url, 1),
            locks: HashMap::new(),
            url: url.to_string(),
        }
    }

    fn keep(&mut self, name: &str, token: Option<Vec<u8>>) -> Answer {
        let acquired = token.is_some();
        if let Some(token) = token {
            self.locks.insert(name.to_string(), token);
        }
        Ok(Some(acquired))
    }

    fn unlock(&self, name: &str, val: Vec<u8>) {
        let resource = name.as_bytes().to_vec();
        self.once.unlock(&Lock {
            resource,
            val,
            validity_time: 0,
            lock_manager: &self.once,
        });
    }
}

fn manager(url: &str, tries: u32) -> RedLock {
    let mut manager = RedLock::new(vec![url]);
    manager.set_retry(tries, RETRY_DELAY);
    manager
}

impl Library for Redlock {
    fn version(&self) -> String {
        locked_version("redlock", "")
    }

    fn acquire(&mut self, name: &str, ttl: u64) -> Answer {
        let token = self
            .once
            .lock(name.as_bytes(), ttl as usize)?
            .map(|lock| lock.val);
        self.keep(name, token)
    }

    fn wait(&mut self, name: &str, ttl: u64, limit: u64) -> Answer {
        let patient = manager(&self.url, limit as u32 * 2 / RETRY_DELAY);
        let token = patient
            .lock(name.as_bytes(), ttl as usize)?
            .map(|lock| lock.val);
        self.keep(name, token)
    }

    /// An unlock says nothing.
    fn release(&mut self, name: &str) -> Answer {
        let Some(token) = self.locks.remove(name) else {
            return Ok(Some(false));
        };
        self.unlock(name, token);
        Ok(Some(true))
    }

    /// Whether it did something shows in who can take the lock.
    fn steal(&mut self, name: &str) -> Answer {
        self.unlock(name, b"the token of somebody else".to_vec());
        match self.acquire(name, 10_000)? {
            Some(true) => self.release(name),
            refused => Ok(refused),
        }
    }
}
