<?php
// Does with Predis the steps that handshake_test.go lists, one line each.
// Arguments: port, "all" or "locks", a name for the keys, and the protocol, password and database, each of which may
// be "".

require 'Predis/autoload.php';

[, $port, $mode, $name, , $password, $db] = $argv;
const RELEASE = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end';

function open(): Predis\Client
{
    global $port, $password, $db;
    $options = ['host' => '127.0.0.1', 'port' => (int) $port, 'read_write_timeout' => 20];
    if ($password !== '') {
        $options += ['password' => $password, 'database' => (int) $db];
    }
    return new Predis\Client($options);
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

function ordinary(Predis\Client $client): void
{
    global $name;
    $value = "h:$name:value";
    $count = "h:$name:count";
    step('set', yes((string) $client->set($value, 'one') === 'OK'));
    step('get', $client->get($value));
    step('incr', $client->incr($count));
    step('pipeline', ...$client->pipeline(function ($pipe) use ($count) {
        $pipe->incrby($count, 10);
        $pipe->incr($count);
        $pipe->get($count);
    }));
    step('multi', ...$client->transaction(function ($transaction) use ($count) {
        $transaction->incr($count);
        $transaction->get($count);
    }));
}

function messages(Predis\Client $client, Predis\Client $listener): void
{
    global $name;
    $channel = "h:$name:channel";
    $loop = $listener->pubSubLoop();
    $loop->subscribe($channel);
    foreach ($loop as $message) {
        switch ($message->kind) {
            case 'subscribe':
                step('subscribed', yes($message->payload === 1));
                $client->publish($channel, 'hello');
                break;
            case 'message':
                step('message', $message->payload);
                $loop->unsubscribe($channel);
                break;
            case 'unsubscribe':
                step('unsubscribed', yes($message->payload === 0));
                break;
        }
    }
}

function locks(Predis\Client $first, Predis\Client $second): void
{
    global $name;
    [$key, $mine, $theirs] = ["lock:$name", 'token-of-the-first-1', 'token-of-the-second'];
    step('lock', yes($first->set($key, $mine, 'PX', 60000, 'NX')));
    step('second', yes($second->set($key, $theirs, 'PX', 60000, 'NX')));
    step('owner', $second->get($key));
    step('foreign', $second->eval(RELEASE, 1, $key, $theirs));
    step('release', $first->eval(RELEASE, 1, $key, $mine));
    step('free', yes($first->get($key) === null));
    step('kept', yes($first->set("lock:$name:kept", $mine, 'PX', 60000, 'NX')));
}

step('client predis', Predis\Client::VERSION);
$clients = [open(), open()];
if ($mode === 'all') {
    ordinary($clients[0]);
    messages($clients[0], open());
}
locks(...$clients);
