import java.time.Duration;
import org.springframework.integration.support.locks.DistributedLock;

/** RedisLockRegistry since 7.0, where each lock may have a TTL of its own and be given another. */
public class ConformanceSpring7 extends ConformanceSpring {
    private static final long DEFAULT_TTL = 60000;

    ConformanceSpring7(int port, String library) {
        super(port, library);
    }

    public static void main(String[] args) throws Exception {
        serve(args, ConformanceSpring7::new);
    }

    @Override
    boolean await(String name, long ttl, long limit) throws Exception {
        DistributedLock lock = registry(DEFAULT_TTL).obtain(path(name));
        boolean acquired = lock.tryLock(Duration.ofMillis(limit), Duration.ofMillis(ttl));
        if (acquired) {
            locks.put(name, lock);
        }
        return acquired;
    }

    @Override
    boolean extend(String name, long ttl) {
        if (mode.equals("renewed")) {
            throw new UnsupportedOperationException(); // the next renewal would undo it
        }
        try {
            registry(DEFAULT_TTL).renewLock(path(name), Duration.ofMillis(ttl));
            return true;
        } catch (IllegalStateException e) {
            if (!e.getMessage().startsWith("Could not renew mutex")) {
                throw e;
            }
            return false;
        }
    }
}
