import java.util.ConcurrentModificationException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/**
 * Spring Integration's RedisLockRegistry without a Spring context. LIBRARY is the mode (spin, pubsub or renewed, which
 * spins and renews what is held) and the driver (lettuce or jedis), with a dash between them.
 */
public class ConformanceSpring extends Conformance {
    static final String REGISTRY = "lock";

    final String mode;
    private final RedisConnectionFactory connections;
    private final ThreadPoolTaskScheduler renewals = new ThreadPoolTaskScheduler();
    private final Map<Long, RedisLockRegistry> registries = new HashMap<>();
    final Map<String, Lock> locks = new HashMap<>();

    ConformanceSpring(int port, String library) {
        mode = library.split("-")[0];
        RedisStandaloneConfiguration server = new RedisStandaloneConfiguration("127.0.0.1", port);
        if (library.endsWith("jedis")) {
            JedisConnectionFactory jedis = new JedisConnectionFactory(server);
            jedis.afterPropertiesSet();
            jedis.start();
            connections = jedis;
        } else {
            LettuceConnectionFactory lettuce = new LettuceConnectionFactory(server);
            lettuce.afterPropertiesSet();
            lettuce.start();
            connections = lettuce;
        }
        renewals.setDaemon(true);
        renewals.initialize();
    }

    public static void main(String[] args) throws Exception {
        serve(args, ConformanceSpring::new);
    }

    /** The registry for locks of that TTL, which it gives to all of its locks. */
    RedisLockRegistry registry(long ttl) {
        return registries.computeIfAbsent(ttl, wanted -> {
            RedisLockRegistry registry = new RedisLockRegistry(connections, REGISTRY, wanted);
            registry.setRedisLockType(mode.equals("pubsub") ? RedisLockType.PUB_SUB_LOCK : RedisLockType.SPIN_LOCK);
            if (mode.equals("renewed")) {
                registry.setRenewalTaskScheduler(renewals);
            }
            return registry;
        });
    }

    /** The registry puts its own name and a colon in front. */
    static String path(String name) {
        return name.substring(REGISTRY.length() + 1);
    }

    @Override
    String version() {
        return RedisLockRegistry.class.getPackage().getImplementationVersion();
    }

    @Override
    boolean acquire(String name, long ttl) throws Exception {
        return await(name, ttl, 0);
    }

    @Override
    boolean await(String name, long ttl, long limit) throws Exception {
        Lock lock = registry(ttl).obtain(path(name));
        boolean acquired = lock.tryLock(limit, TimeUnit.MILLISECONDS);
        if (acquired) {
            locks.put(name, lock);
        }
        return acquired;
    }

    @Override
    boolean release(String name) {
        Lock lock = locks.remove(name);
        return lock != null && unlock(lock);
    }

    @Override
    boolean steal(String name) {
        return unlock(registry(60000).obtain(path(name)));
    }

    private static boolean unlock(Lock lock) {
        try {
            lock.unlock();
            return true;
        } catch (ConcurrentModificationException e) {
            return false; // the server no longer had it
        } catch (IllegalStateException e) {
            if (!e.getMessage().startsWith("You do not own lock")) {
                throw e;
            }
            return false;
        }
    }

    @Override
    public void close() throws Exception {
        for (RedisLockRegistry registry : registries.values()) {
            registry.destroy();
        }
        renewals.shutdown();
        ((DisposableBean) connections).destroy();
    }
}
