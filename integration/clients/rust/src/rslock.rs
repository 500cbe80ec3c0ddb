// rslock with one server, as the module that includes this knows the crate: main.rs has two versions of it.

use std::collections::HashMap;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::conversation::{locked_version, Answer, Library};
use rslock::{Lock, LockError, LockManager};

const RETRY_DELAY: Duration = Duration::from_millis(200); // at most, at random

pub struct Rslock {
    runtime: Runtime,
    manager: LockManager,
    locks: HashMap<String, Lock>,
}

impl Rslock {
    pub fn connect(url: &str) -> std::io::Result<Rslock> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Rslock {
            runtime,
            manager: LockManager::new(vec![url]),
            locks: HashMap::new(),
        })
    }

    fn lock(&mut self, name: &str, ttl: u64, tries: u32) -> Answer {
        self.manager.set_retry(tries, RETRY_DELAY);
        let lock = self.runtime.block_on(
            self.manager
                .lock(name.as_bytes(), Duration::from_millis(ttl)),
        );
        self.keep(name, lock)
    }

    fn keep(&mut self, name: &str, lock: Result<Lock, LockError>) -> Answer {
        match lock {
            Ok(lock) => {
                self.locks.insert(name.to_string(), lock);
                Ok(Some(true))
            }
            Err(LockError::Unavailable) => Ok(Some(false)),
            Err(error) => Err(error.into()),
        }
    }
}

impl Library for Rslock {
    fn version(&self) -> String {
        locked_version("rslock", SERIES)
    }

    fn acquire(&mut self, name: &str, ttl: u64) -> Answer {
        self.lock(name, ttl, 1)
    }

    fn wait(&mut self, name: &str, ttl: u64, limit: u64) -> Answer {
        self.lock(
            name,
            ttl,
            (2 * limit / RETRY_DELAY.as_millis() as u64) as u32,
        )
    }

    fn extend(&mut self, name: &str, ttl: u64) -> Answer {
        let Some(lock) = self.locks.get(name) else {
            return Ok(Some(false));
        };
        self.manager.set_retry(1, RETRY_DELAY);
        let lock = self
            .runtime
            .block_on(self.manager.extend(lock, Duration::from_millis(ttl)));
        self.keep(name, lock)
    }

    /// An unlock says nothing.
    fn release(&mut self, name: &str) -> Answer {
        let Some(lock) = self.locks.remove(name) else {
            return Ok(Some(false));
        };
        self.runtime.block_on(self.manager.unlock(&lock));
        Ok(Some(true))
    }

    /// Whether it did something shows in what is there afterwards.
    fn steal(&mut self, name: &str) -> Answer {
        let forged = Lock {
            resource: name.as_bytes().to_vec(),
            val: self.manager.get_unique_lock_id()?,
            validity_time: 0,
            lock_manager: self.manager.clone(),
        };
        self.runtime.block_on(self.manager.unlock(&forged));
        Ok(self.held(name)?.map(|held| !held))
    }

    fn held(&mut self, name: &str) -> Answer {
        let value = self
            .runtime
            .block_on(self.manager.query_redis_for_key_value(name.as_bytes()))?;
        Ok(Some(value.is_some()))
    }

    fn mine(&mut self, name: &str) -> Answer {
        let Some(lock) = self.locks.get(name) else {
            return Ok(Some(false));
        };
        match self.runtime.block_on(self.manager.is_freed(lock)) {
            Ok(freed) => Ok(Some(!freed)),
            Err(LockError::RedisKeyNotFound | LockError::RedisKeyMismatch) => Ok(Some(false)),
            Err(error) => Err(error.into()),
        }
    }
}
