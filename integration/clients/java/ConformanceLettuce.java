import io.lettuce.core.ClientOptions;
import io.lettuce.core.LettuceVersion;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisNoScriptException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SetArgs;
import io.lettuce.core.SslOptions;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import java.io.File;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/** A hand-written lock on Lettuce's asynchronous commands. */
public class ConformanceLettuce extends ConformanceIdiom {
    private final RedisClient client;
    private final StatefulRedisConnection<String, String> connection;
    private final RedisAsyncCommands<String, String> commands;

    ConformanceLettuce(int port) {
        RedisURI.Builder uri = RedisURI.builder().withHost("127.0.0.1").withPort(port).withTimeout(Duration.ofSeconds(20));
        if (TLS_CA != null) {
            uri.withSsl(true).withPassword(PASSWORD.toCharArray());
        }
        client = RedisClient.create(uri.build());
        if (TLS_CA != null) {
            client.setOptions(ClientOptions.builder()
                .sslOptions(SslOptions.builder().trustManager(new File(TLS_CA)).build()).build());
        }
        connection = client.connect();
        commands = connection.async();
    }

    public static void main(String[] args) throws Exception {
        serve(args, (port, library) -> new ConformanceLettuce(port));
    }

    @Override
    String version() {
        return LettuceVersion.getVersion().split("/")[0];
    }

    @Override
    boolean set(String key, String token, long ttl) throws Exception {
        return "OK".equals(commands.set(key, token, SetArgs.Builder.nx().px(ttl)).get());
    }

    @Override
    String get(String key) throws Exception {
        return commands.get(key).get();
    }

    @Override
    boolean exists(String key) throws Exception {
        return commands.exists(key).get() == 1;
    }

    @Override
    long run(Script script, String key, String... arguments) throws Exception {
        String[] keys = {key};
        try {
            return commands.<Long>evalsha(script.hash, ScriptOutputType.INTEGER, keys, arguments).get();
        } catch (ExecutionException e) {
            if (!(e.getCause() instanceof RedisNoScriptException)) {
                throw e;
            }
            return commands.<Long>eval(script.text, ScriptOutputType.INTEGER, keys, arguments).get();
        }
    }

    @Override
    public void close() {
        connection.close();
        client.shutdown(0, 5, TimeUnit.SECONDS);
    }
}
