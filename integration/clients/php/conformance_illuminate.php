<?php
// Laravel's cache locks over phpredis or Predis, with the prefixes that a new application of this Laravel has. LIBRARY is the
// client, and "phpredis-force" for an application that releases by forceRelease, which asks for no owner.
require __DIR__ . '/conversation.php';
require 'Illuminate/Container/autoload.php';
require 'Illuminate/Redis/autoload.php';
require 'Illuminate/Cache/autoload.php';

use Illuminate\Cache\RedisStore;
use Illuminate\Cache\Repository;
use Illuminate\Container\Container;
use Illuminate\Contracts\Cache\Lock;
use Illuminate\Contracts\Cache\LockTimeoutException;
use Illuminate\Redis\RedisManager;

/** The prefixes of the connection and of the cache in the configuration of a new application. */
function prefixes(string $version): array
{
    if (version_compare($version, '12.1', '>=')) {
        return ['laravel-database-', 'laravel-cache-'];
    }
    return ['laravel_database_', version_compare($version, '11', '>=') ? 'laravel_cache_' : 'laravel_cache'];
}

class CacheLocks
{
    private Repository $cache;
    private string $prefix;
    /** @var Lock[] */
    protected array $locks = [];

    public function __construct(int $port, string $client)
    {
        [$ofConnection, $ofCache] = prefixes($this->version());
        $redis = new RedisManager(new Container(), $client, [
            'options' => ['prefix' => $ofConnection],
            'locks' => ['host' => '127.0.0.1', 'port' => $port, 'password' => null, 'database' => 0],
        ]);
        $store = new RedisStore($redis, $ofCache, 'cache'); // a connection that locks do not use
        $store->setLockConnection('locks');
        $this->cache = new Repository($store);
        $this->prefix = $ofConnection . $store->getPrefix(); // before Laravel 11 the store added a colon
    }

    public function version(): string
    {
        return packagedVersion('php-illuminate-cache');
    }

    public function key(string $name): string
    {
        return $this->prefix . $name;
    }

    public function acquire(string $name, int $ttl): bool
    {
        $lock = $this->lock($name, $ttl);
        return $this->keep($name, $lock, $lock->get());
    }

    public function wait(string $name, int $ttl, int $limit): bool
    {
        $lock = $this->lock($name, $ttl);
        try {
            return $this->keep($name, $lock, $lock->block((int) ceil($limit / 1000)));
        } catch (LockTimeoutException $givenUp) {
            return false;
        }
    }

    public function release(string $name): bool
    {
        $lock = $this->locks[$name];
        unset($this->locks[$name]);
        return $lock->release();
    }

    /** As a queued job does that was told the name but not the owner. */
    public function steal(string $name)
    {
        return $this->cache->restoreLock($name, 'somebody else')->release();
    }

    private function lock(string $name, int $ttl): Lock
    {
        return $this->cache->lock($name, intdiv($ttl, 1000));
    }

    private function keep(string $name, Lock $lock, bool $acquired): bool
    {
        if ($acquired) {
            $this->locks[$name] = $lock;
        }
        return $acquired;
    }
}

final class ForcedCacheLocks extends CacheLocks
{
    public function release(string $name): bool
    {
        $this->locks[$name]->forceRelease();
        unset($this->locks[$name]);
        return true;
    }

    public function steal(string $name)
    {
        return 'unsupported';
    }
}

[, $port, $library] = $argv;
serve($library === 'phpredis-force' ? new ForcedCacheLocks((int) $port, 'phpredis') : new CacheLocks((int) $port, $library));
