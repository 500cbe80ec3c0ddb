"""The Lock of redis-py's asyncio half."""
import asyncio
import sys

import redis
import redis.asyncio

import conversation


class RedisPy:
    version = staticmethod(lambda: redis.__version__)

    def __init__(self, port):
        self.client = redis.asyncio.Redis(host="127.0.0.1", port=port)
        self.held_locks = {}

    def lock(self, name, ttl):
        return self.client.lock(name, timeout=ttl / 1000)

    def key(self, name):
        return name

    async def acquire(self, name, ttl):
        lock = self.lock(name, ttl)
        return self.keep(name, lock, await lock.acquire(blocking=False))

    async def wait(self, name, ttl, limit):
        lock = self.lock(name, ttl)
        return self.keep(name, lock, await lock.acquire(blocking=True, blocking_timeout=limit / 1000))

    def keep(self, name, lock, acquired):
        if acquired:
            self.held_locks[name] = lock
        return acquired

    async def extend(self, name, ttl):
        return await self.unless_lost(self.held_locks[name].extend(ttl / 1000))

    async def release(self, name):
        return name in self.held_locks and await self.unless_lost(self.held_locks.pop(name).release())

    async def steal(self, name):
        return await self.unless_lost(self.lock(name, 10_000).do_release("the token of somebody else"))

    async def held(self, name):
        return await self.lock(name, 10_000).locked()

    async def mine(self, name):
        return name in self.held_locks and await self.held_locks[name].owned()

    @staticmethod
    async def unless_lost(action):
        try:
            await action
        except redis.exceptions.LockError:
            return False
        return True


async def main():
    library = RedisPy(int(sys.argv[1]))
    await conversation.serve_async(library)
    await library.client.aclose()


asyncio.run(main())
