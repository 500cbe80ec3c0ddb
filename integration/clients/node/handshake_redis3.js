// Does with node-redis 3, whose commands call back, the steps that handshake_test.go lists, one line each.
// Arguments: the package, port, "all" or "locks", a name for the keys, and the protocol, password and database, each of
// which may be "".
'use strict';

const [pack, port, mode, name, , password, db] = process.argv.slice(2);
const redis = require(pack);
const RELEASE = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

const step = (...words) => console.log(...words);
const yes = (value) => (value ? 'yes' : 'no');

// say sends a command and promises its reply.
function say(client, command, ...args) {
  return new Promise((resolve, reject) => {
    client[command](...args, (error, reply) => (error ? reject(error) : resolve(reply)));
  });
}

function connect() {
  const options = { host: '127.0.0.1', port: Number(port), retry_strategy: () => undefined };
  if (password) Object.assign(options, { password, db: Number(db) });
  const client = redis.createClient(options);
  client.on('error', (error) => console.error(error));
  return client;
}

async function ordinary(client) {
  const value = `h:${name}:value`;
  const count = `h:${name}:count`;
  step('set', yes((await say(client, 'set', value, 'one')) === 'OK'));
  step('get', await say(client, 'get', value));
  step('incr', await say(client, 'incr', count));
  step('pipeline', ...(await say(client.batch().incrby(count, 10).incr(count).get(count), 'exec')));
  step('multi', ...(await say(client.multi().incr(count).get(count), 'exec')));
}

async function messages(client, listener) {
  const channel = `h:${name}:channel`;
  const message = new Promise((resolve) => listener.on('message', (_, text) => resolve(text)));
  step('subscribed', yes((await say(listener, 'subscribe', channel)) === channel));
  await say(client, 'publish', channel, 'hello');
  step('message', await message);
  step('unsubscribed', yes((await say(listener, 'unsubscribe', channel)) === channel));
}

async function locks(first, second) {
  const [key, mine, theirs] = [`lock:${name}`, 'token-of-the-first-1', 'token-of-the-second'];
  step('lock', yes((await say(first, 'set', key, mine, 'NX', 'PX', 60000)) === 'OK'));
  step('second', yes((await say(second, 'set', key, theirs, 'NX', 'PX', 60000)) === 'OK'));
  step('owner', await say(second, 'get', key));
  step('foreign', await say(second, 'eval', RELEASE, 1, key, theirs));
  step('release', await say(first, 'eval', RELEASE, 1, key, mine));
  step('free', yes((await say(first, 'get', key)) === null));
  step('kept', yes((await say(first, 'set', `lock:${name}:kept`, mine, 'NX', 'PX', 60000)) === 'OK'));
}

async function main() {
  step('client node-redis', require(`${pack}/package.json`).version);
  const clients = [connect(), connect()];
  if (mode === 'all') {
    await ordinary(clients[0]);
    await messages(clients[0], clients[1]);
  }
  await locks(...clients);
  await Promise.all(clients.map((client) => say(client, 'quit')));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
