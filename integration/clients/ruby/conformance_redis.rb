# What applications write by hand over redis-rb: SET with NX and PX and a token, scripts that compare the token before they
# delete or prolong, and trying again to wait.
require 'redis'
require 'securerandom'
require_relative 'conversation'

class HandWritten
  POLL = 0.05 # seconds
  RELEASE = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end".freeze
  EXTEND = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end".freeze

  def initialize(port)
    @redis = Redis.new(host: '127.0.0.1', port: port)
    @tokens = {}
  end

  def version = Redis::VERSION
  def key(name) = name

  def acquire(name, ttl)
    token = SecureRandom.hex
    acquired = @redis.set(name, token, nx: true, px: ttl)
    @tokens[name] = token if acquired
    acquired
  end

  def wait(name, ttl, limit)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + limit / 1000.0
    until (acquired = acquire(name, ttl)) || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep(POLL)
    end
    acquired
  end

  def extend(name, ttl) = @redis.eval(EXTEND, [name], [@tokens[name], ttl]) == 1
  def release(name) = @redis.eval(RELEASE, [name], [@tokens.delete(name)]) == 1
  def steal(name) = @redis.eval(RELEASE, [name], ['the token of somebody else']) == 1
  def held(name) = @redis.exists?(name)
  def mine(name) = @tokens.key?(name) && @redis.get(name) == @tokens[name]
end

serve(HandWritten.new(Integer(ARGV[0])))
