import java.util.List;
import java.util.Properties;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.params.SetParams;

/**
 * Does with Jedis the steps that handshake_test.go lists, one line each. Arguments: port, "all" or "locks", a name for
 * the keys, and the protocol, password and database, each of which may be "".
 */
public class HandshakeJedis {
    static final String RELEASE =
        "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";
    static final String MINE = "token-of-the-first-1", THEIRS = "token-of-the-second";

    static String[] args;

    public static void main(String[] given) throws Exception {
        args = given;
        Properties release = new Properties();
        release.load(Jedis.class.getResourceAsStream("/META-INF/maven/redis.clients/jedis/pom.properties"));
        step("client", "jedis", release.getProperty("version"));
        try (Jedis first = connect(); Jedis second = connect()) {
            if (args[1].equals("all")) {
                ordinary(first);
                messages(first, second);
            }
            locks(first, second);
        }
    }

    static Jedis connect() throws Exception {
        DefaultJedisClientConfig.Builder config = DefaultJedisClientConfig.builder().socketTimeoutMillis(20000);
        if (!args[3].isEmpty()) {
            // By reflection, for before version 5 there was no choice.
            Class<?> protocols = Class.forName("redis.clients.jedis.RedisProtocol");
            Object protocol = protocols.getField("RESP" + args[3]).get(null);
            config.getClass().getMethod("protocol", protocols).invoke(config, protocol);
        }
        if (!args[4].isEmpty()) {
            config.password(args[4]).database(Integer.parseInt(args[5])).clientName("handshake");
        }
        return new Jedis(new HostAndPort("127.0.0.1", Integer.parseInt(args[0])), config.build());
    }

    static void ordinary(Jedis client) {
        String value = "h:" + args[2] + ":value", count = "h:" + args[2] + ":count";
        step("set", yes("OK".equals(client.set(value, "one"))));
        step("get", client.get(value));
        step("incr", client.incr(count));
        Pipeline pipe = client.pipelined();
        Response<Long> by = pipe.incrBy(count, 10), more = pipe.incr(count);
        Response<String> at = pipe.get(count);
        pipe.sync();
        step("pipeline", by.get(), more.get(), at.get());
        Transaction transaction = client.multi();
        more = transaction.incr(count);
        at = transaction.get(count);
        transaction.exec();
        step("multi", more.get(), at.get());
    }

    static void messages(Jedis client, Jedis listener) throws Exception {
        String channel = "h:" + args[2] + ":channel";
        listener.subscribe(new JedisPubSub() {
            @Override
            public void onSubscribe(String name, int subscriptions) {
                step("subscribed", yes(subscriptions == 1));
                client.publish(channel, "hello");
            }

            @Override
            public void onMessage(String name, String text) {
                step("message", text);
                unsubscribe(channel);
            }

            @Override
            public void onUnsubscribe(String name, int subscriptions) {
                step("unsubscribed", yes(subscriptions == 0));
            }
        }, channel);
    }

    static void locks(Jedis first, Jedis second) {
        String key = "lock:" + args[2];
        step("lock", lock(first, key, MINE));
        step("second", lock(second, key, THEIRS));
        step("owner", second.get(key));
        step("foreign", second.eval(RELEASE, List.of(key), List.of(THEIRS)));
        step("release", first.evalsha(first.scriptLoad(RELEASE), List.of(key), List.of(MINE)));
        step("free", yes(first.get(key) == null));
        step("kept", lock(first, key + ":kept", MINE));
    }

    static String lock(Jedis client, String key, String token) {
        return yes("OK".equals(client.set(key, token, SetParams.setParams().nx().px(60000))));
    }

    static void step(Object... words) {
        StringBuilder line = new StringBuilder();
        for (Object word : words) {
            line.append(line.length() == 0 ? "" : " ").append(word);
        }
        System.out.println(line);
    }

    static String yes(boolean value) {
        return value ? "yes" : "no";
    }
}
