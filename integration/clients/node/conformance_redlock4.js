// node-redlock 4, with one server. If LIBRARY is "pair", each lock is on two resources at once.
'use strict';

const Redis = require('ioredis5');
const Redlock = require('redlock4');
const { serve } = require('./conversation');

const [port, library] = process.argv.slice(2);
const RETRY_DELAY = 200; // milliseconds, its default

const client = new Redis({ host: '127.0.0.1', port: Number(port) });
const redlock = new Redlock([client], { retryCount: 0, retryDelay: RETRY_DELAY });
redlock.on('clientError', (error) => console.error(error));
const locks = new Map();

const resources = (name) => (library === 'pair' ? [name, `${name}:other`] : [name]);

async function unlessRefused(action) {
  try {
    await action();
    return true;
  } catch (error) {
    if (error instanceof Redlock.LockError) return false;
    throw error;
  }
}

const verbs = {
  version: () => require('redlock4/package.json').version,
  key: (name) => resources(name).join(' '),
  acquire: (name, ttl) => unlessRefused(async () => locks.set(name, await redlock.acquire(resources(name), ttl))),
  wait: (name, ttl, limit) => unlessRefused(async () => {
    const options = { retryCount: Math.ceil(limit / RETRY_DELAY), retryDelay: RETRY_DELAY };
    locks.set(name, await redlock.acquireWithOptions(resources(name), ttl, options));
  }),
  extend: (name, ttl) => unlessRefused(async () => locks.set(name, await locks.get(name).extend(ttl))),
  async release(name) {
    const lock = locks.get(name);
    return locks.delete(name) && unlessRefused(() => lock.unlock());
  },
  steal: (name) => unlessRefused(() => new Redlock.Lock(redlock, resources(name), 'the token of somebody else').unlock()),
  mine: (name) => locks.has(name) && locks.get(name).expiration > Date.now(),
};

serve(verbs).then(() => redlock.quit());
