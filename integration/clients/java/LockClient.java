import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.params.SetParams;

/** Does with Jedis what the lines on standard input say, one answer a line. Arguments: port, protocol (2 or 3). */
public class LockClient {
    static final String RELEASE =
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
    static final String EXTEND =
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end";

    public static void main(String[] args) throws Exception {
        HostAndPort address = new HostAndPort("127.0.0.1", Integer.parseInt(args[0]));
        RedisProtocol protocol = args[1].equals("3") ? RedisProtocol.RESP3 : RedisProtocol.RESP2;
        DefaultJedisClientConfig config =
            DefaultJedisClientConfig.builder().protocol(protocol).socketTimeoutMillis(30000).build();
        try (Jedis jedis = new Jedis(address, config)) {
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                System.out.println(answer(jedis, line.split(" ")));
                System.out.flush();
            }
        }
    }

    static String answer(Jedis jedis, String[] words) {
        String key = words[1];
        switch (words[0]) {
            case "acquire":
                String set = jedis.set(key, words[2], new SetParams().nx().px(Long.parseLong(words[3])));
                return "OK".equals(set) ? "yes" : "no";
            case "owner":
                String owner = jedis.get(key);
                return owner == null ? "" : owner;
            case "extend":
                return yes(jedis.eval(EXTEND, List.of(key), List.of(words[2], words[3])));
            case "release":
                // Loaded first and run by its hash, as connection pools do it.
                return yes(jedis.evalsha(jedis.scriptLoad(RELEASE), List.of(key), List.of(words[2])));
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    static String yes(Object reply) {
        return Long.valueOf(1).equals(reply) ? "yes" : "no";
    }
}
