import java.util.List;
import java.util.UUID;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.SetParams;

/**
 * A holder of a lock with a fencing token, on Jedis. Arguments: port, key of the lock, key of the resource, own name.
 * It prints its token, works until it reads a line, writes to the resource, and prints whether that was refused.
 */
public class FencedHolder {
    static final int TTL = 3000; // ms
    static final ProtocolCommand REDLOCK = () -> "REDLOCK".getBytes();

    static final String RELEASE =
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

    // The resource is a hash in Redis. It refuses a token that is smaller than one that it has seen. In SQL:
    // UPDATE resource SET writer = :name, token = :token WHERE id = 7 AND token <= :token
    static final String WRITE = """
        if tonumber(ARGV[1]) < tonumber(redis.call('hget', KEYS[1], 'token') or 0) then return 0 end
        redis.call('hset', KEYS[1], 'token', ARGV[1], 'writer', ARGV[2])
        return 1""";

    public static void main(String[] args) throws Exception {
        String lock = args[1], resource = args[2], name = args[3];
        try (Jedis jedis = new Jedis("127.0.0.1", Integer.parseInt(args[0]), 30000)) {
            String value;
            Long token;
            do { // with a new value each time: what a failed try leaves behind expires
                Thread.sleep(50);
                value = UUID.randomUUID().toString();
                token = take(jedis, lock, value);
            } while (token == null);

            System.out.println(token);
            System.in.read(); // the work: nobody knows how long it takes

            // The lock may have ended. So the resource decides.
            Object written = jedis.eval(WRITE, List.of(resource), List.of(token.toString(), name));
            System.out.println(Long.valueOf(1).equals(written) ? "written" : "refused");
            jedis.eval(RELEASE, List.of(lock), List.of(value));
        }
    }

    /** Tries once. Returns the token, or null if the lock is not held. */
    static Long take(Jedis jedis, String lock, String value) {
        try {
            if (jedis.set(lock, value, SetParams.setParams().nx().px(TTL)) == null) {
                return null;
            }
            return (Long) jedis.sendCommand(REDLOCK, "TOKEN", lock, value);
        } catch (JedisDataException e) {
            if (e.getMessage().startsWith("QUORUMLOST ")) {
                return null; // nobody can know who holds the lock
            }
            throw e;
        }
    }
}
