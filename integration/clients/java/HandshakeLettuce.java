import io.lettuce.core.ClientOptions;
import io.lettuce.core.LettuceVersion;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SetArgs;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * Does with Lettuce the steps that handshake_test.go lists, one line each. Arguments: port, "all" or "locks", a name
 * for the keys, and the protocol, password and database, each of which may be "".
 */
public class HandshakeLettuce {
    static final String RELEASE =
        "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";
    static final String MINE = "token-of-the-first-1", THEIRS = "token-of-the-second";

    static String[] args;

    public static void main(String[] given) throws Exception {
        args = given;
        // The library's own threads would keep a failed program alive.
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> {
            error.printStackTrace();
            System.exit(1);
        });
        step("client", "lettuce", LettuceVersion.getVersion().split("/")[0]);
        RedisURI.Builder uri = RedisURI.builder().withHost("127.0.0.1").withPort(Integer.parseInt(args[0]))
            .withTimeout(Duration.ofSeconds(20));
        if (!args[4].isEmpty()) {
            uri.withPassword(args[4].toCharArray()).withDatabase(Integer.parseInt(args[5])).withClientName("handshake");
        }
        RedisClient client = RedisClient.create(uri.build());
        ClientOptions.Builder options = ClientOptions.builder().autoReconnect(false);
        if (!args[3].isEmpty()) {
            options.protocolVersion(ProtocolVersion.valueOf("RESP" + args[3]));
        }
        client.setOptions(options.build());
        try (StatefulRedisConnection<String, String> first = client.connect();
                StatefulRedisConnection<String, String> second = client.connect()) {
            if (args[1].equals("all")) {
                ordinary(first);
                try (StatefulRedisPubSubConnection<String, String> listener = client.connectPubSub()) {
                    messages(first.sync(), listener);
                }
            }
            locks(first.sync(), second.sync());
        } finally {
            client.shutdown(0, 5, TimeUnit.SECONDS);
        }
    }

    static void ordinary(StatefulRedisConnection<String, String> connection) throws Exception {
        RedisCommands<String, String> client = connection.sync();
        String value = "h:" + args[2] + ":value", count = "h:" + args[2] + ":count";
        step("set", yes("OK".equals(client.set(value, "one"))));
        step("get", client.get(value));
        step("incr", client.incr(count));
        connection.setAutoFlushCommands(false);
        RedisFuture<Long> by = connection.async().incrby(count, 10), more = connection.async().incr(count);
        RedisFuture<String> at = connection.async().get(count);
        connection.flushCommands();
        connection.setAutoFlushCommands(true);
        step("pipeline", by.get(), more.get(), at.get());
        client.multi();
        client.incr(count);
        client.get(count);
        TransactionResult results = client.exec();
        step("multi", results.get(0), results.get(1));
    }

    static void messages(RedisCommands<String, String> client, StatefulRedisPubSubConnection<String, String> listener)
            throws Exception {
        String channel = "h:" + args[2] + ":channel";
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        listener.addListener(new RedisPubSubAdapter<>() {
            @Override
            public void subscribed(String name, long count) {
                heard.add("subscribed " + yes(count == 1));
            }

            @Override
            public void message(String name, String text) {
                heard.add("message " + text);
            }

            @Override
            public void unsubscribed(String name, long count) {
                heard.add("unsubscribed " + yes(count == 0));
            }
        });
        listener.sync().subscribe(channel);
        step(heard.poll(20, TimeUnit.SECONDS));
        client.publish(channel, "hello");
        step(heard.poll(20, TimeUnit.SECONDS));
        listener.sync().unsubscribe(channel);
        step(heard.poll(20, TimeUnit.SECONDS));
    }

    static void locks(RedisCommands<String, String> first, RedisCommands<String, String> second) {
        String key = "lock:" + args[2];
        String[] keys = {key};
        step("lock", lock(first, key, MINE));
        step("second", lock(second, key, THEIRS));
        step("owner", second.get(key));
        step("foreign", (Long) second.eval(RELEASE, ScriptOutputType.INTEGER, keys, THEIRS));
        step("release", (Long) first.evalsha(first.scriptLoad(RELEASE), ScriptOutputType.INTEGER, keys, MINE));
        step("free", yes(first.get(key) == null));
        step("kept", lock(first, key + ":kept", MINE));
    }

    static String lock(RedisCommands<String, String> client, String key, String token) {
        return yes("OK".equals(client.set(key, token, SetArgs.Builder.nx().px(60000))));
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
