"""pottery's AIORedlock, with one master."""
import asyncio
import importlib.metadata
import sys

import pottery
import redis.asyncio

import conversation


class Pottery:
    version = staticmethod(lambda: importlib.metadata.version("pottery"))

    def __init__(self, port):
        self.client = redis.asyncio.Redis(host="127.0.0.1", port=port)
        self.held_locks = {}

    def lock(self, name, ttl=10_000):
        return pottery.AIORedlock(key=name, masters={self.client}, auto_release_time=ttl / 1000, raise_on_redis_errors=True)

    def key(self, name):
        return self.lock(name).key

    async def acquire(self, name, ttl):
        lock = self.lock(name, ttl)
        return self.keep(name, lock, await lock.acquire(blocking=False))

    async def wait(self, name, ttl, limit):
        lock = self.lock(name, ttl)
        return self.keep(name, lock, await lock.acquire(timeout=limit / 1000))

    def keep(self, name, lock, acquired):
        if acquired:
            self.held_locks[name] = lock
        return acquired

    async def extend(self, name, ttl):
        lock = self.held_locks[name]
        lock.auto_release_time = ttl / 1000
        try:
            await lock.extend()
        except pottery.ExtendUnlockedLock:
            return False
        return True

    async def release(self, name):
        return name in self.held_locks and await self.released(self.held_locks.pop(name))

    async def steal(self, name):
        return await self.released(self.lock(name))

    async def mine(self, name):
        return name in self.held_locks and await self.held_locks[name].locked() > 0

    @staticmethod
    async def released(lock):
        try:
            await lock.release()
        except pottery.ReleaseUnlockedLock:
            return False
        return True


async def main():
    library = Pottery(int(sys.argv[1]))
    await conversation.serve_async(library)
    await library.client.aclose()


asyncio.run(main())
