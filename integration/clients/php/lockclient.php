<?php
// Does with phpredis what the lines on standard input say, one answer a line. Argument: port.

const RELEASE = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end';
const EXTEND = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end';

$redis = new Redis();
$redis->connect('127.0.0.1', (int) $argv[1], 30.0);

function run(Redis $redis, string $script, array $arguments): string
{
    $redis->clearLastError();
    $reply = $redis->evalSha(sha1($script), $arguments, 1);
    if ($redis->getLastError() !== null) {
        if (strncmp($redis->getLastError(), 'NOSCRIPT ', 9) !== 0) {
            return $redis->getLastError();
        }
        $reply = $redis->eval($script, $arguments, 1);
    }
    return $reply === 1 ? 'yes' : 'no';
}

while (($line = fgets(STDIN)) !== false) {
    $words = explode(' ', rtrim($line));
    switch ($words[0]) {
        case 'acquire':
            $reply = $redis->set($words[1], $words[2], ['nx', 'px' => (int) $words[3]]);
            $answer = $reply === true ? 'yes' : ($redis->getLastError() ?? 'no');
            break;
        case 'owner':
            $reply = $redis->get($words[1]);
            $answer = $reply === false ? '' : $reply;
            break;
        case 'extend':
            $answer = run($redis, EXTEND, [$words[1], $words[2], $words[3]]);
            break;
        case 'release':
            $answer = run($redis, RELEASE, [$words[1], $words[2]]);
            break;
        default:
            $answer = 'unknown ' . $words[0];
    }
    echo $answer, "\n";
    flush();
}
