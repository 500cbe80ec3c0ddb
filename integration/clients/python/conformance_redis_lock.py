"""python-redis-lock. Waiters sleep in BLPOP on a list that the release fills. If LIBRARY is "auto_renewal", a thread of
the library's own extends each lock for as long as it is held."""
import math
import sys

import redis
import redis_lock

import conversation


class PythonRedisLock:
    version = staticmethod(lambda: redis_lock.__version__)

    def __init__(self, port, auto_renewal):
        # Without this, redis-py 8 gives up BLPOP after five seconds.
        self.client = redis.StrictRedis(host="127.0.0.1", port=port, socket_timeout=None)
        self.auto_renewal = auto_renewal
        self.held_locks = {}

    def lock(self, name, ttl):
        return redis_lock.Lock(self.client, name, expire=whole_seconds(ttl), auto_renewal=self.auto_renewal)

    def key(self, name):
        return "lock:" + name

    def acquire(self, name, ttl):
        lock = self.lock(name, ttl)
        return self.keep(name, lock, lock.acquire(blocking=False))

    def wait(self, name, ttl, limit):
        lock = self.lock(name, ttl)
        return self.keep(name, lock, lock.acquire(timeout=whole_seconds(limit)))

    def keep(self, name, lock, acquired):
        if acquired:
            self.held_locks[name] = lock
        return acquired

    def extend(self, name, ttl):
        return self.unless_lost(lambda: self.held_locks[name].extend(whole_seconds(ttl)))

    def release(self, name):
        return name in self.held_locks and self.unless_lost(self.held_locks.pop(name).release)

    def steal(self, name):
        return self.unless_lost(redis_lock.Lock(self.client, name, id="the id of somebody else").release)

    def held(self, name):
        return redis_lock.Lock(self.client, name).locked()

    def mine(self, name):
        return name in self.held_locks and self.held_locks[name].get_owner_id() == self.held_locks[name].id

    @staticmethod
    def unless_lost(action):
        try:
            action()
        except redis_lock.NotAcquired:
            return False
        return True


def whole_seconds(milliseconds):
    return math.ceil(milliseconds / 1000)


conversation.serve(PythonRedisLock(int(sys.argv[1]), auto_renewal=sys.argv[2] == "auto_renewal"))
