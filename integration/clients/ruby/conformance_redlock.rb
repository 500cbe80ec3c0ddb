# The commands of the redlock gem 2.0.6, given to redis-rb: the gem itself is on rubygems only. Its three scripts are here in
# other words and with the same meaning; they are sent by their SHA1s and loaded when a server does not have them.
require 'digest'
require 'redis'
require 'securerandom'
require_relative 'conversation'

class RedlockCommands
  # Sets what is not there, if new locks are allowed (ARGV[3]), and what is already the caller's. OK or nil.
  LOCK = <<~LUA.freeze
    local allowed = ARGV[3] == 'yes' and redis.call('exists', KEYS[1]) == 0
    if allowed or redis.call('get', KEYS[1]) == ARGV[1] then
      return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
    end
  LUA
  UNLOCK = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('del', KEYS[1])".freeze
  VALUE_AND_PTTL = "return {redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1])}".freeze
  SCRIPTS = [UNLOCK, LOCK, VALUE_AND_PTTL].freeze

  RETRY_DELAY = 0.200 # seconds, and a random jitter
  RETRY_JITTER = 0.050

  def initialize(port)
    @redis = Redis.new(host: '127.0.0.1', port: port, timeout: 60)
    @tokens = {}
  end

  def version = '2.0.6'
  def key(name) = name

  def acquire(name, ttl)
    token = SecureRandom.uuid
    acquired = set(name, token, ttl, 'yes')
    @tokens[name] = token if acquired
    acquired
  end

  def wait(name, ttl, limit)
    deadline = now + limit / 1000.0
    until (acquired = acquire(name, ttl)) || now > deadline
      sleep(RETRY_DELAY + rand(RETRY_JITTER))
    end
    acquired
  end

  # The gem's extend_only_if_locked.
  def extend(name, ttl) = set(name, @tokens[name], ttl, 'no')

  def release(name) = run(UNLOCK, name, @tokens.delete(name)) == 1
  def steal(name) = run(UNLOCK, name, SecureRandom.uuid) == 1

  # The gem's get_remaining_ttl_for_resource and get_remaining_ttl_for_lock.
  def held(name) = remaining(name).last.positive?

  def mine(name)
    value, remaining = remaining(name)
    remaining.positive? && value == @tokens[name]
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  def remaining(name) = run(VALUE_AND_PTTL, name)

  # What was not set is unlocked, as the gem does on servers that may have set it.
  def set(name, token, ttl, allowed)
    locked = run(LOCK, name, token, ttl, allowed) == 'OK'
    run(UNLOCK, name, token) unless locked
    locked
  end

  def run(script, name, *arguments)
    loaded = false
    begin
      @redis.evalsha(Digest::SHA1.hexdigest(script), keys: [name], argv: arguments)
    rescue Redis::CommandError => e
      raise if loaded || !e.message.include?('NOSCRIPT')

      SCRIPTS.each { |text| @redis.script(:load, text) }
      loaded = true
      retry
    end
  end
end

serve(RedlockCommands.new(Integer(ARGV[0])))
