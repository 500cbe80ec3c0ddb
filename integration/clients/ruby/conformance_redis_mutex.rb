# The commands of the redis-mutex gem 4.0.2, given to redis-rb: the gem itself is on rubygems only. A lock has no TTL; its
# value is the time at which it ends, and whoever comes later takes it over with GETSET.
require 'redis'
require_relative 'conversation'

class RedisMutexCommands
  POLL = 0.1 # seconds

  def initialize(port)
    @redis = Redis.new(host: '127.0.0.1', port: port)
    @ends = {}
  end

  def version = '4.0.2'
  def key(name) = "RedisMutex:#{name}"

  def acquire(name, ttl)
    now = Time.now.to_f
    ends = now + ttl / 1000.0
    acquired = set(name, ends) || taken_over(name, ends, now)
    @ends[name] = ends if acquired
    acquired
  end

  def wait(name, ttl, limit)
    deadline = Time.now + limit / 1000.0
    until (acquired = acquire(name, ttl)) || Time.now > deadline
      sleep(POLL)
    end
    acquired
  end

  # It is compared by the client, and then deleted.
  def release(name)
    ends = @ends.delete(name)
    @redis.get(key(name)) == ends.to_s && @redis.del(key(name)) == 1
  end

  # A mutex object that has locked nothing.
  def steal(name)
    @redis.get(key(name)) == '' && @redis.del(key(name)) == 1
  end

  def held(name) = @redis.get(key(name)).to_f > Time.now.to_f

  private

  # Whether it was free; false if somebody has it. What is gone before it was looked at is tried once more.
  def set(name, ends)
    @seen = nil
    until @seen
      return true if @redis.setnx(key(name), ends)

      @seen = @redis.get(key(name))
    end
    false
  end

  def taken_over(name, ends, now)
    @seen.to_f <= now && @redis.getset(key(name), ends).to_f <= now
  end
end

serve(RedisMutexCommands.new(Integer(ARGV[0])))
