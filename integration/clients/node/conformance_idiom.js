// What applications write by hand over ioredis and node-redis: SET NX PX with a token, scripts that compare it before they
// delete or prolong, sent by EVALSHA and once more by EVAL, and a timer that prolongs what is held. LIBRARY is the package.
'use strict';

const { createHash, randomUUID } = require('crypto');
const { setTimeout: sleep } = require('timers/promises');
const { serve, tls } = require('./conversation');

const [port, library] = process.argv.slice(2);
const RELEASE = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";
const EXTEND = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end";

// Each connect returns: set and get as a lock needs them, evalsha and evaluate with one key, and quit.
async function connectIoredis() {
  const Redis = require(library);
  const client = new Redis({ host: '127.0.0.1', port: Number(port), ...(tls && { password: tls.password, tls: { ca: tls.ca } }) });
  return {
    set: (key, token, ttl) => client.set(key, token, 'PX', ttl, 'NX'),
    get: (key) => client.get(key),
    evalsha: (sha, key, args) => client.evalsha(sha, 1, key, ...args),
    evaluate: (script, key, args) => client.eval(script, 1, key, ...args),
    quit: () => client.quit(),
  };
}

async function connectRedis3() {
  const client = require(library).createClient({ host: '127.0.0.1', port: Number(port) });
  const say = (command, ...args) => new Promise((resolve, reject) => {
    client[command](...args, (error, reply) => (error ? reject(error) : resolve(reply)));
  });
  return {
    set: (key, token, ttl) => say('set', key, token, 'NX', 'PX', ttl),
    get: (key) => say('get', key),
    evalsha: (sha, key, args) => say('evalsha', sha, 1, key, ...args),
    evaluate: (script, key, args) => say('eval', script, 1, key, ...args),
    quit: () => say('quit'),
  };
}

async function connectRedis() {
  const client = require(library).createClient({
    url: `${tls ? 'rediss' : 'redis'}://127.0.0.1:${port}`,
    ...(tls && { password: tls.password, socket: { tls: true, ca: tls.ca } }),
  });
  client.on('error', (error) => console.error(error));
  await client.connect();
  const words = (key, args) => ({ keys: [key], arguments: args.map(String) });
  return {
    set: (key, token, ttl) => client.set(key, token, { NX: true, PX: ttl }),
    get: (key) => client.get(key),
    evalsha: (sha, key, args) => client.evalSha(sha, words(key, args)),
    evaluate: (script, key, args) => client.eval(script, words(key, args)),
    quit: () => client.quit(),
  };
}

class HandWritten {
  constructor(client) {
    this.client = client;
    this.locks = new Map();
  }

  version() { return require(`${library}/package.json`).version; }

  key(name) { return name; }

  async acquire(name, ttl) {
    const token = randomUUID();
    if ((await this.client.set(name, token, ttl)) !== 'OK') return false;
    this.locks.set(name, { token });
    this.watch(name, ttl);
    return true;
  }

  async wait(name, ttl, limit) {
    const end = Date.now() + limit;
    while (!(await this.acquire(name, ttl))) {
      if (Date.now() > end) return false;
      await sleep(50 + Math.random() * 50);
    }
    return true;
  }

  // watch prolongs the lock whenever a third of its time is over.
  watch(name, ttl) {
    const lock = this.locks.get(name);
    clearInterval(lock.watchdog);
    lock.watchdog = setInterval(() => {
      this.run(EXTEND, name, lock.token, ttl).then((held) => held || clearInterval(lock.watchdog), console.error);
    }, ttl / 3);
  }

  async extend(name, ttl) {
    this.watch(name, ttl);
    return (await this.run(EXTEND, name, this.locks.get(name).token, ttl)) === 1;
  }

  async release(name) {
    const lock = this.locks.get(name);
    if (!lock) return false;
    clearInterval(lock.watchdog);
    this.locks.delete(name);
    return (await this.run(RELEASE, name, lock.token)) === 1;
  }

  async steal(name) { return (await this.run(RELEASE, name, randomUUID())) === 1; }

  async held(name) { return (await this.client.get(name)) !== null; }

  async mine(name) { return this.locks.has(name) && (await this.client.get(name)) === this.locks.get(name).token; }

  async run(script, key, ...args) {
    try {
      return await this.client.evalsha(createHash('sha1').update(script).digest('hex'), key, args);
    } catch (error) {
      if (!error.message.startsWith('NOSCRIPT')) throw error;
      return this.client.evaluate(script, key, args);
    }
  }
}

async function main() {
  const connects = { ioredis: connectIoredis, redis3: connectRedis3 };
  const connect = connects[library] || connects[library.replace(/\d$/, '')] || connectRedis;
  const client = await connect();
  await serve(new HandWritten(client));
  await client.quit();
}

main();
