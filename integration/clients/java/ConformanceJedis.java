import java.util.List;
import javax.net.ssl.SSLContext;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.exceptions.JedisNoScriptException;
import redis.clients.jedis.params.SetParams;

/** A hand-written lock on Jedis. */
public class ConformanceJedis extends ConformanceIdiom {
    private final Jedis jedis;

    ConformanceJedis(int port) throws Exception {
        DefaultJedisClientConfig.Builder config = DefaultJedisClientConfig.builder().socketTimeoutMillis(20000);
        if (TLS_CA != null) {
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, trust().getTrustManagers(), null);
            config.ssl(true).sslSocketFactory(context.getSocketFactory()).password(PASSWORD);
        }
        jedis = new Jedis(new HostAndPort("127.0.0.1", port), config.build());
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
