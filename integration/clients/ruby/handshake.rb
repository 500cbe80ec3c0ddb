# Does with redis-rb the steps that handshake_test.go lists, one line each.
# Arguments: port, "all" or "locks", a name for the keys, and the protocol, password and database, each of which may
# be "".
require 'redis'

PORT, MODE, NAME, _, PASSWORD, DB = ARGV
RELEASE = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end".freeze
$stdout.sync = true

def connect
  options = { host: '127.0.0.1', port: PORT.to_i, reconnect_attempts: 0, timeout: 20 }
  options.update(password: PASSWORD, db: DB.to_i, id: 'handshake') unless PASSWORD.empty?
  Redis.new(**options)
end

def step(*words) = puts(words.join(' '))
def yes(value) = value ? 'yes' : 'no'

def ordinary(client)
  value, count = "h:#{NAME}:value", "h:#{NAME}:count"
  step('set', yes(client.set(value, 'one') == 'OK'))
  step('get', client.get(value))
  step('incr', client.incr(count))
  step('pipeline', *client.pipelined { |p| p.incrby(count, 10); p.incr(count); p.get(count) })
  step('multi', *client.multi { |m| m.incr(count); m.get(count) })
end

def messages(client, listener)
  channel = "h:#{NAME}:channel"
  listener.subscribe(channel) do |on|
    on.subscribe do |_, subscriptions|
      step('subscribed', yes(subscriptions == 1))
      client.publish(channel, 'hello')
    end
    on.message do |_, text|
      step('message', text)
      listener.unsubscribe(channel)
    end
    on.unsubscribe { |_, subscriptions| step('unsubscribed', yes(subscriptions.zero?)) }
  end
end

def locks(first, second)
  key, mine, theirs = "lock:#{NAME}", 'token-of-the-first-1', 'token-of-the-second'
  step('lock', yes(first.set(key, mine, nx: true, px: 60_000)))
  step('second', yes(second.set(key, theirs, nx: true, px: 60_000)))
  step('owner', second.get(key))
  step('foreign', second.eval(RELEASE, [key], [theirs]))
  step('release', first.eval(RELEASE, keys: [key], argv: [mine]))
  step('free', yes(first.get(key).nil?))
  step('kept', yes(first.set("lock:#{NAME}:kept", mine, nx: true, px: 60_000)))
end

step('client redis-rb', Redis::VERSION)
clients = [connect, connect]
if MODE == 'all'
  ordinary(clients[0])
  messages(*clients)
end
locks(*clients)
clients.each(&:quit)
