<?php
// phpredis' sessions with locking. A PHP process can have one session at a time, so that each lock is held by a process of
// its own, as by a request of its own: this program, started with a third argument.
require __DIR__ . '/conversation.php';

const RETRY_MICROSECONDS = 20_000; // phpredis' own

/**
 * A request: it starts its session, says whether it got the lock, changes the session when it is told to, and says whether
 * that was written. Without the lock phpredis gives a notice and a session that cannot be written.
 */
function request(string $port, string $id, int $ttl, int $retries, int $pause): void
{
    ini_set('session.save_handler', 'redis');
    ini_set('session.save_path', "tcp://127.0.0.1:$port");
    ini_set('session.use_cookies', '0');
    ini_set('session.cache_limiter', '');
    ini_set('redis.session.locking_enabled', '1');
    ini_set('redis.session.lock_expire', (string) intdiv($ttl, 1000));
    ini_set('redis.session.lock_retries', (string) $retries);
    ini_set('redis.session.lock_wait_time', (string) $pause);
    session_id($id);
    $locked = session_start() && error_get_last() === null;
    echo $locked ? "yes\n" : "no\n";
    flush();
    if (fgets(STDIN) === false) {
        posix_kill(getmypid(), SIGKILL); // its client was killed, and so is the request
    }
    $_SESSION['visits'] = ($_SESSION['visits'] ?? 0) + 1;
    error_clear_last();
    echo session_write_close() && error_get_last() === null ? "yes\n" : "no\n";
}

final class Sessions
{
    private string $port;
    /** The requests that have a session, each a process, its input and its output. */
    private array $requests = [];

    public function __construct(string $port)
    {
        $this->port = $port;
    }

    public function version(): string
    {
        return phpversion('redis');
    }

    public function key(string $name): string
    {
        return "PHPREDIS_SESSION:{$name}_LOCK";
    }

    /** phpredis tries twice at least. */
    public function acquire(string $name, int $ttl): bool
    {
        return $this->keep($name, $this->start($name, $ttl, 1, 1));
    }

    public function wait(string $name, int $ttl, int $limit): bool
    {
        $retries = intdiv($limit * 1000, RETRY_MICROSECONDS);
        return $this->keep($name, $this->start($name, $ttl, $retries, RETRY_MICROSECONDS));
    }

    public function release(string $name): bool
    {
        $request = $this->requests[$name];
        unset($this->requests[$name]);
        return $this->finish($request);
    }

    /** A request that did not get the lock writes its session all the same, and ends. */
    public function steal(string $name): bool
    {
        return $this->finish($this->start($name, 10_000, 1, 1));
    }

    private function start(string $name, int $ttl, int $retries, int $pause): array
    {
        $words = [PHP_BINARY, __FILE__, $this->port, 'request', $name, (string) $ttl, (string) $retries, (string) $pause];
        $process = proc_open($words, [['pipe', 'r'], ['pipe', 'w']], $pipes);
        return [$process, ...$pipes];
    }

    private function keep(string $name, array $request): bool
    {
        if (fgets($request[2]) === "yes\n") {
            $this->requests[$name] = $request;
            return true;
        }
        $this->finish($request);
        return false;
    }

    private function finish(array $request): bool
    {
        [$process, $input, $output] = $request;
        fwrite($input, "end\n");
        $written = preg_match('/yes\n$/', stream_get_contents($output)) === 1;
        fclose($input);
        fclose($output);
        proc_close($process);
        return $written;
    }
}

[, $port, $library] = $argv;
if ($library === 'request') {
    request($port, $argv[3], (int) $argv[4], (int) $argv[5], (int) $argv[6]);
} else {
    serve(new Sessions($port));
}
