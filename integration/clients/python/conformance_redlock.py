"""redlock-py, with one server. It does not say whether it released anything, so the server is asked."""
import importlib.metadata
import sys

import redis
import redlock

import conversation

RETRY_DELAY = 0.2  # seconds, its default


class RedlockPy:
    version = staticmethod(lambda: importlib.metadata.version("redlock-py"))

    def __init__(self, port):
        self.client = redis.Redis(host="127.0.0.1", port=port)
        self.held_locks = {}

    def key(self, name):
        return name

    def acquire(self, name, ttl):
        return self.take(name, ttl, redlock.Redlock([self.client], retry_count=1))

    def wait(self, name, ttl, limit):
        return self.take(name, ttl, redlock.Redlock([self.client], retry_count=1 + int(limit / 1000 / RETRY_DELAY)))

    def take(self, name, ttl, manager):
        lock = manager.lock(name, ttl)
        if lock:
            self.held_locks[name] = lock
        return bool(lock)

    def release(self, name):
        return name in self.held_locks and self.unlock(self.held_locks.pop(name))

    def steal(self, name):
        return self.unlock(redlock.Lock(10_000, name, b"the token of somebody else"))

    def unlock(self, lock):
        before = self.client.get(lock.resource)
        redlock.Redlock([self.client]).unlock(lock)
        return self.client.get(lock.resource) != before


conversation.serve(RedlockPy(int(sys.argv[1])))
