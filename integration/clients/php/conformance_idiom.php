<?php
// What applications write by hand over phpredis, or over Predis if LIBRARY says so: SET with NX and PX and a token, and
// scripts that compare the token before they delete or prolong. They wait by trying again.
require __DIR__ . '/conversation.php';

const POLL_MICROSECONDS = 50_000;
const RELEASE = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end';
const EXTEND = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end';

abstract class HandWritten
{
    private array $tokens = [];

    abstract protected function set(string $key, string $token, int $ttl): bool;
    abstract protected function get(string $key): ?string;
    abstract protected function run(string $script, string $key, ...$arguments): int;

    public function key(string $name): string
    {
        return $name;
    }

    public function acquire(string $name, int $ttl): bool
    {
        $token = bin2hex(random_bytes(16));
        $acquired = $this->set($name, $token, $ttl);
        if ($acquired) {
            $this->tokens[$name] = $token;
        }
        return $acquired;
    }

    public function wait(string $name, int $ttl, int $limit): bool
    {
        $deadline = microtime(true) + $limit / 1000;
        while (!($acquired = $this->acquire($name, $ttl)) && microtime(true) < $deadline) {
            usleep(POLL_MICROSECONDS);
        }
        return $acquired;
    }

    public function extend(string $name, int $ttl): bool
    {
        return $this->run(EXTEND, $name, $this->tokens[$name] ?? 'none', $ttl) === 1;
    }

    public function release(string $name): bool
    {
        $token = $this->tokens[$name] ?? 'none';
        unset($this->tokens[$name]);
        return $this->run(RELEASE, $name, $token) === 1;
    }

    public function steal(string $name): bool
    {
        return $this->run(RELEASE, $name, 'the token of somebody else') === 1;
    }

    public function held(string $name): bool
    {
        return $this->get($name) !== null;
    }

    public function mine(string $name): bool
    {
        return isset($this->tokens[$name]) && $this->get($name) === $this->tokens[$name];
    }
}

/** phpredis raises what a server answers, but for a few words to which it answers false: ERR is one. */
final class OverPhpredis extends HandWritten
{
    private Redis $client;

    public function __construct(int $port)
    {
        $this->client = new Redis();
        if (TLS_CA === null) {
            $this->client->connect('127.0.0.1', $port);
            return;
        }
        $this->client->connect('tls://127.0.0.1', $port, 0, null, 0, 0, ['stream' => ['cafile' => TLS_CA]]);
        $this->client->auth(PASSWORD);
    }

    public function version(): string
    {
        return phpversion('redis');
    }

    protected function set(string $key, string $token, int $ttl): bool
    {
        return $this->client->set($key, $token, ['nx', 'px' => $ttl]);
    }

    protected function get(string $key): ?string
    {
        $value = $this->client->get($key);
        return $value === false ? null : $value;
    }

    protected function run(string $script, string $key, ...$arguments): int
    {
        return (int) $this->client->eval($script, [$key, ...$arguments], 1);
    }
}

final class OverPredis extends HandWritten
{
    private Predis\Client $client;

    public function __construct(int $port)
    {
        require 'Predis/autoload.php';
        $tls = TLS_CA === null ? [] : ['scheme' => 'tls', 'ssl' => ['cafile' => TLS_CA], 'password' => PASSWORD];
        $this->client = new Predis\Client(['host' => '127.0.0.1', 'port' => $port] + $tls);
    }

    public function version(): string
    {
        return Predis\Client::VERSION;
    }

    protected function set(string $key, string $token, int $ttl): bool
    {
        return (string) $this->client->set($key, $token, 'PX', $ttl, 'NX') === 'OK';
    }

    protected function get(string $key): ?string
    {
        return $this->client->get($key);
    }

    protected function run(string $script, string $key, ...$arguments): int
    {
        return $this->client->eval($script, 1, $key, ...$arguments);
    }
}

serve($argv[2] === 'predis' ? new OverPredis((int) $argv[1]) : new OverPhpredis((int) $argv[1]));
