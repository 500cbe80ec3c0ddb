// Does with node-redis 4 and later the steps that handshake_test.go lists, one line each.
// Arguments: the package, port, "all" or "locks", a name for the keys, and the protocol, password and database, each of
// which may be "".
'use strict';

const [pack, port, mode, name, protocol, password, db] = process.argv.slice(2);
const redis = require(pack);
const RELEASE = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

const step = (...words) => console.log(...words);
const yes = (value) => (value ? 'yes' : 'no');

async function connect() {
  const options = { socket: { host: '127.0.0.1', port: Number(port), reconnectStrategy: false } };
  if (protocol) options.RESP = Number(protocol);
  if (password) Object.assign(options, { password, database: Number(db), name: 'handshake' });
  const client = redis.createClient(options);
  client.on('error', (error) => console.error(error));
  await client.connect();
  return client;
}

async function ordinary(client) {
  const value = `h:${name}:value`;
  const count = `h:${name}:count`;
  step('set', yes((await client.set(value, 'one')) === 'OK'));
  step('get', await client.get(value));
  step('incr', await client.incr(count));
  // What is asked in one turn of the event loop goes out in one write.
  step('pipeline', ...(await Promise.all([client.incrBy(count, 10), client.incr(count), client.get(count)])));
  step('multi', ...(await client.multi().incr(count).get(count).exec()));
}

async function messages(client, listener) {
  const channel = `h:${name}:channel`;
  let heard;
  const message = new Promise((resolve) => (heard = resolve));
  await listener.subscribe(channel, heard);
  step('subscribed yes');
  await client.publish(channel, 'hello');
  step('message', await message);
  await listener.unsubscribe(channel);
  step('unsubscribed yes');
}

async function locks(first, second) {
  const [key, mine, theirs] = [`lock:${name}`, 'token-of-the-first-1', 'token-of-the-second'];
  const release = (client, token) => client.eval(RELEASE, { keys: [key], arguments: [token] });
  step('lock', yes((await first.set(key, mine, { NX: true, PX: 60000 })) === 'OK'));
  step('second', yes((await second.set(key, theirs, { NX: true, PX: 60000 })) === 'OK'));
  // Version 5 hands out a Buffer once a connection in RESP2 has been a subscriber's.
  step('owner', String(await second.get(key)));
  step('foreign', await release(second, theirs));
  step('release', await release(first, mine));
  step('free', yes((await first.get(key)) === null));
  step('kept', yes((await first.set(`lock:${name}:kept`, mine, { NX: true, PX: 60000 })) === 'OK'));
}

async function main() {
  step('client node-redis', require(`${pack}/package.json`).version);
  const clients = [await connect(), await connect()];
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
