import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.Properties;
import javax.net.ssl.TrustManagerFactory;

/**
 * One client of one lock library, told what to do by the lines that conformance/client_test.go describes. A verb that
 * the library has no means for throws UnsupportedOperationException.
 */
abstract class Conformance implements AutoCloseable {
    /** The file of the authority's certificate, and the password, if the suite wants TLS; else null. */
    static final String TLS_CA = System.getenv("REDIS_TLS_CA"), PASSWORD = System.getenv("REDIS_PASSWORD");

    /** A store with the authority's certificate alone. */
    static KeyStore trusted() throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (InputStream in = new FileInputStream(TLS_CA)) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(in));
        }
        return store;
    }

    static TrustManagerFactory trust() throws Exception {
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(trusted());
        return factory;
    }

    abstract String version() throws Exception;

    /** The keys whose presence means that the lock is held. */
    String key(String name) {
        return name;
    }

    abstract boolean acquire(String name, long ttl) throws Exception;

    boolean await(String name, long ttl, long limit) throws Exception {
        throw new UnsupportedOperationException();
    }

    boolean extend(String name, long ttl) throws Exception {
        throw new UnsupportedOperationException();
    }

    abstract boolean release(String name) throws Exception;

    boolean steal(String name) throws Exception {
        throw new UnsupportedOperationException();
    }

    boolean held(String name) throws Exception {
        throw new UnsupportedOperationException();
    }

    boolean mine(String name) throws Exception {
        throw new UnsupportedOperationException();
    }

    /** Connects to the server at that port. */
    interface Connector {
        Conformance connect(int port, String library) throws Exception;
    }

    /** Answers a line of input with one of output until the input ends. */
    static void serve(String[] args, Connector connector) throws Exception {
        // The library's own threads would keep a failed program alive.
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> {
            error.printStackTrace();
            System.exit(1);
        });
        try (Conformance library = connector.connect(Integer.parseInt(args[0]), args[1])) {
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                System.out.println(library.answer(line.split(" ")));
                System.out.flush();
            }
        }
    }

    private String answer(String[] words) {
        try {
            switch (words[0]) {
                case "version": return version();
                case "key": return key(words[1]);
                case "acquire": return yes(acquire(words[1], Long.parseLong(words[2])));
                case "wait": return yes(await(words[1], Long.parseLong(words[2]), Long.parseLong(words[3])));
                case "extend": return yes(extend(words[1], Long.parseLong(words[2])));
                case "release": return yes(release(words[1]));
                case "steal": return yes(steal(words[1]));
                case "held": return yes(held(words[1]));
                case "mine": return yes(mine(words[1]));
                default: throw new IllegalArgumentException(words[0]);
            }
        } catch (UnsupportedOperationException e) {
            return "unsupported";
        } catch (Exception e) {
            e.printStackTrace();
            return "error " + e.toString().replaceAll("\\s+", " ");
        }
    }

    private static String yes(boolean value) {
        return value ? "yes" : "no";
    }

    /** The version that Maven wrote into the jar of that class. */
    static String mavenVersion(Class<?> of, String group, String artifact) throws IOException {
        Properties release = new Properties();
        release.load(of.getResourceAsStream("/META-INF/maven/" + group + "/" + artifact + "/pom.properties"));
        return release.getProperty("version");
    }
}
