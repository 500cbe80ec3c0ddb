// Does with ioredis the steps that handshake_test.go lists, one line each.
// Arguments: the package, port, "all" or "locks", a name for the keys, and the protocol, password and database, each of
// which may be "".
'use strict';

const [pack, port, mode, name, , password, db] = process.argv.slice(2);
const Redis = require(pack);
const RELEASE = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

const step = (...words) => console.log(...words);
const yes = (value) => (value ? 'yes' : 'no');

function connect() {
  const options = { host: '127.0.0.1', port: Number(port), maxRetriesPerRequest: 1, retryStrategy: () => null };
  if (password) Object.assign(options, { password, db: Number(db), connectionName: 'handshake' });
  const client = new Redis(options);
  client.on('error', (error) => console.error(error));
  return client;
}

async function ordinary(client) {
  const value = `h:${name}:value`;
  const count = `h:${name}:count`;
  step('set', yes((await client.set(value, 'one')) === 'OK'));
  step('get', await client.get(value));
  step('incr', await client.incr(count));
  const results = (replies) => replies.map(([error, reply]) => error || reply);
  step('pipeline', ...results(await client.pipeline().incrby(count, 10).incr(count).get(count).exec()));
  step('multi', ...results(await client.multi().incr(count).get(count).exec()));
}

async function messages(client, listener) {
  const channel = `h:${name}:channel`;
  const message = new Promise((resolve) => listener.on('message', (_, text) => resolve(text)));
  step('subscribed', yes((await listener.subscribe(channel)) === 1));
  await client.publish(channel, 'hello');
  step('message', await message);
  step('unsubscribed', yes((await listener.unsubscribe(channel)) === 0));
}

async function locks(first, second) {
  const [key, mine, theirs] = [`lock:${name}`, 'token-of-the-first-1', 'token-of-the-second'];
  step('lock', yes((await first.set(key, mine, 'PX', 60000, 'NX')) === 'OK'));
  step('second', yes((await second.set(key, theirs, 'PX', 60000, 'NX')) === 'OK'));
  step('owner', await second.get(key));
  step('foreign', await second.eval(RELEASE, 1, key, theirs));
  first.defineCommand('releaseLock', { numberOfKeys: 1, lua: RELEASE });
  step('release', await first.releaseLock(key, mine));
  step('free', yes((await first.get(key)) === null));
  step('kept', yes((await first.set(`lock:${name}:kept`, mine, 'PX', 60000, 'NX')) === 'OK'));
}

async function main() {
  step('client ioredis', require(`${pack}/package.json`).version);
  const clients = [connect(), connect()];
  if (mode === 'all') {
    await ordinary(clients[0]);
    await messages(clients[0], clients[1]);
  }
  await locks(...clients);
  await Promise.all(clients.map((client) => client.quit()));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
