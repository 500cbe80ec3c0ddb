import net.javacrumbs.shedlock.provider.redis.jedis4.JedisLockProvider;
import redis.clients.jedis.JedisPool;

/** ShedLock on a pool of Jedis connections. */
public class ConformanceShedLockJedis extends ConformanceShedLock {
    private final JedisPool pool;

    ConformanceShedLockJedis(int port) {
        pool = new JedisPool("127.0.0.1", port);
        use(new JedisLockProvider(pool));
    }

    public static void main(String[] args) throws Exception {
        serve(args, (port, library) -> new ConformanceShedLockJedis(port));
    }

    @Override
    public void close() {
        pool.close();
    }
}
