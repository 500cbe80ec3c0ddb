import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.BatchOptions;
import org.redisson.api.BatchOptions.ExecutionMode;
import org.redisson.api.RBatch;
import org.redisson.api.RLock;
import org.redisson.api.RScript;
import org.redisson.api.RTopic;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;
import org.redisson.config.SingleServerConfig;

/**
 * Does with Redisson the steps that handshake_test.go lists, one line each. Arguments: port, "all" or "locks", a name
 * for the keys, and the protocol (always Redisson's default), password and database, each of which may be "".
 */
public class HandshakeRedisson {
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
        Properties release = new Properties();
        release.load(Redisson.class.getResourceAsStream("/META-INF/maven/org.redisson/redisson/pom.properties"));
        step("client", "redisson", release.getProperty("version"));
        RedissonClient first = connect(), second = connect();
        if (args[1].equals("all")) {
            ordinary(first);
            messages(first, second);
        }
        locks(first, second);
        libraryLock(first, second);
        first.shutdown(0, 5, TimeUnit.SECONDS);
        second.shutdown(0, 5, TimeUnit.SECONDS);
    }

    static RedissonClient connect() {
        Config config = new Config();
        config.setCodec(StringCodec.INSTANCE);
        SingleServerConfig server = config.useSingleServer();
        server.setAddress("redis://127.0.0.1:" + args[0]).setTimeout(20000);
        if (!args[4].isEmpty()) {
            server.setPassword(args[4]);
            server.setDatabase(Integer.parseInt(args[5])).setClientName("handshake");
        }
        return Redisson.create(config);
    }

    static void ordinary(RedissonClient client) {
        String value = "h:" + args[2] + ":value", count = "h:" + args[2] + ":count";
        client.getBucket(value).set("one");
        step("set yes");
        step("get", client.getBucket(value).get());
        step("incr", client.getAtomicLong(count).incrementAndGet());
        RBatch pipe = client.createBatch();
        pipe.getAtomicLong(count).addAndGetAsync(10);
        pipe.getAtomicLong(count).incrementAndGetAsync();
        pipe.getAtomicLong(count).getAsync();
        step("pipeline", pipe.execute().getResponses().toArray());
        RBatch transaction = client.createBatch(BatchOptions.defaults().executionMode(ExecutionMode.IN_MEMORY_ATOMIC));
        transaction.getAtomicLong(count).incrementAndGetAsync();
        transaction.getAtomicLong(count).getAsync();
        step("multi", transaction.execute().getResponses().toArray());
    }

    static void messages(RedissonClient client, RedissonClient listener) throws Exception {
        String channel = "h:" + args[2] + ":channel";
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        RTopic topic = listener.getTopic(channel);
        int id = topic.addListener(String.class, (name, text) -> heard.add(text));
        step("subscribed yes");
        client.getTopic(channel).publish("hello");
        step("message", heard.poll(20, TimeUnit.SECONDS));
        topic.removeListener(id);
        step("unsubscribed yes");
    }

    static void locks(RedissonClient first, RedissonClient second) {
        String key = "lock:" + args[2];
        step("lock", lock(first, key, MINE));
        step("second", lock(second, key, THEIRS));
        step("owner", second.getBucket(key).get());
        step("foreign", release(second, key, THEIRS));
        step("release", release(first, key, MINE));
        step("free", yes(first.getBucket(key).get() == null));
        step("kept", lock(first, key + ":kept", MINE));
    }

    static String lock(RedissonClient client, String key, String token) {
        return yes(client.getBucket(key).setIfAbsent(token, Duration.ofMinutes(1)));
    }

    static Object release(RedissonClient client, String key, String token) {
        return client.getScript().eval(RScript.Mode.READ_WRITE, RELEASE, RScript.ReturnType.VALUE, List.of(key), token);
    }

    /** RLock, which is a hash: taken twice by its holder, refused to another, freed by the second unlock. */
    static void libraryLock(RedissonClient first, RedissonClient second) throws Exception {
        RLock mine = first.getLock("lock:" + args[2] + ":own"), theirs = second.getLock("lock:" + args[2] + ":own");
        step("library lock", yes(mine.tryLock()));
        step("library again", yes(mine.tryLock(0, 60, TimeUnit.SECONDS)));
        step("library second", yes(theirs.tryLock()));
        mine.unlock();
        step("library held", yes(theirs.isLocked()));
        mine.unlock();
        step("library released", yes(theirs.tryLock()));
        theirs.unlock();
    }

    static void step(String name, Object... words) {
        StringBuilder line = new StringBuilder(name);
        for (Object word : words) {
            line.append(" ").append(word);
        }
        System.out.println(line);
    }

    static String yes(boolean value) {
        return value ? "yes" : "no";
    }
}
