<?php
// Symfony Lock's RedisStore over phpredis or Predis; LIBRARY tells. It keeps a lock as a sorted set.
require __DIR__ . '/conversation.php';
require 'Symfony/Component/Lock/autoload.php';

use Symfony\Component\Lock\Exception\LockAcquiringException;
use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Key;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\LockInterface;
use Symfony\Component\Lock\PersistingStoreInterface;
use Symfony\Component\Lock\Store\RedisStore;

final class GivenUp extends RuntimeException
{
}

/** acquire(true) tries for ever; this ends it at a time, in seconds since 1970. */
final class PatientStore implements PersistingStoreInterface
{
    private RedisStore $store;
    private float $deadline;

    public function __construct(RedisStore $store, float $deadline)
    {
        $this->store = $store;
        $this->deadline = $deadline;
    }

    public function save(Key $key): void
    {
        if (microtime(true) > $this->deadline) {
            throw new GivenUp();
        }
        $this->store->save($key);
    }

    public function delete(Key $key): void
    {
        $this->store->delete($key);
    }

    public function exists(Key $key): bool
    {
        return $this->store->exists($key);
    }

    public function putOffExpiration(Key $key, float $ttl): void
    {
        $this->store->putOffExpiration($key, $ttl);
    }
}

final class SymfonyLock
{
    private RedisStore $store;
    /** @var LockInterface[] */
    private array $locks = [];

    public function __construct($client)
    {
        $this->store = new RedisStore($client);
    }

    public function version(): string
    {
        return packagedVersion('php-symfony-lock');
    }

    public function key(string $name): string
    {
        return $name;
    }

    public function acquire(string $name, int $ttl): bool
    {
        return $this->keep($name, $this->lock($this->store, $name, $ttl), false);
    }

    public function wait(string $name, int $ttl, int $limit): bool
    {
        $lock = $this->lock(new PatientStore($this->store, microtime(true) + $limit / 1000), $name, $ttl);
        try {
            return $this->keep($name, $lock, true);
        } catch (LockAcquiringException $failed) {
            if ($failed->getPrevious() instanceof GivenUp) {
                return false;
            }
            throw $failed;
        }
    }

    public function extend(string $name, int $ttl): bool
    {
        try {
            $this->locks[$name]->refresh($ttl / 1000);
        } catch (LockConflictedException $lost) {
            return false;
        }
        return true;
    }

    public function release(string $name): bool
    {
        $held = $this->mine($name);
        $this->locks[$name]->release();
        unset($this->locks[$name]);
        return $held;
    }

    /** A release says nothing; whether it did something shows in who can take the lock. */
    public function steal(string $name): bool
    {
        $this->lock($this->store, $name, 10_000)->release();
        $after = $this->lock($this->store, $name, 10_000);
        if (!$after->acquire()) {
            return false;
        }
        $after->release();
        return true;
    }

    public function mine(string $name): bool
    {
        return isset($this->locks[$name]) && $this->locks[$name]->isAcquired();
    }

    private function lock(PersistingStoreInterface $store, string $name, int $ttl): LockInterface
    {
        return (new LockFactory($store))->createLock($name, $ttl / 1000, false);
    }

    private function keep(string $name, LockInterface $lock, bool $blocking): bool
    {
        $acquired = $lock->acquire($blocking);
        if ($acquired) {
            $this->locks[$name] = $lock;
        }
        return $acquired;
    }
}

function connect(int $port, string $library)
{
    if ($library === 'predis') {
        require 'Predis/autoload.php';
        return new Predis\Client(['host' => '127.0.0.1', 'port' => $port]);
    }
    $client = new Redis();
    $client->connect('127.0.0.1', $port);
    return $client;
}

serve(new SymfonyLock(connect((int) $argv[1], $argv[2])));
