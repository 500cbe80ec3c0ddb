"""redis-py's Lock. It is extended by adding to what is left, or, if LIBRARY is "replace", by setting what is left. If
LIBRARY is "endless", locks have no timeout, as it is where the application names none."""
import sys

import redis

import conversation


class RedisPy:
    version = staticmethod(lambda: redis.__version__)

    def __init__(self, port, replace):
        self.client = redis.Redis(host="127.0.0.1", port=port, **conversation.over_tls())
        self.replace = replace
        self.held_locks = {}

    def lock(self, name, ttl):
        return self.client.lock(name, timeout=ttl / 1000)

    def key(self, name):
        return name

    def acquire(self, name, ttl):
        lock = self.lock(name, ttl)
        return self.keep(name, lock, lock.acquire(blocking=False))

    def wait(self, name, ttl, limit):
        lock = self.lock(name, ttl)
        return self.keep(name, lock, lock.acquire(blocking=True, blocking_timeout=limit / 1000))

    def keep(self, name, lock, acquired):
        if acquired:
            self.held_locks[name] = lock
        return acquired

    def extend(self, name, ttl):
        return self.unless_lost(lambda: self.held_locks[name].extend(ttl / 1000, replace_ttl=self.replace))

    def release(self, name):
        return name in self.held_locks and self.unless_lost(self.held_locks.pop(name).release)

    def steal(self, name):
        return self.unless_lost(lambda: self.lock(name, 10_000).do_release("the token of somebody else"))

    def held(self, name):
        return self.lock(name, 10_000).locked()

    def mine(self, name):
        return name in self.held_locks and self.held_locks[name].owned()

    @staticmethod
    def unless_lost(action):
        try:
            action()
        except redis.exceptions.LockError:
            return False
        return True


class EndlessRedisPy(RedisPy):
    extend = None

    def lock(self, name, ttl):
        return self.client.lock(name)

    def acquire(self, name, ttl):
        meant_to_expire = ttl < 10_000
        return "unsupported" if meant_to_expire else super().acquire(name, ttl)


if __name__ == "__main__":
    library = EndlessRedisPy if sys.argv[2] == "endless" else RedisPy
    conversation.serve(library(int(sys.argv[1]), replace=sys.argv[2] == "replace"))
