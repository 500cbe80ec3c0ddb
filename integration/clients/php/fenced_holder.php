<?php
// A holder of a lock with a fencing token, over phpredis. Arguments: port, key of the lock, key of the resource, own name.
// It prints its token, works until it reads a line, writes to the resource, and prints whether that was refused.

const TTL = 3000; // ms

const RELEASE = 'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end';

// The resource is a hash in Redis. It refuses a token that is smaller than one that it has seen. In SQL:
// UPDATE resource SET writer = :name, token = :token WHERE id = 7 AND token <= :token
const WRITE = '
    if tonumber(ARGV[1]) < tonumber(redis.call("hget", KEYS[1], "token") or 0) then return 0 end
    redis.call("hset", KEYS[1], "token", ARGV[1], "writer", ARGV[2])
    return 1';

/** Tries once. Returns the token, or null if the lock is not held. */
function take(Redis $redis, string $lock, string $value): ?int
{
    $redis->clearLastError();
    try {
        $held = $redis->set($lock, $value, ['nx', 'px' => TTL]);
        $token = $held ? $redis->rawCommand('REDLOCK', 'TOKEN', $lock, $value) : false;
        $error = $redis->getLastError();
    } catch (RedisException $e) {
        [$token, $error] = [false, $e->getMessage()];
    }
    // After QUORUMLOST nobody can know who holds the lock.
    if ($error !== null && !str_starts_with($error, 'QUORUMLOST ')) {
        throw new RuntimeException($error);
    }
    return $token === false ? null : $token; // false: phpredis's null
}

[, $port, $lock, $resource, $name] = $argv;
$redis = new Redis();
$redis->connect('127.0.0.1', (int) $port);

do { // with a new value each time: what a failed try leaves behind expires
    usleep(50_000);
    $value = bin2hex(random_bytes(16));
    $token = take($redis, $lock, $value);
} while ($token === null);

echo $token, "\n";
fgets(STDIN); // the work: nobody knows how long it takes

// The lock may have ended. So the resource decides.
$written = $redis->eval(WRITE, [$resource, $token, $name], 1) === 1;
echo $written ? 'written' : 'refused', "\n";
$redis->eval(RELEASE, [$lock, $value], 1);
