import java.util.List;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.exceptions.JedisNoScriptException;
import redis.clients.jedis.params.SetParams;

/** A hand-written lock on Jedis. */
public class ConformanceJedis extends ConformanceIdiom {
    private final Jedis jedis;

    ConformanceJedis(int port) {
        jedis = new Jedis(new HostAndPort("127.0.0.1", port),
            DefaultJedisClientConfig.builder().socketTimeoutMillis(20000).build());
    }

    public static void main(String[] args) throws Exception {
        serve(args, (port, library) -> new ConformanceJedis(port));
    }

    @Override
    String version() throws Exception {
        return mavenVersion(Jedis.class, "redis.clients", "jedis");
    }

    @Override
    boolean set(String key, String token, long ttl) {
        return "OK".equals(jedis.set(key, token, SetParams.setParams().nx().px(ttl)));
    }

    @Override
    String get(String key) {
        return jedis.get(key);
    }

    @Override
    boolean exists(String key) {
        return jedis.exists(key);
    }

    @Override
    long run(Script script, String key, String... arguments) {
        try {
            return (Long) jedis.evalsha(script.hash, List.of(key), List.of(arguments));
        } catch (JedisNoScriptException e) {
            return (Long) jedis.eval(script.text, List.of(key), List.of(arguments));
        }
    }

    @Override
    public void close() {
        jedis.close();
    }
}
