<?php
// Does with phpredis the steps that handshake_test.go lists, one line each.
// Arguments: port, "all" or "locks", a name for the keys, and the protocol, password and database, each of which may
// be "".

[, $port, $mode, $name, , $password, $db] = $argv;
const RELEASE = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end';

function open(): Redis
{
    global $port, $password, $db;
    $redis = new Redis();
    $redis->connect('127.0.0.1', (int) $port, 20.0);
    if ($password !== '') {
        $redis->auth($password);
        $redis->select((int) $db);
        $redis->client('setname', 'handshake');
    }
    return $redis;
}

function step(...$words): void
{
    echo implode(' ', $words), "\n";
    flush();
}

function yes($value): string
{
    return $value ? 'yes' : 'no';
}

function ordinary(Redis $redis): void
{
    global $name;
    $value = "h:$name:value";
    $count = "h:$name:count";
    step('set', yes($redis->set($value, 'one')));
    step('get', $redis->get($value));
    step('incr', $redis->incr($count));
    step('pipeline', ...$redis->multi(Redis::PIPELINE)->incrBy($count, 10)->incr($count)->get($count)->exec());
    step('multi', ...$redis->multi()->incr($count)->get($count)->exec());
}

/** phpredis says nothing of confirmations, so the message is sent until it is heard. */
function messages(Redis $listener): void
{
    global $name, $argv;
    $channel = "h:$name:channel";
    $sender = proc_open([PHP_BINARY, __FILE__, ...array_slice($argv, 1, 1), 'publish', ...array_slice($argv, 3)], [], $pipes);
    $listener->setOption(Redis::OPT_READ_TIMEOUT, 20);
    try {
        $listener->subscribe([$channel], function (Redis $redis, string $channel, string $text): void {
            step('subscribed yes');
            step('message', $text);
            step('unsubscribed', yes($redis->unsubscribe([$channel])));
            $redis->close();
        });
    } catch (RedisException) {
        // Nothing but the end of the connection ends subscribe().
    }
    if (proc_close($sender) !== 0) {
        exit(1);
    }
}

function publish(Redis $redis): void
{
    global $name;
    $deadline = microtime(true) + 20;
    while ($redis->publish("h:$name:channel", 'hello') === 0) {
        if (microtime(true) > $deadline) {
            exit(1);
        }
        usleep(2000);
    }
}

function locks(Redis $first, Redis $second): void
{
    global $name;
    [$key, $mine, $theirs] = ["lock:$name", 'token-of-the-first-1', 'token-of-the-second'];
    step('lock', yes($first->set($key, $mine, ['nx', 'px' => 60000])));
    step('second', yes($second->set($key, $theirs, ['nx', 'px' => 60000])));
    step('owner', $second->get($key));
    step('foreign', $second->eval(RELEASE, [$key, $theirs], 1));
    step('release', $first->eval(RELEASE, [$key, $mine], 1));
    step('free', yes($first->get($key) === false && $first->getLastError() === null));
    step('kept', yes($first->set("lock:$name:kept", $mine, ['nx', 'px' => 60000])));
}

if ($mode === 'publish') {
    publish(open());
    exit(0);
}
step('client phpredis', phpversion('redis'));
$clients = [open(), open()];
if ($mode === 'all') {
    ordinary($clients[0]);
    messages(open());
}
locks(...$clients);
