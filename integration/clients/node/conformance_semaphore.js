// redis-semaphore's Mutex, which refreshes itself unless told otherwise. LIBRARY is the ioredis package it is given. Its
// release does not say whether there was anything to release, so the server is asked.
'use strict';

const { Mutex } = require('redis-semaphore');
const { serve } = require('./conversation');

const [port, library] = process.argv.slice(2);
const Redis = require(library);

const client = new Redis({ host: '127.0.0.1', port: Number(port) });
const mutexes = new Map();

async function take(name, mutex) {
  const acquired = await mutex.tryAcquire();
  if (acquired) mutexes.set(name, mutex);
  return acquired;
}

const verbs = {
  version: () => require('redis-semaphore/package.json').version,
  key: (name) => `mutex:${name}`,
  acquire: (name, ttl) => take(name, new Mutex(client, name, { lockTimeout: ttl, acquireAttemptsLimit: 1 })),
  wait: (name, ttl, limit) => take(name, new Mutex(client, name, { lockTimeout: ttl, acquireTimeout: limit })),
  // Another mutex takes over with the same identifier and another timeout.
  extend(name, ttl) {
    const { identifier } = mutexes.get(name);
    mutexes.get(name).stopRefresh();
    return take(name, new Mutex(client, name, { lockTimeout: ttl, identifier, acquiredExternally: true }));
  },
  async release(name) {
    const mutex = mutexes.get(name);
    if (!mutexes.delete(name) || !mutex.isAcquired) return false;
    await mutex.release();
    return true;
  },
  async steal(name) {
    await new Mutex(client, name, { identifier: 'somebody else', acquiredExternally: true }).release();
    return (await client.exists(`mutex:${name}`)) === 0;
  },
  mine: (name) => mutexes.has(name) && mutexes.get(name).isAcquired,
};

serve(verbs).then(() => client.quit());
