import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** ShedLock on Spring Data Redis. LIBRARY "safe": it updates only what it holds. */
public class ConformanceShedLockSpring extends ConformanceShedLock {
    private final LettuceConnectionFactory connections;

    ConformanceShedLockSpring(int port, String library) {
        connections = new LettuceConnectionFactory("127.0.0.1", port);
        connections.afterPropertiesSet();
        connections.start();
        use(new RedisLockProvider.Builder(connections).safeUpdate(library.equals("safe")).build());
    }

    public static void main(String[] args) throws Exception {
        serve(args, ConformanceShedLockSpring::new);
    }

    @Override
    public void close() {
        connections.destroy();
    }
}
