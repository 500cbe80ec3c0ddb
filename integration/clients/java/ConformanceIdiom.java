import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;

/** The lock that applications write by hand around SET NX PX, whatever library sends the commands. */
abstract class ConformanceIdiom extends Conformance {
    /** A script with its SHA1, by which it is tried first. */
    static final class Script {
        final String text, hash;

        Script(String text) {
            this.text = text;
            try {
                byte[] digest = MessageDigest.getInstance("SHA-1").digest(text.getBytes(StandardCharsets.UTF_8));
                hash = String.format("%040x", new BigInteger(1, digest));
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }
    }

    private static final Script RELEASE = new Script(
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end");
    private static final Script EXTEND = new Script(
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end");

    private final Map<String, String> tokens = new ConcurrentHashMap<>();

    /** SET key token NX PX ttl. */
    abstract boolean set(String key, String token, long ttl) throws Exception;

    abstract String get(String key) throws Exception;

    abstract boolean exists(String key) throws Exception;

    /** EVALSHA, and after NOSCRIPT the whole text. */
    abstract long run(Script script, String key, String... arguments) throws Exception;

    @Override
    boolean acquire(String name, long ttl) throws Exception {
        String token = UUID.randomUUID().toString();
        boolean acquired = set(name, token, ttl);
        if (acquired) {
            tokens.put(name, token);
        }
        return acquired;
    }

    @Override
    boolean extend(String name, long ttl) throws Exception {
        return run(EXTEND, name, tokens.getOrDefault(name, "nothing"), String.valueOf(ttl)) == 1;
    }

    @Override
    boolean release(String name) throws Exception {
        String token = tokens.remove(name);
        return token != null && run(RELEASE, name, token) == 1;
    }

    @Override
    boolean steal(String name) throws Exception {
        return run(RELEASE, name, UUID.randomUUID().toString()) == 1;
    }

    @Override
    boolean held(String name) throws Exception {
        return exists(name);
    }

    @Override
    boolean mine(String name) throws Exception {
        String holder = get(name);
        return holder != null && holder.equals(tokens.get(name));
    }
}
