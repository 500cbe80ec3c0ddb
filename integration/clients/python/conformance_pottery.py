"""pottery's Redlock, with one master."""
import importlib.metadata
import sys

import pottery
import redis

import conversation


class Pottery:
    version = staticmethod(lambda: importlib.metadata.version("pottery"))

    def __init__(self, port):
        self.client = redis.Redis(host="127.0.0.1", port=port)
        self.held_locks = {}

    def lock(self, name, ttl=10_000):
        return pottery.Redlock(key=name, masters={self.client}, auto_release_time=ttl / 1000, raise_on_redis_errors=True)

    def key(self, name):
        return self.lock(name).key

    def acquire(self, name, ttl):
        lock = self.lock(name, ttl)
        return self.keep(name, lock, lock.acquire(blocking=False))

    def wait(self, name, ttl, limit):
        lock = self.lock(name, ttl)
        return self.keep(name, lock, lock.acquire(timeout=limit / 1000))

    def keep(self, name, lock, acquired):
        if acquired:
            self.held_locks[name] = lock
        return acquired

    def extend(self, name, ttl):
        lock = self.held_locks[name]
        lock.auto_release_time = ttl / 1000
        try:
            lock.extend()
        except pottery.ExtendUnlockedLock:
            return False
        return True

    def release(self, name):
        return name in self.held_locks and self.released(self.held_locks.pop(name))

    def steal(self, name):
        return self.released(self.lock(name))

    def mine(self, name):
        return name in self.held_locks and self.held_locks[name].locked() > 0

    @staticmethod
    def released(lock):
        try:
            lock.release()
        except pottery.ReleaseUnlockedLock:
            return False
        return True


conversation.serve(Pottery(int(sys.argv[1])))
