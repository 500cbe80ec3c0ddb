"""aioredlock, with one instance. An error reply is its scripts' way to say no. If LIBRARY is "watchdog", locks are taken
without a timeout of their own, and a task of the library's extends them for as long as they are held."""
import asyncio
import importlib.metadata
import sys

import setuptools  # noqa: F401, it stands in for distutils, which aioredlock imports and Python 3.12 has no more

import aioredlock

import conversation

RETRY_DELAY = 0.2  # seconds, in the middle of what it draws


class AioredlockLocks:
    version = staticmethod(lambda: importlib.metadata.version("aioredlock"))

    def __init__(self, port, watchdog):
        self.connections = [{"host": "127.0.0.1", "port": port}]
        self.watchdog = watchdog
        self.manager = aioredlock.Aioredlock(self.connections, retry_count=1)
        self.held_locks = {}

    def key(self, name):
        return name

    async def acquire(self, name, ttl):
        return await self.take(name, ttl, tries=1)

    async def wait(self, name, ttl, limit):
        return await self.take(name, ttl, tries=1 + int(limit / 1000 / RETRY_DELAY))

    async def take(self, name, ttl, tries):
        manager = aioredlock.Aioredlock(self.connections, retry_count=tries, internal_lock_timeout=ttl / 1000)
        try:
            self.held_locks[name] = await manager.lock(name, lock_timeout=None if self.watchdog else ttl / 1000)
        except aioredlock.LockAcquiringError:
            await manager.destroy()
            return False
        return True

    async def extend(self, name, ttl):
        lock = self.held_locks[name]
        return await self.unless_lost(lock.lock_manager.extend(lock, ttl / 1000))

    async def release(self, name):
        if name not in self.held_locks:
            return False
        lock = self.held_locks.pop(name)
        released = await self.unless_lost(lock.release())
        await lock.lock_manager.destroy()
        return released

    async def steal(self, name):
        return await self.unless_lost(self.manager.unlock(aioredlock.Lock(self.manager, name, "somebody else", valid=True)))

    async def held(self, name):
        return await self.manager.is_locked(name)

    async def mine(self, name):
        return name in self.held_locks and await self.unless_lost(self.manager.get_lock(name, self.held_locks[name].id))

    @staticmethod
    async def unless_lost(action):
        try:
            await action
        except aioredlock.LockAcquiringError:
            return False
        return True


async def main():
    library = AioredlockLocks(int(sys.argv[1]), watchdog=sys.argv[2] == "watchdog")
    await conversation.serve_async(library)
    await library.manager.destroy()


asyncio.run(main())
