// node-redlock 5, with one client. If LIBRARY is "pair", each lock is on two resources at once; if it is "using", locks are
// held by its method of that name, which extends them by itself.
'use strict';

const { readFileSync } = require('fs');
const { join } = require('path');
const Redis = require('ioredis5');
const { default: Redlock, ExecutionError, Lock } = require('redlock5');
const { serve } = require('./conversation');

const [port, library] = process.argv.slice(2);
const RETRY_DELAY = 200; // milliseconds, its default

const client = new Redis({ host: '127.0.0.1', port: Number(port) });
const redlock = new Redlock([client], { retryCount: 0, retryDelay: RETRY_DELAY });
redlock.on('error', (error) => console.error(`${error}`));
const locks = new Map();

const resources = (name) => (library === 'pair' ? [name, `${name}:other`] : [name]);
const patiently = (limit) => ({ retryCount: Math.ceil(limit / RETRY_DELAY) });

async function unlessRefused(action) {
  try {
    await action();
    return true;
  } catch (error) {
    if (error instanceof ExecutionError) return false;
    throw error;
  }
}

const verbs = {
  // Its package.json is not among what it exports, and says v5.
  version: () => JSON.parse(readFileSync(join(require.resolve('redlock5'), '../../../package.json'))).version.replace('v', ''),
  key: (name) => resources(name).join(' '),
  acquire: (name, ttl) => verbs.wait(name, ttl, 0),
  wait: (name, ttl, limit) => unlessRefused(async () => {
    locks.set(name, await redlock.acquire(resources(name), ttl, patiently(limit)));
  }),
  extend: (name, ttl) => unlessRefused(async () => locks.set(name, await locks.get(name).extend(ttl))),
  async release(name) {
    const lock = locks.get(name);
    return locks.delete(name) && unlessRefused(() => lock.release());
  },
  steal: (name) => unlessRefused(() => new Lock(redlock, resources(name), 'the token of somebody else', [], 0).release()),
  mine: (name) => locks.has(name) && locks.get(name).expiration > Date.now(),
};

// use starts a routine that goes on until the lock is to be released.
function use(name, ttl, settings) {
  return new Promise((acquired, refused) => {
    const finished = redlock.using(resources(name), ttl, settings, (signal) => new Promise((end) => {
      acquired({ release: () => { end(); return finished; }, signal });
    }));
    finished.catch(refused);
  });
}

const using = {
  ...verbs,
  wait: (name, ttl, limit) => unlessRefused(async () => locks.set(name, await use(name, ttl, patiently(limit)))),
  acquire: (name, ttl) => using.wait(name, ttl, 0),
  extend: undefined,
  mine: (name) => locks.has(name) && !locks.get(name).signal.aborted,
};

serve(library === 'using' ? using : verbs).then(() => redlock.quit());
