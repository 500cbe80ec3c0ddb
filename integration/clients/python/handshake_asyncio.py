"""handshake.py with redis-py's asyncio half."""
import asyncio
import sys

import redis
import redis.asyncio

PORT, MODE, NAME, PROTOCOL, PASSWORD, DB = sys.argv[1:]
RELEASE = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"


def connect():
    options = dict(host="127.0.0.1", port=int(PORT), decode_responses=True, socket_timeout=20)
    if PROTOCOL:
        options["protocol"] = int(PROTOCOL)
    if PASSWORD:
        options.update(password=PASSWORD, db=int(DB), client_name="handshake")
    return redis.asyncio.Redis(**options)


def step(*words):
    print(*words, flush=True)


def yes(value):
    return "yes" if value else "no"


async def ordinary(client):
    value, count = f"h:{NAME}:value", f"h:{NAME}:count"
    step("set", yes(await client.set(value, "one")))
    step("get", await client.get(value))
    step("incr", await client.incr(count))
    pipe = client.pipeline(transaction=False)
    step("pipeline", *await pipe.incrby(count, 10).incr(count).get(count).execute())
    transaction = client.pipeline(transaction=True)
    step("multi", *await transaction.incr(count).get(count).execute())


async def messages(client, other):
    channel = f"h:{NAME}:channel"
    listener = other.pubsub()
    await listener.subscribe(channel)
    step("subscribed", yes((await listener.get_message(timeout=20))["type"] == "subscribe"))
    await client.publish(channel, "hello")
    step("message", (await listener.get_message(timeout=20))["data"])
    await listener.unsubscribe(channel)
    step("unsubscribed", yes((await listener.get_message(timeout=20))["type"] == "unsubscribe"))
    await listener.aclose()


async def locks(first, second):
    key, mine, theirs = f"lock:{NAME}", "token-of-the-first-1", "token-of-the-second"
    step("lock", yes(await first.set(key, mine, nx=True, px=60000)))
    step("second", yes(await second.set(key, theirs, nx=True, px=60000)))
    step("owner", await second.get(key))
    step("foreign", await second.eval(RELEASE, 1, key, theirs))
    step("release", await first.eval(RELEASE, 1, key, mine))
    step("free", yes(await first.get(key) is None))
    step("kept", yes(await first.set(f"lock:{NAME}:kept", mine, nx=True, px=60000)))


async def library_lock(first, second):
    mine = first.lock(f"lock:{NAME}:own", timeout=60)
    theirs = second.lock(f"lock:{NAME}:own", timeout=60)
    step("library lock", yes(await mine.acquire(blocking=False)))
    step("library second", yes(await theirs.acquire(blocking=False)))
    await mine.extend(10)
    await mine.release()
    step("library released", yes(await theirs.acquire(blocking=False)))
    await theirs.release()


async def main():
    step("client redis-py", redis.__version__)
    clients = connect(), connect()
    if MODE == "all":
        await ordinary(clients[0])
        await messages(*clients)
    await locks(*clients)
    await library_lock(*clients)
    for each in clients:
        await each.aclose()


asyncio.run(main())
