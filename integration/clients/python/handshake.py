"""Does with redis-py the steps that handshake_test.go lists, one line each.

Arguments: port, "all" or "locks", a name for the keys, and the protocol, password and database, each of which may be "".
"""
import sys

import redis

PORT, MODE, NAME, PROTOCOL, PASSWORD, DB = sys.argv[1:]
RELEASE = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"


def connect():
    options = dict(host="127.0.0.1", port=int(PORT), decode_responses=True, socket_timeout=20)
    if PROTOCOL:
        options["protocol"] = int(PROTOCOL)
    if PASSWORD:
        options.update(password=PASSWORD, db=int(DB), client_name="handshake")
    return redis.Redis(**options)


def step(*words):
    print(*words, flush=True)


def yes(value):
    return "yes" if value else "no"


def ordinary(client):
    value, count = f"h:{NAME}:value", f"h:{NAME}:count"
    step("set", yes(client.set(value, "one")))
    step("get", client.get(value))
    step("incr", client.incr(count))
    pipe = client.pipeline(transaction=False)
    step("pipeline", *pipe.incrby(count, 10).incr(count).get(count).execute())
    transaction = client.pipeline(transaction=True)
    step("multi", *transaction.incr(count).get(count).execute())


def messages(client, other):
    channel = f"h:{NAME}:channel"
    listener = other.pubsub()
    listener.subscribe(channel)
    step("subscribed", yes(listener.get_message(timeout=20)["type"] == "subscribe"))
    client.publish(channel, "hello")
    step("message", listener.get_message(timeout=20)["data"])
    listener.unsubscribe(channel)
    step("unsubscribed", yes(listener.get_message(timeout=20)["type"] == "unsubscribe"))
    listener.close()


def locks(first, second):
    key, mine, theirs = f"lock:{NAME}", "token-of-the-first-1", "token-of-the-second"
    step("lock", yes(first.set(key, mine, nx=True, px=60000)))
    step("second", yes(second.set(key, theirs, nx=True, px=60000)))
    step("owner", second.get(key))
    step("foreign", second.eval(RELEASE, 1, key, theirs))
    step("release", first.eval(RELEASE, 1, key, mine))
    step("free", yes(first.get(key) is None))
    step("kept", yes(first.set(f"lock:{NAME}:kept", mine, nx=True, px=60000)))


def library_lock(first, second):
    mine = first.lock(f"lock:{NAME}:own", timeout=60)
    theirs = second.lock(f"lock:{NAME}:own", timeout=60)
    step("library lock", yes(mine.acquire(blocking=False)))
    step("library second", yes(theirs.acquire(blocking=False)))
    mine.extend(10)
    mine.release()
    step("library released", yes(theirs.acquire(blocking=False)))
    theirs.release()


step("client redis-py", redis.__version__)
clients = connect(), connect()
if MODE == "all":
    ordinary(clients[0])
    messages(*clients)
locks(*clients)
library_lock(*clients)
for each in clients:
    each.connection_pool.disconnect()
