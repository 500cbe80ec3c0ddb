"""sherlock's RedisLock: scripts with SETNX and EXPIRE, whole seconds."""
import importlib.metadata
import math
import sys

import redis
import sherlock

import conversation


class Sherlock:
    version = staticmethod(lambda: importlib.metadata.version("sherlock"))

    def __init__(self, port):
        self.client = redis.StrictRedis(host="127.0.0.1", port=port)
        self.held_locks = {}

    def lock(self, name, ttl, limit=0):
        return sherlock.RedisLock(name, client=self.client, expire=math.ceil(ttl / 1000), timeout=limit / 1000, retry_interval=0.1)

    def key(self, name):
        return name

    def acquire(self, name, ttl):
        lock = self.lock(name, ttl)
        return self.keep(name, lock, lock.acquire(blocking=False))

    def wait(self, name, ttl, limit):
        lock = self.lock(name, ttl, limit)
        try:
            return self.keep(name, lock, lock.acquire())
        except sherlock.LockTimeoutException:
            return False

    def keep(self, name, lock, acquired):
        if acquired:
            self.held_locks[name] = lock
        return acquired

    def extend(self, name, ttl):
        lock = self.held_locks[name]
        lock.expire = math.ceil(ttl / 1000)
        return lock.renew()

    def release(self, name):
        return name in self.held_locks and self.released(self.held_locks.pop(name))

    def steal(self, name):
        lock = self.lock(name, 10_000)
        lock._owner = "the token of somebody else"
        return self.released(lock)

    def held(self, name):
        return self.lock(name, 10_000).locked()

    @staticmethod
    def released(lock):
        try:
            lock.release()
        except sherlock.LockException:
            return False
        return True


conversation.serve(Sherlock(int(sys.argv[1])))
