import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.SingleServerConfig;

/** Redisson's locks: LIBRARY is the kind. The one thread of this program is the holder. */
public class ConformanceRedisson extends Conformance {
    /** The lease that a watchdog renews at each third of it. */
    private static final long WATCHDOG = 6000;

    private final RedissonClient client;
    private final String kind;
    private final Map<String, Integer> extensions = new HashMap<>();

    ConformanceRedisson(int port, String kind) throws Exception {
        this.kind = kind;
        Config config = new Config();
        config.setLockWatchdogTimeout(WATCHDOG);
        SingleServerConfig server = config.useSingleServer().setAddress("redis://127.0.0.1:" + port).setTimeout(20000);
        if (TLS_CA != null) {
            server.setAddress("rediss://127.0.0.1:" + port).setPassword(PASSWORD);
            Path store = Files.createTempFile("trusted", ".p12");
            try (OutputStream out = Files.newOutputStream(store)) {
                trusted().store(out, "changeit".toCharArray());
            }
            server.setSslTruststore(store.toUri().toURL()).setSslTruststorePassword("changeit");
            store.toFile().deleteOnExit();
        }
        client = Redisson.create(config);
    }

    public static void main(String[] args) throws Exception {
        serve(args, ConformanceRedisson::new);
    }

    private RLock lock(String name) throws Exception {
        switch (kind) {
            case "lock": case "watchdog": return client.getLock(name);
            case "fair": return client.getFairLock(name);
            case "spin": return client.getSpinLock(name);
            case "read": return client.getReadWriteLock(name).readLock();
            case "write": return client.getReadWriteLock(name).writeLock();
            case "multi": return client.getMultiLock(client.getLock(name + ":1"), client.getLock(name + ":2"));
            case "fenced": // By reflection, for 3.17 has none.
                return (RLock) RedissonClient.class.getMethod("getFencedLock", String.class).invoke(client, name);
            default: throw new IllegalArgumentException(kind);
        }
    }

    private long lease(long ttl) {
        return kind.equals("watchdog") ? -1 : ttl;
    }

    @Override
    String version() throws Exception {
        return mavenVersion(Redisson.class, "org.redisson", "redisson");
    }

    @Override
    String key(String name) {
        return kind.equals("multi") ? name + ":1 " + name + ":2" : name;
    }

    @Override
    boolean acquire(String name, long ttl) throws Exception {
        return lock(name).tryLock(0, lease(ttl), TimeUnit.MILLISECONDS);
    }

    @Override
    boolean await(String name, long ttl, long limit) throws Exception {
        return lock(name).tryLock(limit, lease(ttl), TimeUnit.MILLISECONDS);
    }

    /** Its holder takes the lock once more, with another lease. */
    @Override
    boolean extend(String name, long ttl) throws Exception {
        if (kind.equals("watchdog")) {
            throw new UnsupportedOperationException();
        }
        boolean extended = acquire(name, ttl);
        if (extended) {
            extensions.merge(name, 1, Integer::sum);
        }
        return extended;
    }

    @Override
    boolean release(String name) throws Exception {
        Integer more = extensions.remove(name);
        for (int i = 0; more != null && i < more; i++) {
            unlock(name);
        }
        return unlock(name);
    }

    @Override
    boolean steal(String name) throws Exception {
        return unlock(name);
    }

    private boolean unlock(String name) throws Exception {
        try {
            lock(name).unlock();
            return true;
        } catch (IllegalMonitorStateException e) {
            return false;
        } catch (CompletionException e) { // from a multi lock
            if (e.getCause() instanceof IllegalMonitorStateException) {
                return false;
            }
            throw e;
        }
    }

    @Override
    boolean held(String name) throws Exception {
        return lock(name).isLocked();
    }

    @Override
    boolean mine(String name) throws Exception {
        return lock(name).isHeldByCurrentThread();
    }

    @Override
    public void close() {
        client.shutdown(0, 5, TimeUnit.SECONDS);
    }
}
