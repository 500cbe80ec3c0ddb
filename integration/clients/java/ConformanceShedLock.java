import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;

/** ShedLock as its schedulers use it, with any of its providers. A handle comes only with the lock. */
abstract class ConformanceShedLock extends Conformance {
    private final Map<String, SimpleLock> locks = new HashMap<>();
    private LockProvider provider;

    void use(LockProvider provider) {
        this.provider = provider;
    }

    @Override
    String version() throws Exception {
        return mavenVersion(LockProvider.class, "net.javacrumbs.shedlock", "shedlock-core");
    }

    @Override
    String key(String name) {
        return "job-lock:default:" + name;
    }

    @Override
    boolean acquire(String name, long ttl) {
        return keep(name, provider.lock(
            new LockConfiguration(Instant.now(), name, Duration.ofMillis(ttl), Duration.ZERO)));
    }

    @Override
    boolean extend(String name, long ttl) {
        return locks.containsKey(name) && keep(name, locks.get(name).extend(Duration.ofMillis(ttl), Duration.ZERO));
    }

    private boolean keep(String name, Optional<SimpleLock> lock) {
        lock.ifPresent(held -> locks.put(name, held));
        return lock.isPresent();
    }

    /** ShedLock does not tell whether the lock was still there. */
    @Override
    boolean release(String name) {
        SimpleLock lock = locks.remove(name);
        if (lock != null) {
            lock.unlock();
        }
        return lock != null;
    }
}
